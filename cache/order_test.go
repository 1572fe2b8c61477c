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

// TestUndeliveredChangeIsDistrusted: Redis comes back with what it held before a
// write that it was not told of.
func TestUndeliveredChangeIsDistrusted(t *testing.T) {
	t.Parallel()
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, on(s))
	mustAsk(t, c, withKey("k"))
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit {
		t.Fatalf("the answer says %+v", a.cache)
	}
	s.pause()
	mustWrite(t, c, withKey("k"))
	if !c.Status().Undelivered {
		t.Error("the change counts as delivered")
	}
	s.resume()
	for range 50 {
		if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after a write the read gives %s: %+v", a.text, a.cache)
		}
	}
	eventually(t, "the change is delivered", func() bool { return !c.Status().Undelivered })
	// And others believe it then.
	other := openCache(t, f, on(s))
	if a := mustAsk(t, other, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("another process gives %s", a.text)
	}
}

// TestChangeIsDeliveredWithoutReads: others must not wait for a read here.
func TestChangeIsDeliveredWithoutReads(t *testing.T) {
	t.Parallel()
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, on(s)), openCache(t, f, patient(on(s)))
	mustAsk(t, other, withKey("k"))
	s.pause()
	mustWrite(t, c, withKey("k"))
	s.resume()
	eventually(t, "the other process knows", func() bool {
		return strings.Contains(mustAsk(t, other, withKey("k")).text, f.now())
	})
}

// TestRedisWentBackInTime: a snapshot from before a write is restored, as when a
// replica that lagged takes over. All that the process knows was acknowledged.
func TestRedisWentBackInTime(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, patient(on(s)))
	mustAsk(t, c, withKey("k"))
	mustAsk(t, c, withKey("k"))
	old, err := s.client.Get(ctx, c.keys.generation).Result()
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, c, withKey("k")) // the answer itself is still in Redis
	if err := s.client.Set(ctx, c.keys.generation, old, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("the read gives %s: %+v", a.text, a.cache)
	}
	if now, _ := s.client.Get(ctx, c.keys.generation).Result(); now == old {
		t.Error("the old generation was left standing")
	}
}

// TestSlowReadDoesNotRefill: a read that began before a write ends after it.
func TestSlowReadDoesNotRefill(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		f, made, give := &fakeTracker{}, make(chan struct{}), make(chan struct{})
		options.LocalTTL = time.Minute
		c := openCache(t, f, patient(options))
		mustWrite(t, c, withKey("k"))
		f.after = slowFor("slow", made, give)
		slow := make(chan answer, 1)
		go func() { slow <- ask(c, withKey("slow")) }()
		<-made // the old answer is on its way
		mustWrite(t, c, withKey("k"))
		// A read that begins after the write does not wait for the slow one.
		f.mu.Lock()
		f.after = nil
		f.mu.Unlock()
		if a := mustAsk(t, c, withKey("slow")); !strings.Contains(a.text, f.now()) {
			t.Fatalf("after the write the read gives %s", a.text)
		}
		close(give)
		<-slow
		for range 3 {
			if a := mustAsk(t, c, withKey("slow")); !strings.Contains(a.text, f.now()) || !a.cache.Hit {
				t.Fatalf("after the slow read ended the read gives %s, %+v", a.text, a.cache)
			}
			c.local.InvalidateAll()
		}
	})
}

// holdReads keeps the replies to Redis reads back.
type holdReads struct {
	held, give chan struct{}
	taken      atomic.Bool
}

func (*holdReads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*holdReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *holdReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if command.Name() == "mget" && len(command.Args()) == 7 {
			if h.taken.CompareAndSwap(false, true) {
				close(h.held)
				<-h.give
			}
		}
		return err
	}
}

// TestReadDoesNotJoinALookupFromBeforeAWrite: Redis was asked before the write, and
// its reply arrives after it.
func TestReadDoesNotJoinALookupFromBeforeAWrite(t *testing.T) {
	f, h := &fakeTracker{}, &holdReads{held: make(chan struct{}), give: make(chan struct{})}
	c := settled(t, openCache(t, f, patient(Options{})))
	mustAsk(t, c, withKey("k"))
	c.remote.client.AddHook(h)
	early, late := make(chan answer, 1), make(chan answer, 1)
	go func() { early <- ask(c, withKey("k")) }()
	<-h.held
	mustWrite(t, c, withKey("k"))
	go func() { late <- ask(c, withKey("k")) }()
	select {
	case a := <-late:
		if !strings.Contains(a.text, f.now()) {
			t.Errorf("after the write the read gives %s", a.text)
		}
	case <-time.After(time.Minute):
		t.Error("the read waits for the one from before the write")
	}
	close(h.give)
	<-early
}

// slowFor says on made when the answer for key is made and gives it when told.
func slowFor(key string, made, give chan struct{}) func(caller upstream.Caller) {
	return func(caller upstream.Caller) {
		if caller.Credentials.APIKey == key {
			made <- struct{}{}
			<-give
		}
	}
}

func TestPurgedProductIsAskedForAgain(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	options := patient(on(s))
	options.LocalTTL, options.StaleIfError = time.Minute, time.Hour
	c := settled(t, openCache(t, f, options))
	other := openCache(t, f, patient(on(s)))
	two := mapping.FlagTypesRequest{Product: "Two"}
	mustAsk(t, c, withKey("k"))
	askFor(ctx, c, withKey("k"), two)
	if err := c.Purge(ctx, " p "); err != nil {
		t.Fatal(err)
	}
	if a := askFor(ctx, other, withKey("k"), two); !a.cache.Hit {
		t.Errorf("the other product was purged too: %+v", a.cache)
	}
	if a := mustAsk(t, other, withKey("k")); a.cache.Hit || a.cache.Detail != "generation" {
		t.Errorf("the product was not purged in the other process: %+v", a.cache)
	}
	if a := mustAsk(t, c, withKey("k")); !a.cache.Hit || a.cache.Age > time.Second {
		t.Errorf("the answer says %+v", a.cache)
	}
	must(t, c.Purge(ctx, "P"))
	f.scripted(always(errRefused))
	wantCode(t, ask(c, withKey("k")).err, errRefused.Code) // not even while the tracker fails
}
