package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
	"portico/upstream"
)

// failing tries to write something and tells which error came.
func failing(c *Cache, key string) error {
	_, err := c.Do(context.Background(), withKey(key), upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{}})
	return err
}

// TestPendingWrite: until the outcome of a write is known, no other
// process gives what was stored before, and what it stores meanwhile does not count
// after it.
func TestPendingWrite(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, patient(on(s))), openCache(t, f, patient(on(s)))
	mustAsk(t, other, withKey("k"))
	if a := mustAsk(t, other, withKey("k")); !a.cache.Hit {
		t.Fatalf("the answer says %+v", a.cache)
	}
	var during answer
	f.write = func() error {
		during = ask(other, withKey("k"))
		f.version.Add(1)
		return nil
	}
	mustWrite(t, c, withKey("k"))
	if during.cache.Hit || during.cache.Detail != detailGeneration {
		t.Errorf("during a write the other process says %+v", during.cache)
	}
	if a := mustAsk(t, other, withKey("k")); a.cache.Hit || !strings.Contains(a.text, f.now()) {
		t.Errorf("after it %s, %+v", a.text, a.cache)
	}
	if sum := s.client.Get(context.Background(), c.keys.pending).Val(); sum != "0" {
		t.Errorf("%q is left of the pending writes", sum)
	}
}

// TestWriteOfAProcessThatDied: its pending write stays.
func TestWriteOfAProcessThatDied(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, patient(on(s))), openCache(t, f, patient(on(s)))
	mustAsk(t, other, withKey("k"))
	must(t, c.addPending(context.Background(), 12345))
	f.version.Add(1)
	if a := mustAsk(t, other, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("the other process gives %s, %+v", a.text, a.cache)
	}
	if a := mustAsk(t, other, withKey("k")); !a.cache.Hit {
		t.Errorf("nothing is kept any more: %+v", a.cache)
	}
}

// TestFailedWritesKeepTheCache: writes that surely did nothing leave everything as
// it was, through the cache and past it, however they begin and end in each other's midst.
func TestFailedWritesKeepTheCache(t *testing.T) {
	for name, err := range surelyNothing() {
		t.Run(name, func(t *testing.T) {
			s, f := startServer(t), &fakeTracker{}
			a, b := openCache(t, f, patient(on(s))), openCache(t, f, patient(on(s)))
			mustAsk(t, a, withKey("k"))
			// The second write begins in the first and outlives it.
			begun, first := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			f.write = func() error { close(begun); <-first; return err }
			all.Go(func() { _ = failing(a, "k") })
			<-begun
			f.mu.Lock()
			f.write = func() error { close(first); all.Wait(); return err }
			f.mu.Unlock()
			if failing(b, "k") == nil {
				t.Fatal("the write did not fail")
			}
			f.scripted(always(errRefused))
			around(a, func() error { return err })
			for _, c := range []*Cache{a, b} {
				if got := mustAsk(t, c, withKey("k")); !got.cache.Hit {
					t.Errorf("after writes that did nothing the answer says %+v", got.cache)
				}
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
			c := openCache(t, f, patient(Options{Settings: Settings{LocalTTL: time.Minute}}))
			mustAsk(t, c, withKey("k"))
			f.write = func() error { f.version.Add(1); return err }
			if failing(c, "k") == nil {
				t.Fatal("the write did not fail")
			}
			if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
				t.Errorf("after the write the read gives %s, %+v", a.text, a.cache)
			}
		})
	}
}

// refuseCommands makes Redis commands of one name fail.
type refuseCommands struct{ name string }

func (refuseCommands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (refuseCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h refuseCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if command.Name() == h.name {
			err := errors.New("refused")
			command.SetErr(err)
			return err
		}
		return next(ctx, command)
	}
}

// TestUndeliveredChangeStaysPending: others must not believe again what was stored
// before a write of which Redis could not be told.
func TestUndeliveredChangeStaysPending(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, patient(on(s))), openCache(t, f, patient(on(s)))
	mustAsk(t, other, withKey("k"))
	c.remote.client.AddHook(refuseCommands{"eval"})
	mustWrite(t, c, withKey("k"))
	if !c.Status().Undelivered {
		t.Fatal("the change counts as delivered")
	}
	if a := mustAsk(t, other, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("the other process gives %s, %+v", a.text, a.cache)
	}
}

// around tells the cache of a write that went past it.
func around(c *Cache, call func() error) { _ = c.WriteAround(context.Background(), call) }

// TestWriteAround: what goes past the cache counts like what goes through it. While it is under way nothing that is
// stored will count afterwards.
func TestWriteAround(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, patient(on(s))), openCache(t, f, patient(on(s)))
	for _, err := range []error{nil, errLost, &mapping.Error{Code: 51, Status: 404}} {
		mustAsk(t, other, withKey("k"))
		around(c, func() error {
			if a := mustAsk(t, other, withKey("k")); a.cache.Hit || a.cache.Detail != detailGeneration {
				t.Errorf("during a write that ends with %v the other process says %+v", err, a.cache)
			}
			f.version.Add(1)
			return err
		})
		for _, each := range []*Cache{other, c} {
			if a := mustAsk(t, each, withKey("k")); !strings.Contains(a.text, f.now()) {
				t.Errorf("after a write that ended with %v the read gives %s, %+v", err, a.text, a.cache)
			}
		}
	}
}

// TestWriteAroundThatPanics counts, and leaves no pending write behind.
func TestWriteAroundThatPanics(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c := openCache(t, f, patient(on(s)))
	mustAsk(t, c, withKey("k"))
	func() {
		defer func() { _ = recover() }()
		around(c, func() error { f.version.Add(1); panic("broken") })
	}()
	if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
		t.Errorf("after a panic the read gives %s, %+v", a.text, a.cache)
	}
	if sum := s.client.Get(context.Background(), c.keys.pending).Val(); sum != "0" {
		t.Errorf("%q is left of the pending writes", sum)
	}
}
