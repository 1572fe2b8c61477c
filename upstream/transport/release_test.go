package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"
)

// TestOpeningReleasesWaitingReads: nobody waits for a tracker that is known to hang, but a write that was sent is waited for.
func TestOpeningReleasesWaitingReads(t *testing.T) {
	m, b := newMoody(t, "hang"), newBreakers(t, BreakOptions{})
	type end struct {
		method string
		err    error
	}
	ends := make(chan end, 11)
	ctx, cancel := context.WithCancel(t.Context())
	wait := func(method string) {
		_, _, err := do(b, request(t, ctx, method, m.url, ""))
		ends <- end{method, err}
	}
	for range 10 {
		go wait(http.MethodGet)
	}
	go wait(http.MethodPost)
	eventually(t, "all wait", func() bool { return m.hits.Load() == 11 })
	for _, rt := range []string{http.MethodGet, http.MethodPost} {
		for range 5 { // writes to a dead port open the breaker of writes too
			_, _, _ = do(b, request(t, t.Context(), rt, deadURL(t), ""))
		}
	}
	begun := time.Now()
	for range 10 {
		e := <-ends
		var own *Error
		if !errors.As(e.err, &own) || e.method != http.MethodGet || own.Reason != BreakerOpen || own.RetryAfter <= 0 || own.Unknown {
			t.Errorf("%s: %v", e.method, e.err)
		}
	}
	if took := time.Since(begun); took > time.Second || b.Writes.State() != Open {
		t.Errorf("released after %v; writes %s", took, b.Writes.State())
	}
	cancel()
	if e := <-ends; e.method != http.MethodPost || ReasonOf(e.err) != Canceled || !OutcomeUnknown(e.err) {
		t.Errorf("the write: %+v", e)
	}
}

// TestOpeningCutsNoAnswerShort: who has the header already is being answered, and is let be.
func TestOpeningCutsNoAnswerShort(t *testing.T) {
	let := make(chan struct{})
	slow := newTracker(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-let
		_, _ = io.WriteString(w, "whole")
	})
	b := newBreakers(t, BreakOptions{})
	resp, err := b.RoundTrip(get(t, slow.url))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, _, _ = do(b, get(t, deadURL(t)))
	}
	if b.Reads.State() != Open {
		t.Fatal("not open")
	}
	close(let)
	if body := slurp(t, resp); body != "whole" {
		t.Errorf("%q", body)
	}
}

// TestBadAnswersReleaseNobody: a tracker that says 500 quickly may still be working on the others.
func TestBadAnswersReleaseNobody(t *testing.T) {
	m, b := newMoody(t, "500"), newBreakers(t, BreakOptions{})
	let := make(chan struct{})
	slow := newTracker(t, func(w http.ResponseWriter, _ *http.Request) { <-let; _, _ = io.WriteString(w, "ok") })
	done := make(chan error, 1)
	go func() { done <- (&moody{tracker: slow}).read(t, b) }()
	eventually(t, "it waits", func() bool { return slow.hits.Load() == 1 })
	for range 10 {
		_ = m.read(t, b)
	}
	if b.Reads.State() != Open {
		t.Fatal("not open")
	}
	close(let)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
