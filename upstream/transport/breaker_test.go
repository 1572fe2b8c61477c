package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	. "portico/upstream/transport"

	"portico/test/process"
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

func newBreaking(t *testing.T, o BreakOptions) *Stack {
	t.Helper()
	return newStack(t, Options{Base: BaseOptions{HeaderTimeout: 5 * time.Second}, Tries: 1, Break: o, Limit: LimitOptions{Slots: 1000}})
}

func (m *moody) read(t *testing.T, b http.RoundTripper) error {
	_, _, err := do(b, get(t, m.url))
	return err
}

// TestHangUpsAreNeutral: 100 clients leave while they wait, read or send.
func TestHangUpsAreNeutral(t *testing.T) {
	hung, big := newMoody(t, "hang"), newTracker(t, bigResponse)
	for name, abort := range map[string]func(http.RoundTripper){
		"waiting": func(b http.RoundTripper) {
			ctx, cancel := context.WithCancel(t.Context())
			sent := hung.hits.Load()
			go func() {
				process.Eventually(t, "it waits", func() bool { return hung.hits.Load() > sent })
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
			_, _, _ = do(b, upload(t, hung.url, iotest.ErrReader(errors.New("the client hung up")), 1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreaking(t, BreakOptions{})
			for range 100 {
				abort(b)
			}
			for _, breaker := range []*Breaker{b.Reads, b.Writes} {
				if s := breaker.Status(); s.State != Closed || s.Failures != 0 || s.Successes != 0 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// TestSlowClientIsNotTheTrackersFailure: the deadline passes while the client is slow to read a response that is there.
func TestSlowClientIsNotTheTrackersFailure(t *testing.T) {
	big := newTracker(t, bigResponse)
	for within := 80 * time.Millisecond; ; within *= 2 {
		b := newBreaking(t, BreakOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		resp, err := b.RoundTrip(request(t, ctx, http.MethodGet, big.url, ""))
		if err == nil {
			defer resp.Body.Close()
		}
		for err == nil {
			_, err = resp.Body.Read(make([]byte, 1024))
			time.Sleep(5 * time.Millisecond)
		}
		if s := b.Reads.Status(); ReasonOf(err) == Timeout && s.Failures == 0 {
			return
		} else if within > 2*time.Second { // a shorter time may be over before the response is there
			t.Fatalf("%v: %+v", err, s)
		}
	}
}

// TestSilentTrackerIsItsOwnFailure is the other side: the deadline passes while the client waits for bytes.
func TestSilentTrackerIsItsOwnFailure(t *testing.T) {
	tr := rawTracker(t, respond("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", hangUp))
	b := newBreaking(t, BreakOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err := do(b, request(t, ctx, http.MethodGet, tr.url, ""))
	if s := b.Reads.Status(); ReasonOf(err) != Timeout || s.Failures != 1 {
		t.Errorf("%v: %+v", err, s)
	}
}

// reads makes n reads of m, each of a target of its own. A page is not what was due.
func (m *moody) reads(t *testing.T, b http.RoundTripper, n int) {
	t.Helper()
	for i := range n {
		resp, err := b.RoundTrip(get(t, fmt.Sprint(m.url, "/", m.hits.Load(), "/", i)))
		if err != nil {
			continue
		}
		_, _ = io.ReadAll(resp.Body)
		if m.mood.Load() == "html" {
			Fail(resp.Body, errors.New("not JSON"))
		}
		_ = resp.Body.Close()
	}
}

// quick has an open time that a test can wait for.
func quick() BreakOptions { return BreakOptions{OpenFor: 50 * time.Millisecond} }

// probed has probes that are good or fail.
func probed(t *testing.T, good bool) BreakOptions {
	return BreakOptions{ProbeURL: newMoody(t, "ok").url, Well: func(int, []byte) bool { return good }}
}

// TestWhatOpensABreaker without a probe, with one that is well, and with one that fails.
func TestWhatOpensABreaker(t *testing.T) {
	good := func(t *testing.T) BreakOptions { return probed(t, true) }
	bad := func(t *testing.T) BreakOptions { return probed(t, false) }
	for name, c := range map[string]struct {
		mood       string
		good, bad  int
		sameTarget bool
		probes     func(t *testing.T) BreakOptions // nil = none
		opens      bool
	}{
		"half of the results":                {"500", 5, 5, false, nil, true},
		"less than half":                     {"500", 6, 5, false, nil, false},
		"too few":                            {"500", 4, 5, false, nil, false},
		"not what was due":                   {"html", 5, 5, false, nil, true},
		"cut short":                          {"cut", 5, 5, false, nil, true},
		"resets in a row":                    {"reset", 100, 5, false, nil, true},
		"resets of one target":               {"reset", 1, 50, true, nil, false},
		"one target":                         {"500", 1, 50, true, nil, false},
		"one target, nothing else known":     {"500", 0, 10, true, nil, true},
		"a probe that is well":               {"500", 5, 50, false, good, false},
		"a probe that is well, one target":   {"500", 0, 50, true, good, false},
		"silence, a probe that is well":      {"reset", 5, 20, false, good, true},
		"silence of one target":              {"reset", 5, 50, true, good, false},
		"a probe that fails":                 {"500", 5, 1, false, bad, true},
		"a probe that fails, one target":     {"500", 5, 1, true, bad, true},
		"a probe that fails, and no failure": {"404", 5, 5, false, bad, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o BreakOptions
			if c.probes != nil {
				o = c.probes(t)
			}
			m, b := newMoody(t, "ok"), newBreaking(t, o)
			m.reads(t, b, c.good)
			m.mood.Store(c.mood)
			if c.sameTarget {
				for range c.bad {
					_ = m.read(t, b)
				}
			} else {
				m.reads(t, b, c.bad)
			}
			if c.probes != nil && c.opens {
				process.Eventually(t, "open", func() bool { return b.Reads.Status().Opens > 0 })
				return
			}
			if s := b.Reads.Status(); (s.Opens > 0) != c.opens {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestNoConnectionOpens whatever the target is: no request can cause that.
func TestNoConnectionOpens(t *testing.T) {
	m, b := newMoody(t, "ok"), newBreaking(t, BreakOptions{})
	m.reads(t, b, 3)
	dead := deadURL(t)
	for i := range 5 {
		if _, _, err := do(b, get(t, dead)); ReasonOf(err) != Connect {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	_, _, err := do(b, get(t, dead))
	var e *Error
	if !errors.As(err, &e) || e.Reason != BreakerOpen || e.RetryAfter <= 0 || e.Unknown {
		t.Errorf("after 5 in a row: %v", err)
	}
	if s := b.Reads.Status(); s.Reason != Connect || s.Opens != 1 || s.Rejected != 1 || len(s.History) != 1 {
		t.Errorf("%+v", s)
	}
	if _, _, err := do(b, post(t, dead)); ReasonOf(err) != Connect {
		t.Errorf("writes have a breaker of their own: %v", err)
	}
}

// opened returns breakers without a probe over m whose reads are half-open.
func opened(t *testing.T, m *moody, o BreakOptions) *Stack {
	t.Helper()
	b := newBreaking(t, o)
	m.mood.Store("500")
	m.reads(t, b, 10)
	due(t, b)
	return b
}

func due(t *testing.T, b *Stack) {
	t.Helper()
	if b.Reads.State() == Closed {
		t.Fatal("not open")
	}
	process.Eventually(t, "a trial is due", func() bool { return b.Reads.State() == HalfOpen })
}

// TestTrialsDecide, unless they are canceled, one at a time, and report every change of state in order.
func TestTrialsDecide(t *testing.T) {
	m, o := newMoody(t, ""), quick()
	var told []Change
	o.OnChange = func(c Change) { told = append(told, c) }
	b := opened(t, m, o)
	_ = m.read(t, b)
	due(t, b)
	m.mood.Store("hang")
	for range 5 { // a canceled trial decides nothing, and another one may follow at once
		sent := m.hits.Load()
		ctx, cancel := context.WithCancel(t.Context())
		trial := background(b, request(t, ctx, http.MethodGet, m.url, ""))
		process.Eventually(t, "it waits", func() bool { return m.hits.Load() > sent })
		cancel()
		if err := <-trial; ReasonOf(err) != Canceled || b.Reads.State() != HalfOpen {
			t.Fatalf("%v, %s", err, b.Reads.State())
		}
	}
	m.mood.Store("ok")
	if b.Reads.Refuses() {
		t.Error("it would refuse the trial")
	}
	resp, err := b.RoundTrip(get(t, m.url))
	process.Must(t, err)
	_, _ = io.ReadAll(resp.Body)
	if err := m.read(t, b); ReasonOf(err) != BreakerOpen || !b.Reads.Refuses() {
		t.Errorf("beside the trial: %v", err)
	}
	_ = resp.Body.Close()
	want := []State{Open, HalfOpen, Open, HalfOpen, Closed}
	for i, c := range told {
		if i >= len(want) || c.To != want[i] || c.Breaker != "read" || c.Reason != ServerError || i > 0 && c.From != want[i-1] {
			t.Errorf("change %d: %+v", i, c)
		}
	}
	if len(told) != len(want) || len(b.Reads.Status().History) != len(want) || b.Reads.Refuses() {
		t.Errorf("%d changes, %+v", len(told), b.Reads.Status())
	}
}

// TestTrialsHaveADeadline: one without a response, and one whose caller never closes the body.
func TestTrialsHaveADeadline(t *testing.T) {
	t.Parallel()
	m, o := newMoody(t, ""), quick()
	o.TrialTimeout = 800 * time.Millisecond
	b := opened(t, m, o)
	m.mood.Store("hang")
	if _, _, err := do(b, get(t, m.url)); ReasonOf(err) != BreakerOpen {
		t.Errorf("the trial without a response: %v", err)
	}
	if s := b.Reads.Status(); s.Reason != Timeout {
		t.Errorf("%+v", s)
	}
	due(t, b)
	m.mood.Store("ok")
	forgotten, err := b.RoundTrip(request(t, context.Background(), http.MethodGet, m.url, ""))
	process.Must(t, err)
	process.Eventually(t, "another trial", func() bool { return m.read(t, b) == nil && b.Reads.State() == Closed })
	_ = forgotten.Body.Close()
}

// TestResultsOfAnEarlierState: calls that began before the breaker opened neither close it nor open it again.
func TestResultsOfAnEarlierState(t *testing.T) {
	m, dead := newMoody(t, "ok"), deadURL(t)
	b := newBreaking(t, quick())
	early, err := b.RoundTrip(post(t, m.url))
	process.Must(t, err)
	m.mood.Store("hang")
	sent := m.hits.Load()
	ctx, cancel := context.WithCancelCause(t.Context())
	var all sync.WaitGroup
	for i := range 10 { // writes, because reads are released
		all.Go(func() { _, _, _ = do(b, request(t, ctx, http.MethodPost, fmt.Sprint(m.url, "/", i), "{}")) })
	}
	process.Eventually(t, "all wait", func() bool { return m.hits.Load() == sent+10 })
	for range 5 {
		_, _, _ = do(b, post(t, dead))
	}
	_ = early.Body.Close()
	if b.Writes.State() == Closed {
		t.Error("an earlier success has closed the breaker")
	}
	m.mood.Store("ok")
	process.Eventually(t, "closed again", func() bool {
		_, _, err := do(b, post(t, m.url))
		return err == nil && b.Writes.State() == Closed
	})
	cancel(&Error{Reason: Timeout})
	all.Wait()
	if s := b.Writes.Status(); s.State != Closed || s.Failures != 0 || s.Opens != 1 {
		t.Errorf("%+v", s)
	}
}

// TestNoClientTriesWhileProbesFail: a good probe closes both breakers.
func TestNoClientTriesWhileProbesFail(t *testing.T) {
	t.Parallel()
	m := newMoody(t, "ok")
	b := newBreaking(t, BreakOptions{ProbeURL: m.url, TrialTimeout: time.Minute})
	m.reads(t, b, 3)
	m.mood.Store("reset")
	m.reads(t, b, 1)
	open := func() bool { return b.Reads.State() != Closed && b.Writes.State() != Closed }
	process.Eventually(t, "both are open", open)
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		_, _, read := do(b, get(t, m.url))
		_, _, write := do(b, post(t, m.url))
		if ReasonOf(read) != BreakerOpen || ReasonOf(write) != BreakerOpen {
			t.Fatalf("%v, %v", read, write)
		}
	}
	m.mood.Store("ok")
	process.Eventually(t, "both are closed", func() bool { return b.Reads.State() == Closed && b.Writes.State() == Closed })
}

// TestATrackerThatFailsProbesAlone: one read now and then finds out that calls work, and writes follow.
func TestATrackerThatFailsProbesAlone(t *testing.T) {
	t.Parallel()
	m := newMoody(t, "reset")
	o := probed(t, false)
	o.TrialTimeout = 200 * time.Millisecond
	b := newBreaking(t, o)
	process.Eventually(t, "both are open", func() bool {
		_ = m.read(t, b)
		_, _, _ = do(b, post(t, m.url))
		return b.Reads.State() != Closed && b.Writes.State() != Closed
	})
	m.mood.Store("ok")
	process.Eventually(t, "reads work", func() bool { return m.read(t, b) == nil })
	process.Eventually(t, "writes work", func() bool { _, _, err := do(b, post(t, m.url)); return err == nil })
}

// TestASlowTrackerComesBack although it takes longer than a brief probe waits.
func TestASlowTrackerComesBack(t *testing.T) {
	t.Parallel()
	url := deadURL(t)
	b := newBreaking(t, BreakOptions{ProbeURL: url})
	for range 5 {
		_, _, _ = do(b, get(t, url))
	}
	process.Eventually(t, "open", func() bool { return b.Reads.State() != Closed })
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(600 * time.Millisecond) })}
	l, err := net.Listen("tcp", strings.TrimPrefix(url, "http://"))
	process.Must(t, err)
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	process.Eventually(t, "closed", func() bool { return b.Reads.State() == Closed })
}

// TestBreakersUnderRace: whatever happens at once, the breakers close when the tracker is well.
func TestBreakersUnderRace(t *testing.T) {
	m := newMoody(t, "ok")
	b := newBreaking(t, BreakOptions{OpenFor: 5 * time.Millisecond, ProbeURL: m.url})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 60 {
				m.mood.Store([]string{"ok", "500", "reset", "cut", "hang", "404"}[(g+i)%6])
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%5)*time.Millisecond)
				_, _, err := do(b, request(t, ctx, []string{"GET", "POST"}[i%2], fmt.Sprint(m.url, "/", i), ""))
				cancel()
				var own *Error
				if err != nil && !errors.As(err, &own) {
					t.Errorf("an error of another kind: %#v", err)
				}
			}
		})
	}
	all.Wait()
	m.mood.Store("ok")
	process.Eventually(t, "closed again", func() bool { return m.read(t, b) == nil && b.Reads.State() == Closed })
}

// TestOpeningReleasesWaitingReads: no read waits for a tracker that is known to hang. A write that was sent goes on.
func TestOpeningReleasesWaitingReads(t *testing.T) {
	m, b := newMoody(t, "hang"), newBreaking(t, BreakOptions{})
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
	process.Eventually(t, "all wait", func() bool { return m.hits.Load() == 11 })
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
	if took := time.Since(begun); took > 30*time.Second || b.Writes.State() != Open {
		t.Errorf("released after %v; writes %s", took, b.Writes.State())
	}
	cancel()
	if e := <-ends; e.method != http.MethodPost || ReasonOf(e.err) != Canceled || !OutcomeUnknown(e.err) {
		t.Errorf("the write: %+v", e)
	}
}

// TestOpeningCutsNoResponseShort whose header has come. A tracker that responds with 500 quickly may still be working on other requests, so
// these wait on.
func TestOpeningCutsNoResponseShort(t *testing.T) {
	for name, c := range map[string]struct{ begin, url string }{"header": {"wh", deadURL(t)}, "no header": {"", newMoody(t, "500").url}} {
		t.Run(name, func(t *testing.T) {
			let := make(chan struct{})
			slow := newTracker(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.begin != "" {
					_, _ = io.WriteString(w, c.begin)
					_ = http.NewResponseController(w).Flush()
				}
				<-let
				_, _ = io.WriteString(w, "ole")
			})
			b := newBreaking(t, BreakOptions{})
			bodies, began := make(chan string, 1), make(chan error, 1)
			go func() {
				resp, err := b.RoundTrip(request(t, With(t.Context(), streamed), http.MethodGet, slow.url, ""))
				if began <- err; err == nil {
					body, _ := io.ReadAll(resp.Body)
					bodies <- string(body)
					_ = resp.Body.Close()
				}
			}()
			process.Eventually(t, "the header, or a request that waits", func() bool {
				return slow.hits.Load() == 1 && (c.begin == "" || len(began) == 1)
			})
			for i := range 10 {
				_, _, _ = do(b, get(t, fmt.Sprint(c.url, "/", i)))
			}
			if b.Reads.State() != Open {
				t.Error("not open")
			}
			close(let)
			process.Must(t, <-began)
			if body := <-bodies; body != c.begin+"ole" {
				t.Errorf("%q", body)
			}
		})
	}
}

// TestProbes: which responses to a probe are good.
func TestProbes(t *testing.T) {
	html := func(_ int, head []byte) bool { return string(head) == "<html>" }
	var asked atomic.Int64
	later := func(int, []byte) bool { return asked.Add(1) > 1 }
	for name, c := range map[string]struct {
		mood  string
		well  func(int, []byte) bool
		opens bool
	}{
		"a page":          {"ok", nil, false},
		"404":             {"404", nil, false},
		"500":             {"500", nil, true},
		"reset":           {"reset", nil, true},
		"cut":             {"cut", nil, true},
		"hang":            {"hang", nil, true},
		"what was due":    {"ok", html, false},
		"another content": {"404", html, true},
		"one bad probe":   {"ok", later, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probed, called := newMoody(t, c.mood), newMoody(t, "500")
			b := newBreaking(t, BreakOptions{ProbeURL: probed.url, Well: c.well})
			called.reads(t, b, 1)
			process.Eventually(t, "a probe", func() bool { return probed.hits.Load() > 0 })
			if c.opens {
				process.Eventually(t, "open", func() bool { return b.Reads.Status().Opens > 0 && b.Writes.Status().Opens > 0 })
				return
			}
			time.Sleep(300 * time.Millisecond)
			if s := b.Reads.Status(); s.Opens > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestPanickingProbe: a panic ends one probe, says nothing about the tracker, and the next probes are sent.
func TestPanickingProbe(t *testing.T) {
	m, o := newMoody(t, "ok"), probed(t, true)
	var probes atomic.Int64
	o.Well = func(int, []byte) bool {
		if probes.Add(1) < 3 {
			panic("in the probe")
		}
		return true
	}
	b := newBreaking(t, o)
	m.mood.Store("reset")
	m.reads(t, b, 5)
	m.mood.Store("ok")
	process.Eventually(t, "closed by a trial", func() bool { return m.read(t, b) == nil && b.Reads.State() == Closed && probes.Load() > 2 })
}
