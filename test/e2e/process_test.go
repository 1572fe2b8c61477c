package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// buildDir is where the program is built, and program builds it once however many tests need it.
var (
	buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "portico-e2e-") })
	program  = sync.OnceValues(build)
)

func build() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "portico")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/portico").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return binary, nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := buildDir(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// process is a running program of its own.
type process struct {
	cmd         *exec.Cmd
	out, err    output
	done        chan struct{}
	dir         string
	exit        error
	killed      bool
	description string
}

// output collects what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// launch starts a command that ends with the test, by SIGTERM, which it has to obey.
func launch(t testing.TB, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), done: make(chan struct{}), dir: t.TempDir(), description: filepath.Base(name) + " " + strings.Join(args, " ")}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.Dir = p.dir
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + p.dir}, env...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.exit = p.cmd.Wait()
	}()
	t.Cleanup(func() { p.stop(t) })
	return p
}

// stop tells a process to end and sees that it does.
func (p *process) stop(t testing.TB) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
		t.Errorf("%s did not end when it was told to:\n%s", p.description, &p.err)
	}
	if !p.killed && p.exit != nil {
		t.Errorf("%s ended with %v:\n%s", p.description, p.exit, &p.err)
	}
	if strings.Contains(p.err.String(), "panic") {
		t.Errorf("%s panicked:\n%s", p.description, &p.err)
	}
}

// kill ends a process at once, as a crash does.
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.killed = true
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-p.done
}

// eventually waits for something that other processes bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatal("this did not come about: ", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// freeAddress gives an address that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startTracker runs `portico tracker` with the fixture and gives the address that it prints.
func startTracker(t testing.TB, address string, args ...string) (p *process, base string) {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p = launch(t, nil, binary, append([]string{"tracker", "--seed", "fixture", "--listen", address}, args...)...)
	eventually(t, "the tracker prints its address", func() bool {
		_, rest, found := strings.Cut(p.out.String(), "http://")
		host, _, whole := strings.Cut(rest, "/")
		base = "http://" + host
		return found && whole
	})
	return p, base
}

// facade is a running `portico serve`.
type facade struct {
	*process
	*client
	// operators is the base of its second listener.
	operators *client
}

// startFacade runs `portico serve` before a tracker. env are settings such as "CACHE_SCOPE=off".
func startFacade(t testing.TB, tracker string, env ...string) *facade {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	settings := []string{"PORTICO_LOG_LEVEL=debug"}
	for _, one := range env {
		settings = append(settings, "PORTICO_"+one)
	}
	p := launch(t, settings, binary, "serve", "--tracker", tracker, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	var said struct{ Msg, Clients, Operators string }
	eventually(t, "portico says where it listens", func() bool {
		for line := range strings.Lines(p.err.String()) {
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "listening" {
				return true
			}
		}
		return false
	})
	t.Cleanup(func() {
		for line := range strings.Lines(p.err.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("a line of the log is no JSON: %s", line)
			}
		}
	})
	all := keys(t)
	return &facade{
		process: p, client: &client{base: "http://" + said.Clients, keys: all}, operators: &client{base: "http://" + said.Operators, keys: all},
	}
}

// startRedis runs a real redis-server at an address.
func startRedis(t testing.TB, address string) *process {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("these tests need a real redis-server in the PATH: ", err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, nil, binary, "--port", port, "--bind", "127.0.0.1", "--save", "")
	eventually(t, "redis-server answers", func() bool {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		defer connection.Close()
		answer := make([]byte, 5)
		_, err = fmt.Fprint(connection, "PING\r\n")
		if err == nil {
			_, err = io.ReadFull(connection, answer)
		}
		return err == nil && string(answer) == "+PONG"
	})
	return p
}

func redisClient(t testing.TB, address string) *redis.Client {
	t.Helper()
	reader := redis.NewClient(&redis.Options{Addr: address, DialerRetries: 1, MaxRetries: -1, DisableIdentity: true})
	t.Cleanup(func() { reader.Close() })
	return reader
}

// cacheStatus gives what an answer says of the cache: hit, or why the tracker was asked.
func (r *reply) cacheStatus() string {
	for part := range strings.SplitSeq(r.header.Get("Cache-Status"), ";") {
		if part = strings.TrimSpace(part); part == "hit" || strings.HasPrefix(part, "fwd=") {
			return part
		}
	}
	return ""
}
