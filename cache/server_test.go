package cache

import (
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	processes "portico/test/process"
)

// server is a real redis-server, a process of its own.
type server struct {
	*processes.Process
	t      testing.TB
	addr   string
	args   []string
	client *redis.Client
}

// startServer starts a redis-server on a free port.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, addr: freeAddr(t), args: args}
	s.Process = processes.Redis(t, s.addr, args...)
	s.client = redis.NewClient(&redis.Options{Addr: s.addr, DialerRetries: 1, MaxRetries: -1, DisableIdentity: true})
	t.Cleanup(func() { _ = s.client.Close() })
	return s
}

// freeAddr gives a free address that no other test gets.
func freeAddr(t testing.TB) string { return processes.FreeAddress(t) }

func (s *server) start() { s.Start(s.t) }

// kill ends the process at once.
func (s *server) kill() { s.Kill(s.t) }

// pause makes the process stand still with its connections open.
func (s *server) pause()  { s.Signal(s.t, syscall.SIGSTOP) }
func (s *server) resume() { s.Signal(s.t, syscall.SIGCONT) }

// eventually waits for something that other goroutines or processes bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	processes.Eventually(t, what, ok)
}
