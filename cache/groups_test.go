package cache

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// groupsOf is a way to learn groups; a key that is not in the map is refused.
func groupsOf(all map[string]string) func(context.Context, upstream.Caller) ([]string, error) {
	return func(_ context.Context, caller upstream.Caller) ([]string, error) {
		names, ok := all[caller.Credentials.APIKey]
		if !ok {
			return nil, errBadKey
		}
		return strings.Fields(names), nil
	}
}

func TestGroupsShare(t *testing.T) {
	groups := map[string]string{"a": "x y", "b": "y x x", "c": "x", "d": ""}
	f := &fakeTracker{groups: groups}
	f.groups["b"] = "x y" // the tracker does not care for the order
	c := settled(t, openCache(t, f, patient(Options{
		Settings: Settings{Scope: ScopeGroup, LocalTTL: time.Minute},
		Groups:   groupsOf(map[string]string{"a": "x y", "b": "y x x", "c": "x", "d": ""}),
	})))
	for range 3 {
		for _, key := range []string{"a", "b", "c", "d", ""} {
			mustAsk(t, c, withKey(key))
		}
	}
	wantCalls(t, f, 4) // {x y}, {x}, {}, anonymous
}

func TestUnknownGroupsDoNotShare(t *testing.T) {
	f := &fakeTracker{}
	f.scripted(func(_ context.Context, caller upstream.Caller, _ mapping.FlagTypesRequest) error {
		if caller.Credentials.APIKey == "bad" {
			return errBadKey
		}
		return nil
	})
	c := openCache(t, f, Options{Settings: Settings{Scope: ScopeGroup}, Groups: groupsOf(map[string]string{"good": "x"})})
	for range 3 {
		mustAsk(t, c, withKey("good"))
		wantCode(t, ask(c, withKey("bad")).err, 306)
	}
	wantCalls(t, f, 1+3)
}

func TestRevokedMemberDoesNotHarmTheGroup(t *testing.T) {
	f := &fakeTracker{}
	var revoked atomic.Bool
	f.scripted(func(_ context.Context, caller upstream.Caller, _ mapping.FlagTypesRequest) error {
		if revoked.Load() && caller.Credentials.APIKey == "a" {
			return errBadKey
		}
		return nil
	})
	clock := &clock{}
	c := openAt(t, f, patient(Options{
		Settings: Settings{Scope: ScopeGroup, TTL: time.Minute, StaleIfError: time.Hour}, Lease: 10 * time.Millisecond,
		Groups: groupsOf(map[string]string{"a": "x", "b": "x"}), Redis: on(startServer(t)).Redis,
	}), clock.now)
	mustAsk(t, c, withKey("a"))
	revoked.Store(true)
	clock.forward(2 * time.Minute)
	wantCode(t, ask(c, withKey("a")).err, 306)
	f.scripted(always(errRefused))
	if a := mustAsk(t, c, withKey("b")); !a.cache.Stale {
		t.Errorf("the other member gets %+v", a.cache)
	}
}

func TestMemberIsNotRefusedForAnother(t *testing.T) {
	for name, refusal := range map[string]error{"bad key": errBadKey, "too many calls": &mapping.Error{Code: 32610, Status: http.StatusTooManyRequests}} {
		f, hold, entered := &fakeTracker{}, make(chan struct{}), make(chan struct{}, 8)
		f.scripted(func(_ context.Context, caller upstream.Caller, _ mapping.FlagTypesRequest) error {
			if caller.Credentials.APIKey == "a" {
				entered <- struct{}{}
				<-hold
				return refusal
			}
			return nil
		})
		c := settled(t, openCache(t, f, patient(Options{
			Settings: Settings{Scope: ScopeGroup}, Groups: groupsOf(map[string]string{"a": "x", "b": "x"}),
		})))
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- ask(c, withKey("a")).err }()
		<-entered
		go func() { second <- ask(c, withKey("b")).err }()
		time.Sleep(50 * time.Millisecond) // lets the second join; if it does not, it is right all the more
		close(hold)
		if err := <-first; err == nil || err.Error() != refusal.Error() {
			t.Errorf("%s: the member who asked gets %v", name, err)
		}
		if err := <-second; err != nil {
			t.Errorf("%s: the other member is refused: %v", name, err)
		}
	}
}

func TestErrorsOfGroupsAreNotAskedForEachTime(t *testing.T) {
	var asked atomic.Int64
	c := openCache(t, &fakeTracker{}, Options{Settings: Settings{Scope: ScopeGroup}, Groups: func(context.Context, upstream.Caller) ([]string, error) {
		asked.Add(1)
		return nil, errors.New("away")
	}})
	for range 5 {
		mustAsk(t, c, withKey("k"))
	}
	if asked.Load() != 1 {
		t.Errorf("the groups were asked for %d times", asked.Load())
	}
}

// memberOf is a cache where callers of one group share, with a way to say what
// becomes of the question for groups.
func memberOf(t *testing.T, f *fakeTracker, now func() time.Time) (c *Cache, fate *atomic.Pointer[func() error]) {
	t.Helper()
	fate = &atomic.Pointer[func() error]{}
	c = openAt(t, f, patient(Options{
		Settings: Settings{Scope: ScopeGroup, TTL: time.Minute, StaleIfError: time.Hour}, FillTimeout: 20 * time.Second,
		Groups: func(context.Context, upstream.Caller) ([]string, error) {
			if fails := fate.Load(); fails != nil {
				return nil, (*fails)()
			}
			return []string{"x"}, nil
		},
	}), now)
	mustAsk(t, c, withKey("k"))
	return c, fate
}

// TestGroupsOutliveASickTracker: who shared an answer goes on to do so while the
// tracker can tell neither groups nor flag types, as long as old answers are given.
func TestGroupsOutliveASickTracker(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	c, fate := memberOf(t, f, clock.now)
	away := func() error { return errRefused }
	fate.Store(&away)
	f.scripted(always(errRefused))
	for range 5 {
		clock.forward(10 * time.Minute)
		if a := ask(c, withKey("k")); a.err != nil || a.cache.Detail != detailIfError {
			t.Fatalf("while the tracker is sick the answer says %+v, %v", a.cache, a.err)
		}
	}
	clock.forward(30 * time.Minute)
	if a := ask(c, withKey("k")); a.err == nil {
		t.Errorf("after stale_if_error the answer says %+v", a.cache)
	}
}

// TestGroupsOfATrackerThatHangs: a read with known groups does not wait for long.
func TestGroupsOfATrackerThatHangs(t *testing.T) {
	f, clock, end := &fakeTracker{}, &clock{}, make(chan struct{})
	c, fate := memberOf(t, f, clock.now)
	hung := func() error { <-end; return errRefused }
	fate.Store(&hung)
	defer close(end)
	f.scripted(always(errRefused))
	clock.forward(5 * time.Minute)
	start := time.Now()
	for range 3 {
		if a := ask(c, withKey("k")); a.err != nil || !a.cache.Stale {
			t.Fatalf("while the tracker hangs the answer says %+v, %v", a.cache, a.err)
		}
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("three reads took %s", took)
	}
}

// TestRefusedCredentialLosesItsGroups: only a tracker that is sick leaves them.
func TestRefusedCredentialLosesItsGroups(t *testing.T) {
	for name, err := range map[string]error{"refused": errBadKey, "not told": errors.New("it does not say")} {
		t.Run(name, func(t *testing.T) {
			f, clock := &fakeTracker{}, &clock{}
			c, fate := memberOf(t, f, clock.now)
			refused := func() error { return err }
			fate.Store(&refused)
			f.scripted(always(errRefused))
			clock.forward(5 * time.Minute)
			if a := ask(c, withKey("k")); a.err == nil {
				t.Errorf("the answer says %+v", a.cache)
			}
		})
	}
}
