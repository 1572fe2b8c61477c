package transport

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestABlindTrialIsShort: while probes get no answer either, a trial gives up soon; once one was good, it has its time.
func TestABlindTrialIsShort(t *testing.T) {
	var alive atomic.Bool
	m, o := newMoody(t, ""), isolated()
	o.TrialTimeout, o.BlindTimeout, o.ProbeEvery = time.Minute, 30*time.Millisecond, 5*time.Millisecond
	o.Probe = func(context.Context, http.RoundTripper) error {
		if alive.Load() {
			return nil
		}
		return errors.New("no sign of life")
	}
	b := opened(t, m, o)
	m.mood.Store("hang")
	if err := m.read(t, b); ReasonOf(err) != BreakerOpen {
		t.Fatalf("a trial of a hung tracker: %v", err)
	}
	alive.Store(true)
	due(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.RoundTrip(get(t, m.url).WithContext(ctx)); ReasonOf(err) != Timeout {
		t.Errorf("a trial of a tracker that shows signs of life: %v", err)
	}
}
