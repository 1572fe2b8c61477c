package cache

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"portico/mapping"
	"portico/upstream"
)

func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// levels runs a test on the embedded server and on a real one.
func levels(t *testing.T, test func(t *testing.T, options Options)) {
	t.Run("embedded", func(t *testing.T) { test(t, Options{Tracker: "main"}) })
	t.Run("server", func(t *testing.T) { test(t, on(startServer(t))) })
}

func TestSecondReadIsAHit(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		f := &fakeTracker{}
		c := openCache(t, f, options)
		first := mustAsk(t, c, withKey("k"))
		if first.cache.Hit || first.cache.Forward != "miss" || !first.cache.Stored || first.cache.Detail != "cold" {
			t.Errorf("the first answer says %+v", first.cache)
		}
		second := mustAsk(t, c, withKey("k"))
		if !second.cache.Hit || second.cache.Stale || second.cache.Forward != "" || second.cache.Detail != "redis" {
			t.Errorf("the second answer says %+v", second.cache)
		}
		if ttl := second.cache.TTL; ttl <= 50*time.Second || ttl > time.Minute {
			t.Errorf("it stays fresh for %s", ttl)
		}
		if first.text != second.text || first.etag != second.etag || first.etag == "" {
			t.Errorf("they differ: %q %q, %q %q", first.text, first.etag, second.text, second.etag)
		}
		wantCalls(t, f, 1)
	})
}

func TestLocalLevelAnswersWithoutRedis(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		f, calls := &fakeTracker{}, 0
		options.LocalTTL = time.Minute
		options.Observer.Redis = func(operation string, _ time.Duration, _ error) {
			if operation == "read" {
				calls++
			}
		}
		c := settled(t, openCache(t, f, options))
		mustAsk(t, c, withKey("k"))
		for range 10 {
			if a := mustAsk(t, c, withKey("k")); !a.cache.Hit || a.cache.Detail != "local" {
				t.Fatalf("the answer says %+v", a.cache)
			}
		}
		wantCalls(t, f, 1)
		if calls != 1 {
			t.Errorf("Redis was read %d times, want once", calls)
		}
	})
}

func TestWriteOutlivesItsClient(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
	mustAsk(t, c, withKey("k"))
	ctx, hangUp := context.WithCancel(context.Background())
	f.write = func() error { f.version.Add(1); hangUp(); return nil }
	must(t, update(ctx, c, "k"))
	if c.Status().Undelivered {
		t.Error("Redis was not told")
	}
	wantNow(t, f, c, "k", "after the write")
}

func TestClosedCachePassesOn(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
	mustAsk(t, c, withKey("k"))
	must(t, c.Close())
	if err := c.Close(); err != nil {
		t.Fatal("closing again: ", err)
	}
	mustWrite(t, c)
	wantNow(t, f, c, "k", "in the end")
}

func TestErrorsAreNotRemembered(t *testing.T) {
	for _, err := range []*mapping.Error{errBadKey, errNoProduct, errNoComponent, errRefused} {
		f := &fakeTracker{}
		f.scripted(always(err))
		c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
		for i := range 6 {
			request := mapping.FlagTypesRequest{Product: "P", Component: []string{"", "C"}[i%2]}
			a := askFor(context.Background(), c, withKey("k"), request)
			wantCode(t, a.err, err.Code)
			if a.cache.Hit || a.cache.Stored {
				t.Errorf("the error says %+v", a.cache)
			}
		}
		wantCalls(t, f, 6)
	}
}

func TestAnswersDoNotDependOnEachOther(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			reply, err := c.Do(context.Background(), withKey("k"), upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
			if err != nil {
				t.Error(err)
				return
			}
			reply.Replace([]byte("mine"))
			reply.ETag, reply.Cache.Detail = "mine", "mine"
			reply.Close()
		})
	}
	wait.Wait()
	if a := mustAsk(t, c, withKey("k")); strings.Contains(a.text+a.etag+a.cache.Detail, "mine") {
		t.Errorf("the answer is %s, %+v", a.text, a.cache)
	}
}

// wantLogged: where it happened is told, and what is not.
func (l *sharedLog) wantLogged(t *testing.T) {
	t.Helper()
	eventually(t, "the panic is logged", func() bool { return strings.Contains(l.String(), "cache_test.go") })
	if strings.Contains(l.String(), "hunter2") {
		t.Errorf("the log says %s", l)
	}
}

func panics() { panic("the key is hunter2") }

// TestPanicInAFillCostsOneRead: those who wait for a fill that panics get an error, and the next one is answered. A caller whose groups are not
// known for a panic does not share.
func TestPanicInAFillCostsOneRead(t *testing.T) {
	for of, c := range map[string]Options{
		"a fill": {},
		"groups": {Settings: Settings{Scope: ScopeGroup}, Groups: func(context.Context, upstream.Caller) ([]string, error) { panics(); return nil, nil }},
	} {
		f, log := &fakeTracker{}, &sharedLog{}
		cache := openCache(t, f, log.options(c))
		if c.Groups == nil {
			f.scripted(func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error { panics(); return nil })
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if a := ask(cache, withKey("k")); (a.err == nil) != (c.Groups != nil) || a.err != nil && strings.Contains(a.err.Error(), "hunter2") {
					t.Errorf("%s: the error is %v", of, a.err)
				}
			})
		}
		all.Wait()
		log.wantLogged(t)
		f.scripted(nil)
		mustAsk(t, cache, withKey("k"))
	}
}

// TestPanicInARefreshCostsNothing: no read waits for it.
func TestPanicInARefreshCostsNothing(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	log := &sharedLog{}
	o := log.options(Options{})
	o.LocalTTL, o.StaleWhileRevalidate = time.Hour, time.Hour
	c := openAt(t, f, o, clock.now)
	mustAsk(t, c, withKey("k"))
	f.scripted(func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error { panics(); return nil })
	clock.forward(2 * time.Minute)
	eventually(t, "a refresh panics", func() bool {
		clock.forward(refreshPace)
		if a := mustAsk(t, c, withKey("k")); !a.cache.Stale {
			t.Errorf("the answer says %+v", a.cache)
		}
		return f.calls.Load() > 1
	})
	log.wantLogged(t)
	mustAsk(t, c, withKey("k"))
}
