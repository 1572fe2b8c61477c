package cache

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// wantLogged: where it happened is told, and what is not.
func (l *sharedLog) wantLogged(t *testing.T) {
	t.Helper()
	eventually(t, "the panic is logged", func() bool { return strings.Contains(l.String(), "panic_test.go") })
	if strings.Contains(l.String(), "hunter2") {
		t.Errorf("the log says %s", l)
	}
}

func panics() { panic("the key is hunter2") }

// panicking gives options for a test that wants to see panics in the log.
func panicking() (Options, *sharedLog) {
	log := &sharedLog{}
	return log.options(Options{}), log
}

// TestPanicInAFillCostsOneRead: those who wait for it get an error, and the next one is answered.
func TestPanicInAFillCostsOneRead(t *testing.T) {
	f := &fakeTracker{}
	o, log := panicking()
	c := openCache(t, f, o)
	f.scripted(func(context.Context, upstream.Caller, mapping.FlagTypesRequest) error { panics(); return nil })
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if a := ask(c, withKey("k")); a.err == nil || strings.Contains(a.err.Error(), "hunter2") {
				t.Errorf("the error is %v", a.err)
			}
		})
	}
	all.Wait()
	log.wantLogged(t)
	f.scripted(nil)
	mustAsk(t, c, withKey("k"))
}

// TestPanicInARefreshCostsNothing: no read waits for it.
func TestPanicInARefreshCostsNothing(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	o, log := panicking()
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

// TestPanicAboutGroups: a caller whose groups are not known does not share.
func TestPanicAboutGroups(t *testing.T) {
	o, log := panicking()
	o.Scope, o.Groups = ScopeGroup, func(context.Context, upstream.Caller) ([]string, error) { panics(); return nil, nil }
	c := openCache(t, &fakeTracker{}, o)
	mustAsk(t, c, withKey("k"))
	log.wantLogged(t)
	mustAsk(t, c, withKey("k"))
}
