package cache

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
	"portico/upstream"
)

// crowd lets many clients read at once and gives how long each waited.
func crowd(t *testing.T, clients int, caches ...*Cache) []time.Duration {
	t.Helper()
	var wait sync.WaitGroup
	took, begin := make([]time.Duration, clients), make(chan struct{})
	for i := range clients {
		wait.Go(func() {
			<-begin
			start := time.Now()
			if a := ask(caches[i%len(caches)], withKey("k")); a.err != nil {
				t.Error(a.err)
			}
			took[i] = time.Since(start)
		})
	}
	close(begin)
	wait.Wait()
	slices.Sort(took)
	return took
}

func slowly(d time.Duration) func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error {
	return func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error {
		time.Sleep(d)
		return nil
	}
}

// trackerTime is how long the tracker takes in the tests of crowds.
const trackerTime = time.Second

// timely gives a cold cache to a crowd up to three times, as this machine may be busy
// with something else, and wants no client to wait for as long as a second call would
// take; test/bench measures how long it is. The tracker may be asked once each time.
func timely(t *testing.T, open func(f *fakeTracker) []*Cache) {
	t.Helper()
	var slowest time.Duration
	for range 3 {
		f := &fakeTracker{}
		f.scripted(slowly(trackerTime))
		took := crowd(t, 500, open(f)...)
		wantCalls(t, f, 1)
		slowest = took[len(took)*99/100]
		if slowest < 2*trackerTime {
			return
		}
	}
	t.Errorf("the slowest of a hundred waited %s", slowest)
}

func TestCrowd(t *testing.T) {
	for name, c := range map[string]struct {
		localTTL  time.Duration
		processes int
	}{"local": {time.Second, 1}, "redis": {0, 1}, "two processes": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			timely(t, func(f *fakeTracker) (caches []*Cache) {
				options := on(startServer(t))
				options.LocalTTL, options.Lease = c.localTTL, time.Minute
				for range c.processes {
					caches = append(caches, settled(t, openCache(t, f, options)))
				}
				return caches
			})
		})
	}
}

func TestCrowdSaysThatItIsOne(t *testing.T) {
	f, entered, hold := &fakeTracker{}, make(chan struct{}), make(chan struct{})
	f.scripted(func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error {
		entered <- struct{}{}
		<-hold
		return nil
	})
	c := settled(t, openCache(t, f, Options{}))
	round := 0
	eventually(t, "a second read joins the first", func() bool { // which it may be too late for
		round++
		key, first, second := withKey(strconv.Itoa(round)), make(chan answer, 1), make(chan answer, 1)
		go func() { first <- ask(c, key) }()
		<-entered
		go func() { second <- ask(c, key) }()
		time.Sleep(50 * time.Millisecond)
		hold <- struct{}{}
		a, b := <-first, <-second
		if a.cache.Forward != "miss" || a.cache.Hit || a.cache.Collapsed == b.cache.Hit {
			t.Errorf("the answers say %+v and %+v", a.cache, b.cache)
		}
		return a.cache.Collapsed && b.cache.Collapsed && b.cache.Forward == "miss" && !b.cache.Hit
	})
}

// TestFillOutlivesItsClient: who asked first hangs up, and the others get the
// answer all the same.
func TestFillOutlivesItsClient(t *testing.T) {
	f, entered, hold := &fakeTracker{}, make(chan struct{}), make(chan struct{})
	f.scripted(func(ctx context.Context, _ upstream.Caller, _ mapping.FlagTypesRequest) error {
		close(entered)
		select {
		case <-hold:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	c := settled(t, openCache(t, f, Options{}))
	ctx, hangUp := context.WithCancel(context.Background())
	first, second := make(chan error), make(chan error)
	go func() { first <- askFor(ctx, c, withKey("k"), mapping.FlagTypesRequest{Product: "P"}).err }()
	<-entered
	go func() { second <- ask(c, withKey("k")).err }()
	hangUp()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error("who hung up got ", err)
	}
	close(hold)
	if err := <-second; err != nil {
		t.Error(err)
	}
	wantCalls(t, f, 1)
}

// TestDeadLeaseDelaysBriefly: another process took the lease and died. While the tracker fails, no read waits for a lease.
func TestDeadLeaseDelaysBriefly(t *testing.T) {
	t.Parallel()
	for failing, bounds := range map[bool][2]time.Duration{false: {200 * time.Millisecond, 15 * time.Second}, true: {0, 20 * time.Second}} {
		s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
		options := on(s)
		options.Lease = 4 * time.Second
		if failing {
			options.Lease = time.Minute
		}
		c := openCache(t, f, options)
		mustAsk(t, c, withKey("other"))
		caller := new(upstream.Caller)
		*caller = withKey("k")
		r := &read{key: key{scope: c.credentialScope(caller), product: "P"}}
		r.request.Product = "P"
		found := c.lookup(ctx, r)
		if held, err := c.lease(ctx, &found); !held {
			t.Fatal("no lease: ", err)
		}
		c.setFailing(failing)
		start := time.Now()
		mustAsk(t, c, withKey("k"))
		if took := time.Since(start); took < bounds[0] || took > bounds[1] {
			t.Errorf("tracker failing %v: the read took %s", failing, took)
		}
		wantCalls(t, f, 2)
	}
}

// TestFailureDoesNotHoldTheLease: the first process fails, the second tries at
// once.
func TestFailureDoesNotHoldTheLease(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	options := on(s)
	options.Lease = time.Minute
	a, b := openCache(t, f, options), openCache(t, f, options)
	f.scripted(always(errRefused))
	wantCode(t, ask(a, withKey("k")).err, errRefused.Code)
	f.scripted(nil)
	mustAsk(t, b, withKey("k"))
}

func TestHungFillEndsWithTheCache(t *testing.T) {
	f, entered := &fakeTracker{}, make(chan struct{})
	f.scripted(func(ctx context.Context, _ upstream.Caller, _ mapping.FlagTypesRequest) error {
		close(entered)
		<-ctx.Done()
		f.scripted(nil)
		return ctx.Err()
	})
	c := openCache(t, f, Options{})
	result := make(chan error)
	go func() { result <- ask(c, withKey("k")).err }()
	<-entered
	c.Close()
	if err := <-result; err != nil {
		t.Error("a read while the cache closes fails: ", err)
	}
}

// leasing gives two processes, of which the second does something with its requests for a lease, which are counted from 1.
func leasing(t *testing.T, f *fakeTracker, s *server, do func(n int64, ask func() error) error) (a, b *Cache) {
	t.Helper()
	options, count := on(s), atomic.Int64{}
	options.Lease = time.Minute
	a, b = settled(t, openCache(t, f, options)), settled(t, openCache(t, f, options))
	b.remote.client.AddHook(onCommand(func(command redis.Cmder, run func() error) error {
		key, _ := command.Args()[1].(string)
		if !strings.Contains(key, "}:l:") || command.Name() == "get" {
			return run()
		}
		return do(count.Add(1), run)
	}))
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

// TestOwnLeaseIsNotWaitedFor: a process gets the lease late, and cannot find out then whether there is a response. It asks the tracker, and does
// not wait for a lease that is its own.
func TestOwnLeaseIsNotWaitedFor(t *testing.T) {
	s, f, at, step := startServer(t), &fakeTracker{}, &clock{}, atomic.Int64{}
	options := on(s)
	options.Lease = time.Minute
	c := settled(t, openAt(t, f, options, at.now))
	c.remote.client.AddHook(onCommand(func(command redis.Cmder, run func() error) error {
		key, _ := command.Args()[1].(string)
		switch {
		case strings.Contains(key, "}:l:") && step.CompareAndSwap(0, 1):
			at.forward(time.Second)
		case strings.Contains(key, "}:v:") && step.CompareAndSwap(1, 2):
			return context.DeadlineExceeded
		}
		return run()
	}))
	begun := time.Now()
	mustAsk(t, c, withKey("k"))
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the read took %v", took)
	}
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
