package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// pulse is a probe that a test answers.
type pulse struct{ sign atomic.Pointer[error] }

var (
	errHangs = errors.New("no sign of life")
	errSick  = fmt.Errorf("status 503: %w", ErrUnwell)
)

func newPulse() *pulse {
	p := &pulse{}
	p.says(errHangs)
	return p
}

func (p *pulse) says(err error) { p.sign.Store(&err) }

func (p *pulse) probe(context.Context, http.RoundTripper) error {
	return *p.sign.Load()
}

// listening leaves only the rule of rates, and asks p often.
func listening(p *pulse) BreakOptions {
	o := isolated()
	o.Probe, o.ProbeEvery, o.TrialTimeout = p.probe, 5*time.Millisecond, time.Minute
	return o
}

// TestWritesAreNoBlindTrials: whether a hung tracker is back is not found out with a write, whose client would have to
// wait and could not be released.
func TestWritesAreNoBlindTrials(t *testing.T) {
	for _, sign := range []error{nil, errSick} {
		m, p := newMoody(t, "500"), newPulse()
		b := newBreakers(t, listening(p))
		for range 10 {
			_, _, _ = do(b, post(t, m.url))
		}
		m.mood.Store("hang")
		eventually(t, "a trial would be due", func() bool { return time.Now().After(b.Writes.Status().Until) })
		sent := m.hits.Load()
		if _, _, err := do(b, post(t, m.url)); ReasonOf(err) != BreakerOpen || OutcomeUnknown(err) || m.hits.Load() != sent {
			t.Errorf("a write while nobody knows whether the tracker hangs: %v", err)
		}
		m.mood.Store("ok")
		p.says(sign)
		eventually(t, "a write is let through", func() bool { _, _, err := do(b, post(t, m.url)); return err == nil })
		if b.Writes.State() != Closed {
			t.Error("the breaker is", b.Writes.State())
		}
	}
}

// TestHungReadsHoldWritesBack: what is known of reads is known. Bad answers to reads are no reason: who cannot read may
// still write.
func TestHungReadsHoldWritesBack(t *testing.T) {
	m, p := newMoody(t, "500"), newPulse()
	b := opened(t, m, listening(p))
	if _, _, err := do(b, post(t, m.url)); err != nil {
		t.Errorf("a write to a tracker that answers reads badly: %v", err)
	}
	p = newPulse()
	o := listening(p)
	o.Unanswered = 3
	b = newBreakers(t, o)
	for range 3 {
		_ = (&moody{tracker: &tracker{url: deadURL(t)}}).read(t, b)
	}
	sent := m.hits.Load()
	if _, _, err := do(b, post(t, m.url)); ReasonOf(err) != BreakerOpen || m.hits.Load() != sent || b.Writes.State() != Closed {
		t.Errorf("a write to a tracker that does not answer reads: %v, %s", err, b.Writes.State())
	}
	if s := b.Writes.Status(); s.Rejected != 1 {
		t.Errorf("%+v", s)
	}
}

// TestAnAnswerVouches: where probes never get through, the answers to reads tell that writes may be tried.
func TestAnAnswerVouches(t *testing.T) {
	m := newMoody(t, "500")
	b := newBreakers(t, listening(newPulse()))
	for range 10 {
		_, _, _ = do(b, post(t, m.url))
	}
	m.mood.Store("ok")
	eventually(t, "a write is let through", func() bool {
		_ = m.read(t, b)
		_, _, err := do(b, post(t, m.url))
		return err == nil
	})
}

// TestAnAnswerFromBeforeDoesNotVouch: what was asked before the breaker opened says nothing about now.
func TestAnAnswerFromBeforeDoesNotVouch(t *testing.T) {
	m := newMoody(t, "500")
	b := newBreakers(t, listening(newPulse()))
	begun := time.Now()
	for range 10 {
		_, _, _ = do(b, post(t, m.url))
	}
	if b.Writes.vouch(begun); !b.Writes.blind() {
		t.Error("it is believed")
	}
}

// TestAProbeEndsTheWaitForABlindTrial: the tracker is well again, but not for the call that it lost while it hung.
func TestAProbeEndsTheWaitForABlindTrial(t *testing.T) {
	m, p := newMoody(t, "500"), newPulse()
	o := listening(p)
	o.BlindTimeout = 2 * time.Second
	b := opened(t, m, o)
	m.mood.Store("hang")
	sent, begun := m.hits.Load(), time.Now()
	lost := make(chan error, 1)
	go func() { lost <- m.read(t, b) }()
	eventually(t, "the trial hangs", func() bool { return m.hits.Load() > sent })
	if err := m.read(t, b); ReasonOf(err) != BreakerOpen {
		t.Fatalf("a second trial: %v", err)
	}
	m.mood.Store("ok")
	p.says(nil)
	eventually(t, "the breaker closes", func() bool { return m.read(t, b) == nil && b.Reads.State() == Closed })
	if took := time.Since(begun); took > time.Second {
		t.Errorf("that took %v", took)
	}
	if err := <-lost; ReasonOf(err) != BreakerOpen || time.Since(begun) < time.Second || b.Reads.State() != Closed {
		t.Errorf("the lost one: %v after %v; %s", err, time.Since(begun), b.Reads.State())
	}
}

// TestABlindTrialIsShort: while probes get no answer either, a trial gives up soon; once one was good, it has three times as
// long as that took.
func TestABlindTrialIsShort(t *testing.T) {
	var alive atomic.Bool
	m, o := newMoody(t, ""), isolated()
	o.TrialTimeout, o.BlindTimeout, o.ProbeEvery = time.Minute, 30*time.Millisecond, 5*time.Millisecond
	o.Probe = func(context.Context, http.RoundTripper) error {
		if alive.Load() {
			time.Sleep(150 * time.Millisecond)
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
	eventually(t, "a good probe", func() bool { return !b.Reads.blind() })
	due(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.RoundTrip(get(t, m.url).WithContext(ctx)); ReasonOf(err) != Timeout {
		t.Errorf("a trial of a tracker that shows signs of life: %v", err)
	}
}

// TestGetProbeTellsUnwellFromSilent: a failure is an answer, too.
func TestGetProbeTellsUnwellFromSilent(t *testing.T) {
	m, rt := newMoody(t, "500"), newBase(t, BaseOptions{})
	if err := GetProbe(m.url, nil)(t.Context(), rt); !errors.Is(err, ErrUnwell) {
		t.Errorf("status 500: %v", err)
	}
	if err := GetProbe(deadURL(t), nil)(t.Context(), rt); err == nil || errors.Is(err, ErrUnwell) {
		t.Errorf("no answer: %v", err)
	}
	m.mood.Store("ok")
	if err := GetProbe(m.url, nil)(t.Context(), rt); err != nil {
		t.Error(err)
	}
}
