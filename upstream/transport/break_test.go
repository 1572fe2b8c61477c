package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// moody is a tracker that does as it is told: "ok", "500", "404", "reset", "cut", "html" or "hang".
type moody struct {
	*tracker
	mood atomic.Value
}

func newMoody(t *testing.T, mood string) *moody {
	m := &moody{}
	m.mood.Store(mood)
	m.tracker = newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch m.mood.Load() {
		case "500":
			w.WriteHeader(http.StatusInternalServerError)
		case "404":
			w.WriteHeader(http.StatusNotFound)
		case "reset":
			panic(http.ErrAbortHandler)
		case "cut":
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "abc")
		case "hang":
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, "<html>")
		}
	})
	return m
}

func newBreakers(t *testing.T, o BreakOptions) *Breakers {
	t.Helper()
	b := Break(newBase(t, BaseOptions{ResponseHeaderTimeout: 5 * time.Second}), o)
	t.Cleanup(b.Close)
	return b
}

func (m *moody) read(t *testing.T, b http.RoundTripper) error {
	_, _, err := do(b, get(t, m.url))
	return err
}

// isolated leaves only the rule of rates, with open times that a test can wait for.
func isolated() BreakOptions {
	return BreakOptions{Unanswered: 1000, OpenFor: 50 * time.Millisecond, OpenMax: 200 * time.Millisecond}
}

func TestBreakerOpensByRate(t *testing.T) {
	for _, mood := range []string{"500", "reset", "cut"} {
		t.Run(mood, func(t *testing.T) {
			m, b := newMoody(t, "ok"), newBreakers(t, BreakOptions{Unanswered: 1000})
			for i := range 10 {
				m.mood.Store([]string{"ok", mood}[i%2])
				if state := b.Reads.State(); state != Closed {
					t.Fatalf("%s after %d calls", state, i)
				}
				_ = m.read(t, b)
			}
			sent := m.hits.Load()
			err := m.read(t, b)
			var e *Error
			if !errors.As(err, &e) || e.Reason != BreakerOpen || e.RetryAfter < 500*time.Millisecond || e.RetryAfter > time.Second || e.Unknown {
				t.Errorf("while open: %#v", err)
			}
			if m.hits.Load() != sent {
				t.Error("a call got through")
			}
			if _, _, err := do(b, post(t, deadURL(t))); ReasonOf(err) != Connect {
				t.Errorf("writes have a breaker of their own: %v", err)
			}
		})
	}
}

func TestBreakerStaysClosed(t *testing.T) {
	m, b := newMoody(t, "404"), newBreakers(t, BreakOptions{})
	for range 40 {
		_ = m.read(t, b)
	}
	for i := range 40 {
		m.mood.Store([]string{"ok", "ok", "500"}[i%3])
		_ = m.read(t, b)
	}
	m.mood.Store("ok")
	if s := b.Reads.Status(); s.State != Closed || s.Failures != 13 || s.Successes != 67 {
		t.Errorf("%+v", s)
	}
}

func TestBreakerOpensAtOnceWhenNobodyAnswers(t *testing.T) {
	dead := deadURL(t)
	b := newBreakers(t, BreakOptions{})
	for i := range 5 {
		if _, _, err := do(b, get(t, dead)); ReasonOf(err) != Connect {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if _, _, err := do(b, get(t, dead)); ReasonOf(err) != BreakerOpen {
		t.Errorf("after 5 in a row: %v", err)
	}
	if s := b.Reads.Status(); s.Reason != Connect || s.Opens != 1 || s.Rejected != 1 || len(s.History) != 1 || !s.Until.After(time.Now()) {
		t.Errorf("%+v", s)
	}
}

// TestHangUpsAreNobodysFailure: 100 clients who leave while waiting, while reading and while sending, in any state.
func TestHangUpsAreNobodysFailure(t *testing.T) {
	hung, big := newMoody(t, "hang"), newTracker(t, bigAnswer)
	for name, abort := range map[string]func(http.RoundTripper){
		"waiting": func(b http.RoundTripper) {
			ctx, cancel := context.WithCancel(t.Context())
			sent := hung.hits.Load()
			go func() {
				eventually(t, "it waits", func() bool { return hung.hits.Load() > sent })
				cancel()
			}()
			_, _, _ = do(b, request(t, ctx, http.MethodGet, hung.url, ""))
		},
		"reading": func(b http.RoundTripper) {
			ctx, cancel := context.WithCancel(t.Context())
			resp, err := b.RoundTrip(request(t, ctx, http.MethodGet, big.url, ""))
			cancel()
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		},
		"sending": func(b http.RoundTripper) {
			req := request(t, t.Context(), http.MethodPost, hung.url, "x")
			req.Body, req.ContentLength, req.GetBody = io.NopCloser(errReader{}), 1000, nil
			_, _, _ = do(b, req)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreakers(t, BreakOptions{})
			for range 100 {
				abort(b)
			}
			for _, breaker := range []*Breaker{b.Reads, b.Writes} {
				if s := breaker.Status(); s.State != Closed || s.Failures != 0 || s.Successes != 0 || s.Unanswered != 0 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// TestSlowClientIsNotTheTrackersFailure: the deadline passes while the client dawdles over an answer that flows.
func TestSlowClientIsNotTheTrackersFailure(t *testing.T) {
	big, b := newTracker(t, bigAnswer), newBreakers(t, BreakOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
	defer cancel()
	resp, err := b.RoundTrip(request(t, ctx, http.MethodGet, big.url, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for err == nil {
		_, err = resp.Body.Read(make([]byte, 1024))
		time.Sleep(5 * time.Millisecond)
	}
	if s := b.Reads.Status(); ReasonOf(err) != Timeout || s.Failures != 0 || s.Unanswered != 0 {
		t.Errorf("%v: %+v", err, s)
	}
}

// TestSlowUploadIsNotTheTrackersFailure: the deadline passes while the client dawdles over its own bytes.
func TestSlowUploadIsNotTheTrackersFailure(t *testing.T) {
	m, b := newMoody(t, "ok"), newBreakers(t, BreakOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req := request(t, ctx, http.MethodPost, m.url, "x")
	client, body := io.Pipe()
	req.Body, req.ContentLength, req.GetBody = client, 1000, nil
	go func() {
		<-ctx.Done()
		_ = body.CloseWithError(errors.New("too late"))
	}()
	_, _, err := do(b, req)
	if s := b.Writes.Status(); ReasonOf(err) != RequestBody || s.Failures != 0 || s.Unanswered != 0 {
		t.Errorf("%v: %+v", err, s)
	}
}

// TestSilentTrackerIsItsOwnFailure is the other side: the deadline passes while the client waits for bytes.
func TestSilentTrackerIsItsOwnFailure(t *testing.T) {
	tr := rawTracker(t, respond("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", hangUp))
	b := newBreakers(t, BreakOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err := do(b, request(t, ctx, http.MethodGet, tr.url, ""))
	if s := b.Reads.Status(); ReasonOf(err) != Timeout || s.Failures != 1 {
		t.Errorf("%v: %+v", err, s)
	}
}

// TestAnswersThatAreNotWhatWasDue: 200 with a page where JSON was due, through the whole chain.
func TestAnswersThatAreNotWhatWasDue(t *testing.T) {
	var seen recorder
	m, stack := newMoody(t, "html"), newStack(t, Options{Observer: &seen})
	for range 10 {
		resp, err := stack.RoundTrip(get(t, m.url))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		if !Fail(resp.Body, errors.New("not JSON")) {
			t.Fatal("nobody heard")
		}
		_ = resp.Body.Close()
	}
	if s := stack.Breakers.Reads.Status(); s.State != Open || s.Reason != BadAnswer {
		t.Errorf("%+v", s)
	}
	if s := seen.last(t); s.Reason != BadAnswer || s.Status != 200 {
		t.Errorf("measured %+v", s)
	}
}

// TestHungLongerThanTheWindow: gobreaker alone would forget a call that began before the window.
func TestHungLongerThanTheWindow(t *testing.T) {
	m := newMoody(t, "hang")
	o := isolated()
	o.Window, o.MinRequests = 500*time.Millisecond, 4
	b := newBreakers(t, o)
	done := make(chan error, 4)
	for range 4 {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
			defer cancel()
			_, _, err := do(b, request(t, ctx, http.MethodGet, m.url, ""))
			done <- err
		}()
	}
	for range 4 {
		<-done
	}
	if s := b.Reads.Status(); s.Opens != 1 {
		t.Errorf("%+v", s)
	}
}
