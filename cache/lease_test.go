package cache

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
	"portico/upstream"
)

// onLease does something with the requests of a process for a lease, which are
// counted from 1.
type onLease struct {
	count atomic.Int64
	do    func(n int64, ask func() error) error
}

func (*onLease) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*onLease) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *onLease) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		key, _ := command.Args()[1].(string)
		if !strings.Contains(key, "}:l:") || command.Name() == "get" {
			return next(ctx, command)
		}
		err := h.do(h.count.Add(1), func() error { return next(ctx, command) })
		if err != nil {
			command.SetErr(err)
		}
		return err
	}
}

// leasing gives two processes, of which the second does something with its leases.
func leasing(t *testing.T, f *fakeTracker, s *server, do func(n int64, ask func() error) error) (a, b *Cache) {
	t.Helper()
	options := patient(on(s))
	options.Lease = time.Minute
	a, b = settled(t, openCache(t, f, options)), settled(t, openCache(t, f, options))
	b.remote.client.AddHook(&onLease{do: do})
	return a, b
}

func keysLike(s *server, pattern string) int {
	return len(s.client.Keys(context.Background(), pattern).Val())
}

// TestLateLeaseFindsTheAnswer: a process finds nothing, is held up, and asks for the
// lease when another one's has come and gone.
func TestLateLeaseFindsTheAnswer(t *testing.T) {
	s, f, asked, give := startServer(t), &fakeTracker{}, make(chan struct{}), make(chan struct{})
	a, b := leasing(t, f, s, func(n int64, ask func() error) error {
		if n == 1 {
			close(asked)
			<-give
		}
		return ask()
	})
	late := make(chan answer, 1)
	go func() { late <- ask(b, withKey("k")) }()
	<-asked
	mustAsk(t, a, withKey("k"))
	eventually(t, "the lease is over", func() bool { return keysLike(s, "*}:l:*") == 0 })
	close(give)
	if got := <-late; got.err != nil || !got.cache.Collapsed {
		t.Errorf("the late one says %v, %+v", got.err, got.cache)
	}
	wantCalls(t, f, 1)
}

// TestLeaseThatTimesOut: a process waits for another one's answer, and Redis is late
// just when that comes.
func TestLeaseThatTimesOut(t *testing.T) {
	s, f, entered, finish := startServer(t), &fakeTracker{}, make(chan struct{}), make(chan struct{})
	f.scripted(func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error {
		close(entered) // a second call panics
		<-finish
		return nil
	})
	a, b := leasing(t, f, s, func(n int64, ask func() error) error {
		if n != 3 {
			return ask()
		}
		close(finish)
		eventually(t, "the answer is there", func() bool { return keysLike(s, "*}:v:*") == 1 })
		return context.DeadlineExceeded
	})
	first := make(chan answer, 1)
	go func() { first <- ask(a, withKey("k")) }()
	<-entered
	if got := mustAsk(t, b, withKey("k")); !got.cache.Collapsed {
		t.Errorf("the other one says %+v", got.cache)
	}
	<-first
	wantCalls(t, f, 1)
}

// TestNoLeaseToBeHad: where Redis never says who has the lease, the tracker is asked.
func TestNoLeaseToBeHad(t *testing.T) {
	for name, err := range map[string]error{"late": context.DeadlineExceeded, "pool exhausted": redis.ErrPoolExhausted} {
		s, f := startServer(t), &fakeTracker{}
		_, b := leasing(t, f, s, func(int64, func() error) error { return err })
		begun := time.Now()
		mustAsk(t, b, withKey("k"))
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: the read took %v", name, took)
		}
	}
}
