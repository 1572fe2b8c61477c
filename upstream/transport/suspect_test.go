package transport

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

// suspected gives breakers before a tracker that hangs, with a call that has waited in vain and one that waits, and tells
// what the latter ended with.
func suspected(t *testing.T, probe Probe) (*Breakers, <-chan error) {
	t.Helper()
	m := newMoody(t, "hang")
	o := BreakOptions{Probe: probe, ProbeEvery: 5 * time.Millisecond, ProbeTimeout: 30 * time.Millisecond, OpenFor: time.Minute, OpenMax: time.Minute}
	b := newBreakers(t, o)
	waits := make(chan error, 1)
	go func() {
		_, _, err := do(b, request(t, t.Context(), http.MethodGet, m.url, ""))
		waits <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.RoundTrip(get(t, m.url).WithContext(ctx)); ReasonOf(err) != Timeout {
		t.Fatal(err)
	}
	return b, waits
}

// TestProbesConfirmASuspicion: one call that waited in vain is enough where probes wait in vain, too, and who waits is let go.
func TestProbesConfirmASuspicion(t *testing.T) {
	b, waits := suspected(t, func(ctx context.Context, _ http.RoundTripper) error {
		<-ctx.Done()
		return ctx.Err()
	})
	eventually(t, "it opens", func() bool { return b.Reads.State() == Open })
	if err := <-waits; ReasonOf(err) != BreakerOpen {
		t.Errorf("who waited got %v", err)
	}
}

// TestProbesDispelASuspicion: a tracker that answers probes does not hang, whether it is well or not, and they end.
func TestProbesDispelASuspicion(t *testing.T) {
	for _, answer := range []error{nil, errSick, errors.New("something else")} {
		b, _ := suspected(t, func(context.Context, http.RoundTripper) error { return answer })
		time.Sleep(50 * time.Millisecond)
		if s := b.Reads.Status(); s.State != Closed || s.Unanswered != 1 {
			t.Errorf("%v: %+v", answer, s)
		}
		b.prober.mu.Lock()
		if running := b.prober.running; running == (answer == nil || errors.Is(answer, ErrUnwell)) {
			t.Errorf("%v: probing %v", answer, running)
		}
		b.prober.mu.Unlock()
	}
}
