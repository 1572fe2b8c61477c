package cache

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
	"portico/upstream"
)

// ageing gives a cache whose clock the test moves, with and without local level.
func ageing(t *testing.T, options Options, test func(t *testing.T, f *fakeTracker, c *Cache, clock *clock)) {
	for name, ttl := range map[string]time.Duration{"redis": 0, "local": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			f, clock := &fakeTracker{}, &clock{}
			options.LocalTTL = ttl
			// The clock of the server does not follow the test's.
			options.Lease, options.Redis = 10*time.Millisecond, on(startServer(t)).Redis
			c := settled(t, openAt(t, f, options, clock.now))
			test(t, f, c, clock)
		})
	}
}

var stalest = Options{Settings: Settings{TTL: time.Minute, StaleWhileRevalidate: time.Minute, StaleIfError: time.Hour}}

// TestOldAnswersAreReplaced: beyond its lifetime, and the time in which it may be given while a new one is fetched, an answer is no hit.
func TestOldAnswersAreReplaced(t *testing.T) {
	for _, c := range []struct {
		options Options
		later   time.Duration
		forward string
	}{{Options{Settings: Settings{TTL: time.Minute}}, time.Minute, forwardMiss}, {stalest, 10 * time.Minute, forwardStale}} {
		ageing(t, c.options, func(t *testing.T, f *fakeTracker, cache *Cache, clock *clock) {
			mustAsk(t, cache, withKey("k"))
			f.version.Add(1)
			clock.forward(c.later)
			if a := mustAsk(t, cache, withKey("k")); a.cache.Hit || a.cache.Forward != c.forward || !strings.Contains(a.text, f.now()) {
				t.Errorf("the answer is %s, %+v", a.text, a.cache)
			}
			wantCalls(t, f, 2)
		})
	}
}

func TestLifetimesAreSpread(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{Settings: Settings{TTL: time.Hour}})
	shortest, longest := time.Hour, time.Duration(0)
	for range 100 {
		ttl := mustAsk(t, c, withKey("k")).cache.TTL
		shortest, longest = min(shortest, ttl), max(longest, ttl)
		must(t, c.Purge(context.Background(), ""))
	}
	if longest > time.Hour || shortest < 54*time.Minute-time.Second || longest-shortest < time.Minute {
		t.Errorf("answers live from %s to %s", shortest, longest)
	}
}

func TestStaleWhileRevalidate(t *testing.T) {
	ageing(t, stalest, func(t *testing.T, f *fakeTracker, c *Cache, clock *clock) {
		mustAsk(t, c, withKey("k"))
		f.version.Add(1)
		clock.forward(90 * time.Second)
		a := mustAsk(t, c, withKey("k"))
		if !a.cache.Hit || !a.cache.Stale || a.cache.Detail != "stale-while-revalidate" || a.cache.TTL >= 0 {
			t.Errorf("the stale answer says %+v", a.cache)
		}
		if a.cache.Age < 90*time.Second || !strings.Contains(a.text, `"v0"`) {
			t.Errorf("the stale answer is %s, %+v", a.text, a.cache)
		}
		eventually(t, "the new answer is given", func() bool {
			a := mustAsk(t, c, withKey("k"))
			return !a.cache.Stale && strings.Contains(a.text, f.now())
		})
		wantCalls(t, f, 2)
	})
}

func TestStaleIfError(t *testing.T) {
	hung := func(ctx context.Context, _ upstream.Caller, _ mapping.FlagTypesRequest) error {
		<-ctx.Done()
		return ctx.Err()
	}
	scripts := map[string]func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error{
		"refused":  always(errRefused),
		"status":   always(&mapping.Error{Code: 100500, Status: 500, Message: "the tracker fails"}),
		"overload": always(&mapping.Error{Code: 200503, Status: 503, Reason: mapping.ReasonOverload}),
		"spare me": always(&mapping.Error{Code: 200429, Status: 429, Reason: mapping.ReasonWebServer}),
		"unknown":  always(errors.New("something else")),
		"hung":     hung,
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			options := stalest
			if name == "hung" {
				options.FillTimeout = time.Second
			}
			ageing(t, options, func(t *testing.T, f *fakeTracker, c *Cache, clock *clock) {
				mustAsk(t, c, withKey("k"))
				f.scripted(script)
				clock.forward(10 * time.Minute)
				start := time.Now()
				for range 50 {
					a := mustAsk(t, c, withKey("k"))
					if !a.cache.Hit || !a.cache.Stale || a.cache.Detail != "stale-if-error" || a.cache.TTL >= 0 {
						t.Fatalf("the answer says %+v", a.cache)
					}
				}
				if took := time.Since(start); took > 20*patience { // each of them may wait for half of it
					t.Errorf("50 reads took %s", took)
				}
				f.scripted(nil)
				clock.forward(2 * refreshPace)
				f.version.Add(1)
				eventually(t, "the tracker is well again", func() bool {
					clock.forward(time.Second)
					return strings.Contains(mustAsk(t, c, withKey("k")).text, f.now())
				})
			})
		})
	}
}

// TestLateRedisWhileTheTrackerFails: one command of Redis that fails does not fail a read for which there is an old answer.
func TestLateRedisWhileTheTrackerFails(t *testing.T) {
	s, f, clock := startServer(t), &fakeTracker{}, &clock{}
	options := stalest
	options.Redis = on(s).Redis
	c := settled(t, openAt(t, f, options, clock.now))
	mustAsk(t, c, withKey("k"))
	f.scripted(always(errRefused))
	clock.forward(10 * time.Minute)
	var late atomic.Bool
	c.remote.client.AddHook(onCommand(func(command redis.Cmder, run func() error) error {
		if strings.Contains(command.String(), valuePart) && late.CompareAndSwap(true, false) {
			return context.DeadlineExceeded
		}
		return run()
	}))
	late.Store(true)
	if a := mustAsk(t, c, withKey("k")); late.Load() || !a.cache.Hit || a.cache.Detail != detailIfError {
		t.Errorf("the answer says %+v", a.cache)
	}
}

// TestFillTimeout: a call of the tracker ends in time, though the client would wait.
func TestFillTimeout(t *testing.T) {
	var left time.Duration
	f := &fakeTracker{}
	f.scripted(func(ctx context.Context, _ upstream.Caller, _ mapping.FlagTypesRequest) error {
		end, _ := ctx.Deadline()
		left = time.Until(end)
		return errRefused
	})
	c := openCache(t, f, Options{FillTimeout: 20 * time.Second})
	wantCode(t, ask(c, withKey("k")).err, errRefused.Code)
	if left <= 0 || left > 20*time.Second {
		t.Errorf("the call may take %s", left)
	}
}

// TestWhatEndsAnAnswer: nothing is left to fall back on after stale_if_error, after a write, and after a refusal: a key is revoked, a product
// goes out of sight.
func TestWhatEndsAnAnswer(t *testing.T) {
	refused := func(refusal *mapping.Error) func(*testing.T, *fakeTracker, *Cache) {
		return func(t *testing.T, f *fakeTracker, c *Cache) {
			f.scripted(always(refusal))
			wantCode(t, ask(c, withKey("k")).err, refusal.Code)
		}
	}
	for name, c := range map[string]struct {
		before, later time.Duration
		end           func(*testing.T, *fakeTracker, *Cache)
	}{
		"time":       {0, 2 * time.Hour, func(*testing.T, *fakeTracker, *Cache) {}},
		"a write":    {0, 90 * time.Second, func(t *testing.T, _ *fakeTracker, c *Cache) { mustWrite(t, c) }},
		"bad key":    {10 * time.Minute, 0, refused(errBadKey)},
		"no product": {10 * time.Minute, 0, refused(errNoProduct)},
		"web server": {10 * time.Minute, 0, refused(mapping.RefusedByServer(http.StatusForbidden))},
	} {
		t.Run(name, func(t *testing.T) {
			ageing(t, stalest, func(t *testing.T, f *fakeTracker, cache *Cache, clock *clock) {
				mustAsk(t, cache, withKey("k"))
				clock.forward(c.before)
				c.end(t, f, cache)
				f.scripted(always(errRefused))
				clock.forward(c.later)
				wantCode(t, ask(cache, withKey("k")).err, errRefused.Code)
			})
		})
	}
}

// TestWhatEndsNoSharedAnswer: Portico or a web server refuses the request of one anonymous caller, which is about its headers or its address.
func TestWhatEndsNoSharedAnswer(t *testing.T) {
	for _, refusal := range []*mapping.Error{errLongHeader, mapping.RefusedByServer(http.StatusForbidden)} {
		ageing(t, stalest, func(t *testing.T, f *fakeTracker, c *Cache, clock *clock) {
			mustAsk(t, c, withKey(""))
			clock.forward(10 * time.Minute)
			f.scripted(always(refusal))
			wantCode(t, ask(c, withKey("")).err, refusal.Code)
			f.scripted(always(errRefused))
			if a := mustAsk(t, c, withKey("")); !a.cache.Stale {
				t.Errorf("after %d others get %+v", refusal.Code, a.cache)
			}
		})
	}
}

func TestRefusalInTheBackgroundEndsTheAnswer(t *testing.T) {
	ageing(t, stalest, func(t *testing.T, f *fakeTracker, c *Cache, clock *clock) {
		mustAsk(t, c, withKey("k"))
		f.scripted(always(errBadKey))
		clock.forward(90 * time.Second)
		mustAsk(t, c, withKey("k"))
		eventually(t, "the key is refused", func() bool {
			err := ask(c, withKey("k")).err
			if err != nil {
				wantCode(t, err, 306)
			}
			return err != nil
		})
	})
}

func TestRevalidationIsForcedButNotTooOften(t *testing.T) {
	ageing(t, Options{}, func(t *testing.T, f *fakeTracker, c *Cache, clock *clock) {
		ctx, request := t.Context(), mapping.FlagTypesRequest{Product: "P"}
		mustAsk(t, c, withKey("k"))
		mustAsk(t, c, withKey("other"))
		f.version.Add(1)
		a := askFresh(ctx, c, withKey("k"), request)
		if a.cache.Hit || a.cache.Forward != "request" || !a.cache.Stored || !strings.Contains(a.text, f.now()) {
			t.Errorf("the answer is %s, %+v, %v", a.text, a.cache, a.err)
		}
		if a := mustAsk(t, c, withKey("k")); !a.cache.Hit || !strings.Contains(a.text, f.now()) {
			t.Errorf("afterwards the answer is %s, %+v", a.text, a.cache)
		}
		eventually(t, "one read in a second is forced", func() bool {
			start := time.Now()
			askFresh(ctx, c, withKey("k"), request)
			a := askFresh(ctx, c, withKey("k"), request)
			if !a.cache.Hit && time.Since(start) < revalidateEvery {
				t.Fatalf("at once again the answer says %+v", a.cache)
			}
			return a.cache.Hit
		})
		if a := askFresh(ctx, c, withKey("other"), request); a.cache.Hit {
			t.Errorf("for another caller the answer says %+v", a.cache)
		}
		for _, product := range []string{"Q", "R"} { // a script may read one product after the other
			of := mapping.FlagTypesRequest{Product: product}
			askFor(ctx, c, withKey("k"), of)
			f.version.Add(1)
			if a := askFresh(ctx, c, withKey("k"), of); a.cache.Hit || !strings.Contains(a.text, f.now()) {
				t.Errorf("of another product the answer is %s, %+v", a.text, a.cache)
			}
		}
		eventually(t, "a second later a read is forced again", func() bool { return !askFresh(ctx, c, withKey("k"), request).cache.Hit })
	})
}

func TestRevalidationOfASickTracker(t *testing.T) {
	f := &fakeTracker{}
	c := openCache(t, f, Options{})
	mustAsk(t, c, withKey("k"))
	f.scripted(always(errRefused))
	a := askFresh(t.Context(), c, withKey("k"), mapping.FlagTypesRequest{Product: "P"})
	if a.err != nil || !a.cache.Hit || a.cache.Stale {
		t.Errorf("the answer says %+v, %v", a.cache, a.err)
	}
}

// TestPeek: what is in memory is given without the tracker and without Redis, and nothing else is.
func TestPeek(t *testing.T) {
	f := &fakeTracker{}
	s := startServer(t)
	options := on(s)
	options.LocalTTL = time.Minute
	c := settled(t, openCache(t, f, options))
	request := mapping.FlagTypesRequest{Product: "P"}
	peek := func(caller upstream.Caller) (mapping.Reply, error) { return c.Peek(t.Context(), caller, request) }
	if reply, err := peek(withKey("k")); !errors.Is(err, upstream.ErrNotLocal) {
		t.Fatalf("an empty memory gives %+v, %v", reply.Cache, err)
	}
	want := askFor(t.Context(), c, withKey("k"), request)
	s.pause()
	defer s.resume()
	reply, err := peek(withKey("k"))
	if err != nil || !reply.Cache.Hit || reply.Cache.Detail != "local" {
		t.Fatalf("the memory gives %+v, %v", reply.Cache, err)
	}
	var text strings.Builder
	if _, err := reply.WriteTo(&text); err != nil || text.String() != want.text {
		t.Errorf("the memory gives %s, %v, want %s", text.String(), err, want.text)
	}
	if reply, err := peek(withKey("other")); err == nil {
		t.Errorf("another caller gets %+v", reply.Cache)
	}
	if err := c.Purge(t.Context(), ""); err == nil {
		t.Error("Redis stands still and heard of a change")
	}
	if reply, err := peek(withKey("k")); err == nil {
		t.Errorf("after a change the memory gives %+v", reply.Cache)
	}
	wantCalls(t, f, 1)
}

// refusingTracker refuses reads as its circuit breaker is open.
type refusingTracker struct {
	*fakeTracker
	open atomic.Bool
}

func (r *refusingTracker) Refuse(upstream.Caller, mapping.Operation) error {
	if r.open.Load() {
		return errRefused
	}
	return nil
}

// TestRefusedColdReads: while the tracker refuses reads, Redis is asked once for a key that it does not have. A tracker that takes reads
// is asked at once.
func TestRefusedColdReads(t *testing.T) {
	f := &refusingTracker{fakeTracker: &fakeTracker{}}
	f.open.Store(true)
	f.scripted(always(errRefused))
	s := startServer(t)
	options := on(s)
	options.LocalTTL = time.Minute
	c := settled(t, openCache(t, f, options))
	request := mapping.FlagTypesRequest{Product: "P"}
	if a := askFor(t.Context(), c, withKey("k"), request); !isFailure(a.err) {
		t.Fatalf("the first read: %v", a.err)
	}
	for range 3 {
		if reply, err := c.Peek(t.Context(), withKey("k"), request); !isFailure(err) || reply.Cache == nil || reply.Cache.Hit {
			t.Errorf("the memory gives %+v, %v", reply.Cache, err)
		}
	}
	wantCalls(t, f.fakeTracker, 1)
	if _, err := c.Peek(t.Context(), withKey("other"), request); !errors.Is(err, upstream.ErrNotLocal) {
		t.Errorf("another caller: %v", err)
	}
	f.open.Store(false)
	f.scripted(nil)
	if a := askFor(t.Context(), c, withKey("k"), request); a.err != nil || a.cache.Hit {
		t.Errorf("the tracker is back: %+v, %v", a.cache, a.err)
	}
	if a := askFor(t.Context(), c, withKey("k"), request); a.err != nil || !a.cache.Hit {
		t.Errorf("after that: %+v, %v", a.cache, a.err)
	}
}

// staleInBoth gives two processes with an answer in their local levels that is stale now.
func staleInBoth(t *testing.T, f *fakeTracker) (a, b *Cache) {
	t.Helper()
	clock := &clock{}
	options := stalest
	options.LocalTTL, options.Lease, options.Redis = 24*time.Hour, time.Hour, on(startServer(t)).Redis
	a, b = settled(t, openAt(t, f, options, clock.now)), settled(t, openAt(t, f, options, clock.now))
	mustAsk(t, a, withKey("k"))
	mustAsk(t, b, withKey("k"))
	wantCalls(t, f, 1)
	eventually(t, "no lease is held", func() bool { return len(leases(t, a)) == 0 })
	clock.forward(90 * time.Second)
	return a, b
}

// askStale asks for the answer that is stale, and waits until it was replaced or could not be.
func askStale(t *testing.T, c *Cache) {
	t.Helper()
	caller := withKey("k")
	k := key{scope: c.credentialScope(&caller), product: "P"}
	h, _ := c.local.GetIfPresent(k)
	if got := mustAsk(t, c, caller); !got.cache.Stale {
		t.Errorf("the answer says %+v", got.cache)
	}
	name := "refresh" + c.keys.value(k) + strconv.FormatUint(h.seen.sequence, 10)
	<-c.fills.DoChan(name, func() (any, error) { return nil, nil })
}

func leases(t *testing.T, c *Cache) []string {
	t.Helper()
	names, err := c.remote.client.Keys(context.Background(), c.keys.prefix+"l:*").Result()
	must(t, err)
	return names
}

// TestRenewedElsewhere: what another process has renewed is not asked for once more.
func TestRenewedElsewhere(t *testing.T) {
	f := &fakeTracker{}
	a, b := staleInBoth(t, f)
	f.version.Add(1)
	for _, c := range []*Cache{a, b} {
		askStale(t, c)
		if got := mustAsk(t, c, withKey("k")); got.cache.Stale || !strings.Contains(got.text, f.now()) {
			t.Errorf("the answer is %s, %+v", got.text, got.cache)
		}
		eventually(t, "no lease is held", func() bool { return len(leases(t, c)) == 0 })
	}
	wantCalls(t, f, 2)
}

// TestSickTrackerIsAskedByOneProcess: the lease of one that could not renew an answer stays.
func TestSickTrackerIsAskedByOneProcess(t *testing.T) {
	f := &fakeTracker{}
	a, b := staleInBoth(t, f)
	f.scripted(always(errRefused))
	askStale(t, a)
	wantCalls(t, f, 2)
	if got := leases(t, a); len(got) != 1 {
		t.Errorf("there are the leases %q", got)
	}
	askStale(t, b)
	wantCalls(t, f, 2)
	time.Sleep(20 * time.Millisecond) // for a lease that is given back beside the reads
	if got := leases(t, a); len(got) != 1 {
		t.Errorf("in the end there are the leases %q", got)
	}
}
