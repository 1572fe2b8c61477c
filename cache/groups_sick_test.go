package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"portico/upstream"
)

// memberOf is a cache where callers of one group share, with a way to say what
// becomes of the question for groups.
func memberOf(t *testing.T, f *fakeTracker, now func() time.Time) (c *Cache, fate *atomic.Pointer[func() error]) {
	t.Helper()
	fate = &atomic.Pointer[func() error]{}
	c = openAt(t, f, patient(Options{
		Scope: ScopeGroup, TTL: time.Minute, GroupsTTL: time.Minute, StaleIfError: time.Hour, FillTimeout: 20 * time.Second,
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

// TestGroupsOfATrackerThatHangs: nobody waits for long who has something to go on with.
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
