package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
	"portico/upstream"
)

// TestPendingWrite: until the outcome of a write is known, no other process gives what was stored before, and what it stores meanwhile
// does not count after it. What goes past the cache counts like what goes through it, and so does a panic.
func TestPendingWrite(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, on(s)), openCache(t, f, on(s))
	through := func(call func() error) {
		f.write = call
		_ = update(t.Context(), c, "k")
	}
	past := func(call func() error) {
		defer func() { _ = recover() }()
		around(c, call)
	}
	succeeds := func() error { return nil }
	for name, each := range map[string]struct {
		write func(call func() error)
		end   func() error
	}{
		"through": {through, succeeds}, "past": {past, succeeds}, "past, lost": {past, func() error { return errLost }},
		"past, refused": {past, func() error { return &mapping.Error{Code: 51, Status: 404} }}, "past, panic": {past, func() error { panic("broken") }},
	} {
		mustAsk(t, other, withKey("k"))
		each.write(func() error {
			if a := ask(other, withKey("k")); a.cache.Hit || a.cache.Detail != detailGeneration {
				t.Errorf("%s: during the write the other process says %+v", name, a.cache)
			}
			f.version.Add(1)
			return each.end()
		})
		if a := mustAsk(t, other, withKey("k")); a.cache.Hit || !strings.Contains(a.text, f.now()) {
			t.Errorf("%s: after it %s, %+v", name, a.text, a.cache)
		}
		wantNow(t, f, c, "k", name)
		if sum := s.client.Get(t.Context(), c.keys.pending).Val(); sum != "0" {
			t.Errorf("%s: %q is left of the pending writes", name, sum)
		}
	}
}

// around tells the cache of a write that went past it.
func around(c *Cache, call func() error) { _ = c.WriteAround(context.Background(), call) }

// TestWriteOfAProcessThatDied: its pending write stays.
func TestWriteOfAProcessThatDied(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, on(s)), openCache(t, f, on(s))
	mustAsk(t, other, withKey("k"))
	must(t, c.addPending(context.Background(), 12345))
	f.version.Add(1)
	wantNow(t, f, other, "k", "the other process")
	wantHit(t, other, "k", "nothing is kept any more")
}

// TestFailedWritesKeepTheCache: writes that surely did nothing leave everything as
// it was, through the cache and past it, however they begin and end in each other's midst.
func TestFailedWritesKeepTheCache(t *testing.T) {
	for name, err := range surelyNothing() {
		t.Run(name, func(t *testing.T) {
			s, f := startServer(t), &fakeTracker{}
			a, b := openCache(t, f, on(s)), openCache(t, f, on(s))
			mustAsk(t, a, withKey("k"))
			// The second write begins in the first and outlives it.
			begun, first := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			f.write = func() error { close(begun); <-first; return err }
			all.Go(func() { _ = update(t.Context(), a, "k") })
			<-begun
			f.mu.Lock()
			f.write = func() error { close(first); all.Wait(); return err }
			f.mu.Unlock()
			if update(t.Context(), b, "k") == nil {
				t.Fatal("the write did not fail")
			}
			f.scripted(always(errRefused))
			around(a, func() error { return err })
			for _, c := range []*Cache{a, b} {
				wantHit(t, c, "k", "after writes that did nothing")
			}
		})
	}
}

func surelyNothing() map[string]error {
	return map[string]error{
		"unreachable":     errRefused,
		"breaker open":    &mapping.Error{Code: mapping.CodeUnavailable, Status: 503, Reason: mapping.ReasonBreakerOpen},
		"overload":        &mapping.Error{Code: mapping.CodeUnavailable, Status: 503, Reason: mapping.ReasonOverload},
		"web server":      &mapping.Error{Code: mapping.CodeURILong, Status: 414, Reason: mapping.ReasonWebServer},
		"too large":       &mapping.Error{Code: mapping.CodeURILong, Status: 414, Reason: mapping.ReasonTooLarge},
		"not expressible": &mapping.Error{Code: mapping.CodeUnsupported, Status: 501, Reason: mapping.ReasonInexpressive},
		"made-up key":     errBadKey,
		"made-up token":   &mapping.Error{Code: mapping.CodeJSON, Status: http.StatusBadRequest},
		"wrapped":         fmt.Errorf("writing: %w", errRefused),
	}
}

// TestWhatAWriteMayHaveDoneCounts: everything else that can go wrong may hide a
// change.
func TestWhatAWriteMayHaveDoneCounts(t *testing.T) {
	for name, err := range map[string]error{
		"lost answer": errLost, "unknown to be reached": &mapping.Error{Status: 504, Reason: mapping.ReasonUnreachable, Unknown: true},
		"timeout":                &mapping.Error{Status: 504, Reason: mapping.ReasonTimeout},
		"bad answer":             &mapping.Error{Status: 502, Reason: mapping.ReasonBadResponse},
		"internal":               &mapping.Error{Status: 500, Reason: mapping.ReasonInternal},
		"canceled":               &mapping.Error{Status: 503, Reason: mapping.ReasonCanceled},
		"trouble":                &mapping.Error{Code: mapping.CodeTrackerFailure, Status: http.StatusInternalServerError},
		"trouble without a code": &mapping.Error{Code: mapping.CodeJSON, Status: http.StatusInternalServerError},
		"no product":             errNoProduct, "foreign": context.Canceled,
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTracker{}
			c := openCache(t, f, Options{Settings: Settings{LocalTTL: time.Minute}})
			mustAsk(t, c, withKey("k"))
			f.write = func() error { f.version.Add(1); return err }
			if update(t.Context(), c, "k") == nil {
				t.Fatal("the write did not fail")
			}
			wantNow(t, f, c, "k", "after the write")
		})
	}
}

// TestUndeliveredChangeStaysPending: others must not believe again what was stored
// before a write of which Redis could not be told.
func TestUndeliveredChangeStaysPending(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, on(s)), openCache(t, f, on(s))
	mustAsk(t, other, withKey("k"))
	c.remote.client.AddHook(onCommand(func(command redis.Cmder, run func() error) error {
		if command.Name() == "eval" {
			return errors.New("refused")
		}
		return run()
	}))
	mustWrite(t, c)
	if !c.Status().Undelivered {
		t.Fatal("the change counts as delivered")
	}
	wantNow(t, f, other, "k", "the other process")
}

// TestUndeliveredChangeIsDistrusted: Redis comes back with what it held before a write that it was not told of. It is told without a
// read here, and others believe it then.
func TestUndeliveredChangeIsDistrusted(t *testing.T) {
	t.Parallel()
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, on(s)), openCache(t, f, on(s))
	for _, reads := range []int{50, 0} {
		mustAsk(t, c, withKey("k"))
		wantHit(t, other, "k", "before the write")
		s.pause()
		mustWrite(t, c)
		if !c.Status().Undelivered {
			t.Error("the change counts as delivered")
		}
		s.resume()
		for range reads {
			wantNow(t, f, c, "k", "after a write")
		}
		eventuallyNow(t, f, other)
		eventually(t, "the change is delivered", func() bool { return !c.Status().Undelivered })
	}
}

// TestRedisWentBackInTime: a snapshot from before a write is restored, as when a
// replica that lagged takes over. All that the process knows was acknowledged.
func TestRedisWentBackInTime(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := openCache(t, f, on(s))
	mustAsk(t, c, withKey("k"))
	mustAsk(t, c, withKey("k"))
	old, err := s.client.Get(ctx, c.keys.generation).Result()
	must(t, err)
	mustWrite(t, c) // the answer itself is still in Redis
	must(t, s.client.Set(ctx, c.keys.generation, old, 0).Err())
	wantNow(t, f, c, "k", "before")
	if now, _ := s.client.Get(ctx, c.keys.generation).Result(); now == old {
		t.Error("the old generation was left standing")
	}
}

// TestSlowReadDoesNotRefill: a read that began before a write ends after it.
func TestSlowReadDoesNotRefill(t *testing.T) {
	levels(t, func(t *testing.T, options Options) {
		f, made, give := &fakeTracker{}, make(chan struct{}), make(chan struct{})
		options.LocalTTL = time.Minute
		c := openCache(t, f, options)
		mustWrite(t, c)
		f.after = func(caller upstream.Caller) {
			if caller.Credentials.APIKey == "slow" {
				made <- struct{}{}
				<-give
			}
		}
		slow := make(chan answer, 1)
		go func() { slow <- ask(c, withKey("slow")) }()
		<-made // the old answer is on its way
		mustWrite(t, c)
		// A read that begins after the write does not wait for the slow one.
		f.mu.Lock()
		f.after = nil
		f.mu.Unlock()
		wantNow(t, f, c, "slow", "after the write")
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

// TestReadDoesNotJoinALookupFromBeforeAWrite: Redis was asked before the write, and
// its reply arrives after it.
func TestReadDoesNotJoinALookupFromBeforeAWrite(t *testing.T) {
	f, held, give := &fakeTracker{}, make(chan struct{}), make(chan struct{})
	c := settled(t, openCache(t, f, Options{}))
	mustAsk(t, c, withKey("k"))
	var taken atomic.Bool
	c.remote.client.AddHook(onCommand(func(command redis.Cmder, run func() error) error {
		err := run()
		if command.Name() == "mget" && len(command.Args()) == 7 && taken.CompareAndSwap(false, true) {
			close(held)
			<-give
		}
		return err
	}))
	early := make(chan answer, 1)
	go func() { early <- ask(c, withKey("k")) }()
	<-held
	mustWrite(t, c)
	wantNow(t, f, c, "k", "after the write") // which would never end if it waited for the one from before
	close(give)
	<-early
}

func TestPurgedProductIsAskedForAgain(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	options := on(s)
	options.LocalTTL, options.StaleIfError = time.Minute, time.Hour
	c := settled(t, openCache(t, f, options))
	other := openCache(t, f, on(s))
	two := mapping.FlagTypesRequest{Product: "Two"}
	mustAsk(t, c, withKey("k"))
	askFor(ctx, c, withKey("k"), two)
	must(t, c.Purge(ctx, " p "))
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

// longLived makes entries live long, in every state.
func longLived(o Options) Options {
	o.TTL, o.LocalTTL, o.StaleWhileRevalidate, o.StaleIfError = time.Hour, time.Hour, time.Hour, time.Hour
	return o
}

// TestUnknownOutcomeEnds: when the write cannot be carried out any more, answers live as
// long as ever.
func TestUnknownOutcomeEnds(t *testing.T) {
	s, f, clock := startServer(t), &fakeTracker{}, &clock{}
	options := longLived(on(s))
	options.FillTimeout = time.Minute
	c := openAt(t, f, options, clock.now)
	f.write = func() error { return errLost }
	_ = update(t.Context(), c, "k")
	left := s.client.PTTL(context.Background(), c.keys.unknown).Val()
	if left <= 3*time.Minute || left > 4*time.Minute {
		t.Errorf("the outcome counts as unknown for %s", left)
	}
	clock.forward(4 * time.Minute)
	must(t, s.client.Del(context.Background(), c.keys.unknown).Err())
	if a := mustAsk(t, c, withKey("k")); a.cache.TTL < time.Minute {
		t.Errorf("the answer says %+v", a.cache)
	}
}

// TestUnknownOutcomeWithoutRedis: the process that wrote knows by itself, and Redis hears of
// it with the change.
func TestUnknownOutcomeWithoutRedis(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := settled(t, openCache(t, f, longLived(on(s))))
	s.kill()
	f.write = func() error { return errLost }
	_ = update(t.Context(), c, "k")
	if a := mustAsk(t, c, withKey("k")); a.cache.TTL > uncertainTTL {
		t.Errorf("the answer says %+v", a.cache)
	}
	s.start()
	eventually(t, "redis knows", func() bool {
		return s.client.PTTL(context.Background(), c.keys.unknown).Val() > 0
	})
}

// TestUnknownOutcomeInAFullRedis: a Redis without memory keeps neither the unknown outcome nor entries, but it takes the change.
func TestUnknownOutcomeInAFullRedis(t *testing.T) {
	s, f, ctx := startServer(t), &fakeTracker{}, context.Background()
	c := settled(t, openCache(t, f, longLived(on(s))))
	mustAsk(t, c, withKey("k"))
	must(t, s.client.ConfigSet(ctx, "maxmemory", "1").Err())
	f.write = func() error { f.version.Add(1); return errLost }
	_ = update(t.Context(), c, "k")
	if c.Status().Undelivered || s.client.Exists(ctx, c.keys.generation).Val() != 0 {
		t.Errorf("a full redis keeps a change from being delivered: %+v", c.Status())
	}
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) || a.cache.TTL > uncertainTTL {
		t.Errorf("the answer is %s, %+v", a.text, a.cache)
	}
}

// TestOutcomeOfAResponseIsKnown: an error that the tracker gives says that it has ended with the write, whatever it did; and what
// it refuses to an anonymous caller changed nothing.
func TestOutcomeOfAResponseIsKnown(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := settled(t, openCache(t, f, longLived(on(s))))
	mustAsk(t, c, withKey("k"))
	f.write = func() error { return &mapping.Error{Code: 51, Status: 404, Message: "no such flag type"} }
	_ = update(t.Context(), c, "")
	wantHit(t, c, "k", "an anonymous caller emptied the cache")
	f.write = func() error { return &mapping.Error{Code: 100500, Status: 500, Message: "it fails"} }
	_ = update(t.Context(), c, "k")
	if a := mustAsk(t, c, withKey("k")); a.cache.Hit || a.cache.TTL <= uncertainTTL {
		t.Errorf("after a failure that is over the answer says %+v", a.cache)
	}
}

// TestEntriesFromBeforeAWriteOfUnknownOutcome serve while the tracker fails, in every process and after several such writes,
// and no more once a write was carried out.
func TestEntriesFromBeforeAWriteOfUnknownOutcome(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	options := on(s)
	options.StaleIfError = time.Hour
	c, other := openCache(t, f, options), openCache(t, f, options)
	mustAsk(t, c, withKey("k"))
	f.scripted(always(errRefused))
	f.write = func() error { return errLost }
	for range 3 {
		_ = update(t.Context(), c, "k")
		for _, each := range []*Cache{c, other} {
			if a := mustAsk(t, each, withKey("k")); a.cache.Detail != detailIfError {
				t.Errorf("after a write of unknown outcome the answer says %+v", a.cache)
			}
		}
	}
	f.write = nil
	mustWrite(t, other)
	for _, each := range []*Cache{c, other} {
		wantCode(t, ask(each, withKey("k")).err, errRefused.Code)
	}
}

// twoTrackers gives the caches of two trackers, of which the second has what is
// written to the first within a minute, and two of that one in another process.
func twoTrackers(t *testing.T, f *fakeTracker, now func() time.Time) (written, copied, elsewhere *Cache) {
	t.Helper()
	s := startServer(t)
	options := longLived(on(s))
	written = openAt(t, f, options, now)
	options.Tracker = "other"
	copied, elsewhere = settled(t, openAt(t, f, options, now)), settled(t, openAt(t, f, options, now))
	written.CopiedTo(time.Minute, copied)
	return written, copied, elsewhere
}

// TestWriteCountsForCopies: what a tracker has by ways of its own is shown by the next
// read of it, in every process.
func TestWriteCountsForCopies(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	written, copied, elsewhere := twoTrackers(t, f, clock.now)
	for name, write := range map[string]func(){
		"through": func() { mustWrite(t, written) },
		"around":  func() { around(written, func() error { f.version.Add(1); return nil }) },
		"answer lost": func() {
			f.write = func() error { f.version.Add(1); return errLost }
			_ = update(t.Context(), written, "k")
			f.write = nil
		},
		"by another":   func() { must(t, update(t.Context(), written, "another")) },
		"of the other": func() { mustWrite(t, copied) },
	} {
		for _, c := range []*Cache{copied, elsewhere} {
			mustAsk(t, c, withKey("k"))
		}
		write()
		if a := mustAsk(t, copied, withKey("k")); !strings.Contains(a.text, f.now()) {
			t.Errorf("%s: the read gives %s, %+v", name, a.text, a.cache)
		}
		eventuallyNow(t, f, elsewhere)
	}
}

// TestWritesThatShowLater: the tracker shows the old text for a while after a write whose answer was lost, and after one at the tracker that it is a
// copy of. That is kept for a moment only, in every process, and for as long as ever afterwards.
func TestWritesThatShowLater(t *testing.T) {
	for name, write := range map[string]func(f *fakeTracker, written, copied *Cache){
		"lost": func(f *fakeTracker, _, copied *Cache) {
			f.write = func() error { return errLost }
			if update(t.Context(), copied, "k") == nil {
				t.Fatal("the write did not fail")
			}
		},
		"at the other tracker": func(f *fakeTracker, written, _ *Cache) {
			f.write = func() error { return nil }
			mustWrite(t, written)
		},
	} {
		f, clock := &fakeTracker{}, &clock{}
		written, copied, elsewhere := twoTrackers(t, f, clock.now)
		write(f, written, copied)
		for _, c := range []*Cache{copied, elsewhere} {
			mustAsk(t, c, withKey("k"))
			wantHit(t, c, "k", name+": it is kept for a moment")
		}
		f.version.Add(1)
		clock.forward(uncertainTTL + time.Millisecond)
		for _, c := range []*Cache{copied, elsewhere} {
			wantNow(t, f, c, "k", name+": after the write was carried out")
		}
		f.scripted(always(errRefused))
		clock.forward(time.Minute / 2)
		if a := mustAsk(t, elsewhere, withKey("k")); !a.cache.Stale || a.cache.Detail != detailIfError {
			t.Errorf("%s: while the tracker is away the answer says %+v", name, a.cache)
		}
		f.scripted(nil)
		clock.forward(10 * time.Minute)
		must(t, copied.remote.client.Del(context.Background(), copied.keys.unknown).Err())
		if a := mustAsk(t, copied, withKey("k")); a.cache.TTL < time.Minute {
			t.Errorf("%s: in the end the answer says %+v", name, a.cache)
		}
	}
}

// TestOutcomeForCopies: a write that surely did nothing leaves their answers. One that may still be carried out is with the copy later than that.
func TestOutcomeForCopies(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	written, copied, _ := twoTrackers(t, f, clock.now)
	mustAsk(t, copied, withKey("k"))
	f.write = func() error { return errBadKey }
	_ = update(t.Context(), written, "k")
	wantHit(t, copied, "k", "after a refused write")
	f.write = func() error { return errLost }
	_ = update(t.Context(), written, "k")
	most := written.options.unknownTime() + time.Minute
	if left := copied.generation.unknownLeft(); left <= most-10*time.Second || left > most {
		t.Errorf("for the copy the outcome is unknown for %s of %s", left, most)
	}
}

// TestShorterUnknownTimeEndsNoLongerOne: processes may know of writes that last differently.
func TestShorterUnknownTimeEndsNoLongerOne(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	_, copied, elsewhere := twoTrackers(t, f, clock.now)
	for _, unknown := range []time.Duration{time.Hour, time.Minute} {
		must(t, copied.change(t.Context(), unknown, false))
		copied, elsewhere = elsewhere, copied
	}
	for _, c := range []*Cache{copied, elsewhere} { // the first has had the hour, too
		must(t, c.change(t.Context(), time.Minute, false))
	}
	if left := copied.remote.client.PTTL(t.Context(), copied.keys.unknown).Val(); left < 59*time.Minute {
		t.Errorf("the outcome counts as unknown for %s", left)
	}
	if left := copied.generation.unknownLeft(); left < 59*time.Minute {
		t.Errorf("in the process itself it counts as unknown for %s", left)
	}
}
