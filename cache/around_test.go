package cache

import (
	"context"
	"strings"
	"testing"

	"portico/mapping"
)

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

// TestWriteAroundThatDidNothing leaves the answers of all processes as they were.
func TestWriteAroundThatDidNothing(t *testing.T) {
	s, f := startServer(t), &fakeTracker{}
	c, other := openCache(t, f, patient(on(s))), openCache(t, f, patient(on(s)))
	mustAsk(t, other, withKey("k"))
	f.scripted(always(errRefused))
	for name, err := range surelyNothing() {
		around(c, func() error { return err })
		if a := ask(other, withKey("k")); a.err != nil || !a.cache.Hit {
			t.Errorf("%s: the other process says %+v, %v", name, a.cache, a.err)
		}
	}
}

// TestWriteAroundThatPanics counts, and leaves no mark behind.
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
	if sum := s.client.Get(context.Background(), c.keys.writes()).Val(); marks(sum) != "" {
		t.Errorf("%q is left of the mark", sum)
	}
}
