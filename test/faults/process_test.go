package faults

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"portico/test/process"
)

// TestMain is also the entry of the tracker that keeps its journal in a file: this very binary, started again.
func TestMain(m *testing.M) {
	if file := os.Getenv(journalVariable); file != "" {
		os.Exit(keepingTracker(file, os.Getenv(listenVariable)))
	}
	os.Exit(process.Main(m))
}

// server is a running program that can be killed, stopped and started again at the same address.
type server struct {
	binary string
	args   []string
	env    []string
	dir    string
	// alive tells whether it serves.
	alive func() bool

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	err  output
}

// output collects what a process says, the end of it if it is much.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() > 1<<20 {
		o.text.Reset()
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs the program and waits until it serves.
func (p *server) start() error {
	cmd := exec.Command(p.binary, p.args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &p.err, &p.err, p.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + p.dir}, p.env...)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	p.mu.Lock()
	p.cmd, p.done = cmd, done
	p.mu.Unlock()
	for end := time.Now().Add(30 * time.Second); !p.alive(); time.Sleep(5 * time.Millisecond) {
		select {
		case <-done:
			return fmt.Errorf("%s ended at once: %s", filepath.Base(p.binary), &p.err)
		default:
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not serve: %s", filepath.Base(p.binary), &p.err)
		}
	}
	return nil
}

// signal sends a signal.
func (p *server) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// kill ends the process as a crash does, and waits for its end.
func (p *server) kill() {
	p.signal(syscall.SIGKILL)
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	if done != nil {
		<-done
	}
}

// launch starts a process that ends with the test.
func launch(t testing.TB, p *server) *server {
	t.Helper()
	p.dir = t.TempDir()
	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.kill()
		if said := p.err.String(); strings.Contains(said, "panic") {
			t.Errorf("%s panicked: %.4000s", filepath.Base(p.binary), said[strings.Index(said, "panic"):])
		}
	})
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func startRedis(t testing.TB) (p *server, address string) {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("these tests need a real redis-server in the PATH: ", err)
	}
	address = process.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	return launch(t, &server{
		binary: binary, args: []string{"--port", port, "--bind", "127.0.0.1", "--save", ""}, alive: func() bool { return process.AnswersPing(address) },
	}), address
}

// startTracker runs `portico tracker`.
func startTracker(t testing.TB) (p *server, address string) {
	t.Helper()
	address = process.FreeAddress(t)
	return launch(t, &server{
		binary: process.Portico(t), args: []string{"tracker", "--seed", "fixture", "--listen", address, "--max-attachment", "20000"}, alive: func() bool { return process.Listens(address) },
	}), address
}

// startPortico runs `portico serve` before a tracker, with settings such as "TIMEOUTS_CONNECT=1s".
func startPortico(t testing.TB, tracker, redis string, settings ...string) (p *server, address string) {
	t.Helper()
	address = process.FreeAddress(t)
	env := []string{"PORTICO_CACHE_REDIS=" + redis, "PORTICO_TRACKERS_MAIN_TIMEOUT=" + trackerTimeout.String(), "PORTICO_LIMITS_QUEUE_WAIT=" + queueWait.String(), "PORTICO_TIMEOUTS_CONNECT=1s"}
	for _, setting := range settings {
		env = append(env, "PORTICO_"+setting)
	}
	return launch(t, &server{
		binary: process.Portico(t), env: env, alive: func() bool { return process.Listens(address) },
		args: []string{"serve", "--tracker", "http://" + tracker, "--listen", address, "--admin-listen", process.FreeAddress(t)},
	}), address
}
