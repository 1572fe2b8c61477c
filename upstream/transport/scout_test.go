package transport

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// lied gives breakers whose reads and writes fail although every probe is good, so that probes are no longer believed.
func lied(t *testing.T, m *moody) *Breakers {
	t.Helper()
	o := isolated()
	o.OpenFor, o.OpenMax, o.ProbeEvery = time.Minute, time.Minute, 10*time.Millisecond
	// A machine that stops for longer than this makes a good trial a failed one, and the open time is a minute.
	o.BlindTimeout, o.TrialTimeout = 300*time.Millisecond, 300*time.Millisecond
	o.Probe = func(context.Context, http.RoundTripper) error { return nil }
	b := newBreakers(t, o)
	m.mood.Store("500")
	for range 10 {
		_, _, _ = do(b, get(t, m.url))
		_, _, _ = do(b, post(t, m.url))
	}
	for _, kind := range []*Breaker{b.Reads, b.Writes} {
		eventually(t, "the trial fails", func() bool {
			_, _, _ = do(b, get(t, m.url))
			_, _, _ = do(b, post(t, m.url))
			kind.mu.Lock()
			defer kind.mu.Unlock()
			return kind.state == Open && kind.distrust && kind.vouched
		})
	}
	return b
}

// TestScoutsEndAnOutage: where probes are no help, reads find out that the tracker is well again, and writes follow, long
// before the open time is over.
func TestScoutsEndAnOutage(t *testing.T) {
	for _, mood := range []string{"500", "reset", "hang"} {
		t.Run(mood, func(t *testing.T) {
			m := newMoody(t, "")
			b := lied(t, m)
			m.mood.Store(mood)
			for range 5 {
				begun := time.Now()
				_ = m.read(t, b)
				if took := time.Since(begun); took > time.Second {
					t.Fatalf("a read waited %v", took)
				}
			}
			if s := b.Reads.Status(); s.State != Open {
				t.Fatalf("%+v", s)
			}
			m.mood.Store("ok")
			eventually(t, "a read gets through", func() bool { return m.read(t, b) == nil })
			eventually(t, "a write gets through", func() bool { _, _, err := do(b, post(t, m.url)); return err == nil })
			if b.Reads.State() != Closed || b.Writes.State() != Closed {
				t.Errorf("reads %s, writes %s", b.Reads.State(), b.Writes.State())
			}
		})
	}
}

// TestScoutsAreFew: they are no more than probes are, and none of them is a write.
func TestScoutsAreFew(t *testing.T) {
	m := newMoody(t, "")
	b := lied(t, m)
	sent, begun := m.hits.Load(), time.Now()
	for time.Since(begun) < 200*time.Millisecond {
		_ = m.read(t, b)
	}
	if n, most := m.hits.Load()-sent, int64(time.Since(begun)/b.prober.o.ProbeEvery)+2; n == 0 || n > most {
		t.Errorf("%d reads went to the tracker, and %d should at most", n, most)
	}
	sent = m.hits.Load()
	for range 20 {
		if _, _, err := do(b, post(t, m.url)); ReasonOf(err) != BreakerOpen {
			t.Fatal(err)
		}
	}
	if n := m.hits.Load() - sent; n != 0 {
		t.Errorf("%d writes went to the tracker", n)
	}
}

// TestSlowTrackerComesBack: one that takes longer than a probe and a blind trial wait is not taken for one that hangs.
func TestSlowTrackerComesBack(t *testing.T) {
	m := newMoody(t, "500")
	o := isolated()
	o.ProbeEvery, o.ProbeTimeout, o.BlindTimeout, o.TrialTimeout = 5*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, time.Second
	slow := newTracker(t, func(w http.ResponseWriter, _ *http.Request) {
		if m.mood.Load() == "500" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		time.Sleep(100 * time.Millisecond)
	})
	o.Probe = GetProbe(slow.url, nil)
	b := newBreakers(t, o)
	for range 10 {
		_, _, _ = do(b, get(t, slow.url))
		_, _, _ = do(b, post(t, slow.url))
	}
	m.mood.Store("ok")
	eventually(t, "a read gets through", func() bool { _, _, err := do(b, get(t, slow.url)); return err == nil })
	eventually(t, "a write gets through", func() bool { _, _, err := do(b, post(t, slow.url)); return err == nil })
}
