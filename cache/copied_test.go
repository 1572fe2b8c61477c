package cache

import (
	"context"
	"strings"
	"testing"
	"time"
)

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
		"through": func() { mustWrite(t, written, withKey("k")) },
		"around":  func() { around(written, func() error { f.version.Add(1); return nil }) },
		"answer lost": func() {
			f.write = func() error { f.version.Add(1); return errLost }
			_ = failing(written, "k")
			f.write = nil
		},
		"by another":   func() { mustWrite(t, written, withKey("another")) },
		"of the other": func() { mustWrite(t, copied, withKey("k")) },
	} {
		for _, c := range []*Cache{copied, elsewhere} {
			mustAsk(t, c, withKey("k"))
		}
		write()
		if a := mustAsk(t, copied, withKey("k")); !strings.Contains(a.text, f.now()) {
			t.Errorf("%s: the read gives %s, %+v", name, a.text, a.cache)
		}
		eventually(t, "the other process heard of it", func() bool {
			return strings.Contains(mustAsk(t, elsewhere, withKey("k")).text, f.now())
		})
	}
}

// TestCopiesComeLater: what the other tracker says while it may not have a write yet is
// kept for a moment only, and for as long as ever afterwards.
func TestCopiesComeLater(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	written, copied, elsewhere := twoTrackers(t, f, clock.now)
	f.write = func() error { return nil } // it shows later
	mustWrite(t, written, withKey("k"))
	for _, c := range []*Cache{copied, elsewhere} {
		mustAsk(t, c, withKey("k"))
	}
	f.version.Add(1)
	clock.forward(uncertainTTL + time.Millisecond)
	for _, c := range []*Cache{copied, elsewhere} {
		if a := mustAsk(t, c, withKey("k")); !strings.Contains(a.text, f.now()) {
			t.Errorf("when the copy is there the read gives %s, %+v", a.text, a.cache)
		}
	}
	clock.forward(time.Minute)
	must(t, copied.remote.client.Del(context.Background(), copied.keys.unknown).Err())
	if a := mustAsk(t, copied, withKey("k")); a.cache.TTL < time.Minute {
		t.Errorf("after a minute the answer says %+v", a.cache)
	}
}

// TestNothingIsNoNewsForCopies: a write that surely did nothing leaves their answers.
func TestNothingIsNoNewsForCopies(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	written, copied, _ := twoTrackers(t, f, clock.now)
	mustAsk(t, copied, withKey("k"))
	f.write = func() error { return errBadKey }
	_ = failing(written, "k")
	if a := mustAsk(t, copied, withKey("k")); !a.cache.Hit {
		t.Errorf("after a refused write the answer says %+v", a.cache)
	}
}

// TestShorterUnknownTimeEndsNoLongerOne: processes may know of writes that last differently.
func TestShorterUnknownTimeEndsNoLongerOne(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	_, copied, elsewhere := twoTrackers(t, f, clock.now)
	for _, unknown := range []time.Duration{time.Hour, time.Minute} {
		if err := copied.change(t.Context(), unknown, false); err != nil {
			t.Fatal(err)
		}
		copied, elsewhere = elsewhere, copied
	}
	for _, c := range []*Cache{copied, elsewhere} { // the first has had the hour, too
		if err := c.change(t.Context(), time.Minute, false); err != nil {
			t.Fatal(err)
		}
	}
	if left := copied.remote.client.PTTL(t.Context(), copied.keys.unknown).Val(); left < 59*time.Minute {
		t.Errorf("the outcome counts as unknown for %s", left)
	}
	if left := copied.generation.unknownLeft(); left < 59*time.Minute {
		t.Errorf("in the process itself it counts as unknown for %s", left)
	}
}

// TestUnknownOutcomeOfCopies: a write that may still be carried out is with the copy later than that.
func TestUnknownOutcomeOfCopies(t *testing.T) {
	f, clock := &fakeTracker{}, &clock{}
	written, copied, _ := twoTrackers(t, f, clock.now)
	f.write = func() error { return errLost }
	_ = failing(written, "k")
	most := written.options.unknownTime() + time.Minute
	if left := copied.generation.unknownLeft(); left <= most-10*time.Second || left > most {
		t.Errorf("for the copy the outcome is unknown for %s of %s", left, most)
	}
}
