package cache

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	processes "portico/test/process"
)

// server is a real redis-server, a process of its own.
type server struct {
	t      testing.TB
	dir    string
	addr   string
	args   []string
	cmd    *exec.Cmd
	client *redis.Client
}

// startServer starts a redis-server on a free port, with nothing saved to disk.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), addr: freeAddr(t), args: args}
	s.client = redis.NewClient(&redis.Options{Addr: s.addr, DialerRetries: 1, MaxRetries: -1, DisableIdentity: true})
	s.start()
	t.Cleanup(func() {
		s.client.Close()
		s.kill()
	})
	return s
}

// freeAddr gives a free address that no other test gets.
func freeAddr(t testing.TB) string { return processes.FreeAddress(t) }

func (s *server) start(more ...string) {
	s.t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Fatal("these tests need a real redis-server in the PATH: ", err)
	}
	_, port, _ := net.SplitHostPort(s.addr)
	args := append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", s.dir}, s.args...)
	s.cmd = exec.Command(binary, append(args, more...)...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "redis-server answers", func() bool {
		err := s.client.Ping(context.Background()).Err()
		return err == nil || redis.IsAuthError(err)
	})
}

// kill ends the process at once.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

func (s *server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// pause makes the process stand still with its connections open.
func (s *server) pause()  { s.signal(syscall.SIGSTOP) }
func (s *server) resume() { s.signal(syscall.SIGCONT) }

// everything gives all keys and values as one text.
func (s *server) everything() string {
	s.t.Helper()
	ctx := context.Background()
	keys, err := s.client.Keys(ctx, "*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	var all bytes.Buffer
	for _, key := range keys {
		value, err := s.client.Dump(ctx, key).Result()
		if err != nil && err != redis.Nil {
			s.t.Fatal(err)
		}
		fmt.Fprintln(&all, key, value)
	}
	return all.String()
}

// eventually waits for something that other goroutines or processes bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatal("this did not come about: ", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
