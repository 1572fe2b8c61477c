package process

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a program may take to begin, to end, or to bring
// something about.
const patience = 2 * time.Minute

// Spec says what to run.
type Spec struct {
	// Program is the path of a binary.
	Program string
	Args    []string
	// Env are variables beyond PATH and TMPDIR.
	Env []string
	// Dir is the working directory; empty means one of the program's own.
	Dir string
	// Ready tells whether the program serves; nil means from the start.
	Ready func(*Process) bool
	// Fails says that the program may end with an error by itself.
	Fails bool
}

// Process is a running program.
type Process struct {
	// Out and Err are what it has written to standard output and error.
	Out, Err Output
	// Dir is the place for its temporary files, and its working directory unless Spec names one.
	Dir string

	spec Spec

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   chan struct{}
	exit   error
	killed bool
}

// outputMost is how much of what a program writes is kept, in bytes.
const outputMost = 16 << 20

// Output collects what a program writes; of very much, the end. It is safe for concurrent use.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() > outputMost {
		o.text.Next(outputMost / 2)
	}
	return o.text.Write(p)
}

// String gives all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Launch starts a program that ends with the test, by SIGTERM, which it has to
// obey, and waits until it is ready.
func Launch(t testing.TB, spec Spec) *Process {
	t.Helper()
	p := &Process{spec: spec, Dir: t.TempDir()}
	t.Cleanup(func() { p.Stop(t) })
	p.Start(t)
	return p
}

// Start starts the program again after Stop or Kill, in the same way.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	if err := p.Begin(); err != nil {
		t.Fatal(err)
	}
}

// Begin is Start for those who go on when the program does not.
func (p *Process) Begin() error {
	cmd := exec.CommandContext(context.Background(), p.spec.Program, p.spec.Args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &p.Out, &p.Err, cmp.Or(p.spec.Dir, p.Dir)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + p.Dir}, p.spec.Env...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name(), err)
	}
	done := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.done, p.exit, p.killed = cmd, done, nil, false
	p.mu.Unlock()
	go func() {
		defer close(done)
		err := cmd.Wait()
		p.mu.Lock()
		p.exit = err
		p.mu.Unlock()
	}()
	return p.await()
}

// await waits until the program is ready.
func (p *Process) await() error {
	if p.spec.Ready == nil {
		return nil
	}
	for end := time.Now().Add(patience); !p.spec.Ready(p); time.Sleep(5 * time.Millisecond) {
		if p.Ended() && !p.spec.Ready(p) {
			return fmt.Errorf("%s ended at once:\n%s%s", p.name(), &p.Out, &p.Err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not get ready:\n%s%s", p.name(), &p.Out, &p.Err)
		}
	}
	return nil
}

func (p *Process) name() string {
	return filepath.Base(p.spec.Program) + " " + strings.Join(p.spec.Args, " ")
}

// PID is the number of the running program.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Ended tells whether the program is over.
func (p *Process) Ended() bool {
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Wait waits for the program to end by itself and gives its exit code.
func (p *Process) Wait(t testing.TB, most time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(most):
		t.Fatalf("%s did not end within %v:\n%s%s", p.name(), most, &p.Out, &p.Err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal.
func (p *Process) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal %s: %v", p.name(), err)
	}
}

// Kill ends the program at once, as a crash does.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	p.Signal(t, syscall.SIGKILL)
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	<-done
}

// Stop tells the program to end and sees that it does, and well.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	cmd, done := p.cmd, p.done
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	// It may have ended by itself, and a stopped one would never hear of its end.
	_ = cmd.Process.Signal(syscall.SIGCONT)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-done
		t.Errorf("%s did not end when it was told to:\n%s", p.name(), &p.Err)
	}
	if !p.killed && !p.spec.Fails && p.exit != nil {
		t.Errorf("%s ended with %v:\n%s", p.name(), p.exit, &p.Err)
	}
	if said := p.Err.String(); strings.Contains(said, "panic:") {
		t.Errorf("%s panicked:\n%s", p.name(), said)
	}
}

// Must ends the test at an error. Test packages give it the short name must.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// File writes a file of its own for the test.
func File(t testing.TB, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// Eventually waits for something that other processes bring about.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("this did not come about: ", what)
		}
	}
}

// FreeAddress gives a free address of this machine, for one test.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, release, err := ReserveAddress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return address
}

// ReserveAddress gives a free address of this machine. It is
// taken from outside the range that the system gives to connections, so that
// no other program gets it while its owner is started again. Other tests do not get it before
// it is released: the UDP port of the same number is held, whatever process they run in.
func ReserveAddress(ctx context.Context) (address string, release func(), err error) {
	var network net.ListenConfig
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(22000))
		taken, err := network.ListenPacket(ctx, "udp", address)
		if err != nil {
			continue
		}
		if l, err := network.Listen(ctx, "tcp", address); err == nil {
			_ = l.Close()
			return address, func() { _ = taken.Close() }, nil
		}
		_ = taken.Close()
	}
	return "", nil, errors.New("there is no free port")
}
