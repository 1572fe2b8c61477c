package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// built is the program with the folder that it is in.
var (
	buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "portico-test-") })
	built    = sync.OnceValues(build)
)

func build() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	return Build(dir)
}

// Build builds the program into a folder, with the flags that the Makefile builds it with, so that nothing is compiled twice
// on a machine that has built it before.
func Build(dir string) (program string, err error) {
	program = filepath.Join(dir, "portico")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", program, "portico/cmd/portico")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return program, nil
}

// Main runs the tests of a package and takes away what was built for them. It is
// for TestMain, which exits with what it gives.
func Main(m *testing.M) int {
	defer func() {
		if dir, err := buildDir(); err == nil {
			_ = os.RemoveAll(dir)
		}
	}()
	return m.Run()
}

// Portico gives the program, which is built once for all tests of a package.
func Portico(t testing.TB) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// Tracker runs the reference tracker at an address and gives where it is.
func Tracker(t testing.TB, address string, args ...string) (p *Process, base string) {
	t.Helper()
	p = Launch(t, Spec{
		Program: Portico(t), Args: append([]string{"tracker", "--listen", address}, args...),
		Ready: func(*Process) bool { return Listens(address) },
	})
	return p, "http://" + address
}

// Facade is a running `portico serve`, or another command that says where it listens.
type Facade struct {
	*Process
	// Clients and Operators are the bases of its two listeners.
	Clients, Operators string
}

// Serve runs a command of Portico that serves. The addresses are chosen here. env
// are settings such as "CACHE_SCOPE=off".
func Serve(t testing.TB, env []string, command string, args ...string) *Facade {
	t.Helper()
	return ServeVia(t, nil, env, command, args...)
}

// ServeVia is Serve by another program with arguments, which runs those that follow.
func ServeVia(t testing.TB, via, env []string, command string, args ...string) *Facade {
	t.Helper()
	clients, operators := FreeAddress(t), FreeAddress(t)
	line := append(slices.Clone(via), Portico(t), command, "--listen", clients, "--admin-listen", operators)
	program, err := exec.LookPath(line[0])
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{
		Program: program, Args: append(line[1:], args...),
		Ready: func(*Process) bool { return Listens(clients) && Listens(operators) },
	}
	for _, one := range env {
		spec.Env = append(spec.Env, "PORTICO_"+one)
	}
	f := &Facade{Clients: "http://" + clients, Operators: "http://" + operators}
	t.Cleanup(func() {
		if f.Process != nil {
			onlyJSON(t, f.Err.String())
		}
	})
	f.Process = Launch(t, spec)
	return f
}

// onlyJSON checks that a log is one for machines.
func onlyJSON(t testing.TB, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
}

// Redis runs a real redis-server at an address, with more arguments, and saves nothing to disk.
func Redis(t testing.TB, address string, args ...string) *Process {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("these tests need a real redis-server in the PATH: ", err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return Launch(t, Spec{
		Program: binary, Args: append([]string{"--port", port, "--bind", "127.0.0.1", "--save", ""}, args...),
		Ready: func(*Process) bool { return AnswersPing(address) },
	})
}

// Listens reports whether connections are accepted at an address.
func Listens(address string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// AnswersPing tells whether a redis-server serves.
func AnswersPing(address string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	answer := make([]byte, 5)
	_, sent := c.Write([]byte("PING\r\n"))
	_, got := c.Read(answer)
	return errors.Join(sent, got) == nil && (string(answer) == "+PONG" || string(answer) == "-NOAU")
}
