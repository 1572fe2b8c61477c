package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// opened gives breakers over m whose reads are open, and waits until a trial is due.
func opened(t *testing.T, m *moody, o BreakOptions) *Breakers {
	t.Helper()
	b := newBreakers(t, o)
	m.mood.Store("500")
	for range 10 {
		_ = m.read(t, b)
	}
	due(t, b)
	return b
}

func due(t *testing.T, b *Breakers) {
	t.Helper()
	if b.Reads.State() == Closed {
		t.Fatal("not open")
	}
	eventually(t, "a trial is due", func() bool { return b.Reads.State() == HalfOpen })
}

func TestTrialsDecide(t *testing.T) {
	m := newMoody(t, "")
	b := opened(t, m, isolated())
	if err := m.read(t, b); err != nil { // 500: an answer to the caller, a failed trial to the breaker
		t.Fatal(err)
	}
	if s := b.Reads.Status(); s.State != Open || s.Until.Sub(s.Since) < 80*time.Millisecond {
		t.Errorf("the open time should have doubled: %v", s.Until.Sub(s.Since))
	}
	due(t, b)
	_ = m.read(t, b)
	due(t, b)
	_ = m.read(t, b)
	if s := b.Reads.Status(); s.Until.Sub(s.Since) > 200*time.Millisecond {
		t.Errorf("the open time grew past its limit: %v", s.Until.Sub(s.Since))
	}
	due(t, b)
	m.mood.Store("ok")
	if err := m.read(t, b); err != nil || b.Reads.State() != Closed {
		t.Errorf("%v, %s", err, b.Reads.State())
	}
}

// TestOneTrialAtATime: others are refused while it runs, and its body belongs to it.
func TestOneTrialAtATime(t *testing.T) {
	m := newMoody(t, "")
	b := opened(t, m, isolated())
	m.mood.Store("ok")
	if b.Reads.Refuses() {
		t.Error("it would refuse the trial")
	}
	resp, err := b.RoundTrip(get(t, m.url))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(resp.Body)
	if !b.Reads.Refuses() {
		t.Error("it would let others through beside the trial")
	}
	if err := m.read(t, b); ReasonOf(err) != BreakerOpen || b.Reads.State() != HalfOpen {
		t.Errorf("before the trial's body was closed: %v, %s", err, b.Reads.State())
	}
	_ = resp.Body.Close()
	if b.Reads.State() != Closed || b.Reads.Refuses() {
		t.Errorf("after: %s", b.Reads.State())
	}
}

// TestCanceledTrialIsNeutral: it neither closes nor opens the breaker, and makes room for the next.
func TestCanceledTrialIsNeutral(t *testing.T) {
	m := newMoody(t, "")
	b := opened(t, m, isolated())
	m.mood.Store("hang")
	for range 5 {
		sent := m.hits.Load()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			eventually(t, "it waits", func() bool { return m.hits.Load() > sent })
			cancel()
		}()
		if _, _, err := do(b, request(t, ctx, http.MethodGet, m.url, "")); ReasonOf(err) != Canceled {
			t.Fatal(err)
		}
		if b.Reads.State() != HalfOpen {
			t.Fatalf("%s", b.Reads.State())
		}
	}
}

// TestUnreportedTrialDoesNotWedge: one that never gets an answer, and one whose caller forgets it.
func TestUnreportedTrialDoesNotWedge(t *testing.T) {
	m, o := newMoody(t, ""), isolated()
	o.TrialTimeout = 100 * time.Millisecond
	b := opened(t, m, o)
	m.mood.Store("hang")
	done := make(chan error, 1)
	go func() {
		_, _, err := do(b, request(t, context.Background(), http.MethodGet, m.url, ""))
		done <- err
	}()
	if err := <-done; ReasonOf(err) != BreakerOpen {
		t.Errorf("the hung trial should have been released: %v", err)
	}
	if s := b.Reads.Status(); s.Reason != Timeout {
		t.Errorf("%+v", s)
	}
	due(t, b)
	m.mood.Store("ok")
	forgotten, err := b.RoundTrip(request(t, context.Background(), http.MethodGet, m.url, ""))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "another trial", func() bool { return m.read(t, b) == nil })
	if b.Reads.State() != Closed {
		t.Errorf("%s", b.Reads.State())
	}
	_ = forgotten.Body.Close()
}

// TestVerdictOfAnEarlierEpisode: what was sent before the breaker opened cannot close it.
func TestVerdictOfAnEarlierEpisode(t *testing.T) {
	m, b := newMoody(t, "ok"), newBreakers(t, isolated())
	early, err := b.RoundTrip(get(t, m.url))
	if err != nil {
		t.Fatal(err)
	}
	m.mood.Store("500")
	for range 10 {
		_ = m.read(t, b)
	}
	due(t, b)
	_ = early.Body.Close()
	if b.Reads.State() != HalfOpen {
		t.Errorf("%s", b.Reads.State())
	}
}

// TestFailuresOfAnEarlierEpisode: what hung before the breaker closed again cannot open it.
func TestFailuresOfAnEarlierEpisode(t *testing.T) {
	m, dead := newMoody(t, "hang"), deadURL(t)
	b := newBreakers(t, BreakOptions{OpenFor: 20 * time.Millisecond, Window: 100 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for range 10 { // writes, because reads would be released
		all.Go(func() { _, _, _ = do(b, request(t, ctx, http.MethodPost, m.url, "{}")) })
	}
	eventually(t, "all wait", func() bool { return m.hits.Load() == 10 })
	for range 5 {
		_, _, _ = do(b, post(t, dead))
	}
	m.mood.Store("ok")
	eventually(t, "closed again", func() bool {
		_, _, err := do(b, post(t, m.url))
		return err == nil && b.Writes.State() == Closed
	})
	all.Wait()
	if s := b.Writes.Status(); s.State != Closed || s.Failures != 0 || s.Unanswered != 0 || s.Opens != 1 {
		t.Errorf("%+v", s)
	}
}

// TestChangesAreToldInOrder: every change once, in order, and the callee may ask back.
func TestChangesAreToldInOrder(t *testing.T) {
	m, o := newMoody(t, ""), isolated()
	var mu sync.Mutex
	var told []Change
	var b *Breakers
	o.History = 3
	o.OnChange = func(c Change) {
		_ = b.Reads.Status()
		mu.Lock()
		defer mu.Unlock()
		told = append(told, c)
	}
	b = Break(newBase(t, BaseOptions{}), o)
	defer b.Close()
	m.mood.Store("500")
	for range 10 {
		_ = m.read(t, b)
	}
	due(t, b)
	_ = m.read(t, b)
	due(t, b)
	m.mood.Store("ok")
	_ = m.read(t, b)
	mu.Lock()
	defer mu.Unlock()
	want := []State{Open, HalfOpen, Open, HalfOpen, Closed}
	for i, c := range told {
		if i >= len(want) || c.To != want[i] || c.Breaker != "read" || c.Reason != ServerError || (c.To == Open) != (c.OpenFor > 0) || (i > 0 && c.From != want[i-1]) {
			t.Errorf("change %d: %+v", i, c)
		}
	}
	if len(told) != len(want) || len(b.Reads.Status().History) != 3 {
		t.Errorf("%d told, %d kept", len(told), len(b.Reads.Status().History))
	}
}

// TestChangesAreToldOneAtATime: a callee that is slow hears of the next change when it is done with this one.
func TestChangesAreToldOneAtATime(t *testing.T) {
	m, o := newMoody(t, "500"), isolated()
	var now, told atomic.Int64
	entered, leave := make(chan struct{}), make(chan struct{})
	o.OnChange = func(c Change) {
		if now.Add(1) != 1 {
			t.Error("two at a time")
		}
		defer now.Add(-1)
		if told.Add(1) == 1 {
			close(entered)
			<-leave
		}
	}
	b := newBreakers(t, o)
	opening := make(chan struct{})
	go func() {
		defer close(opening)
		for range 10 {
			_ = m.read(t, b)
		}
	}()
	<-entered
	due(t, b) // the second change is made here, while the first is being told
	if n := told.Load(); n != 1 {
		t.Errorf("%d told", n)
	}
	close(leave)
	<-opening
	eventually(t, "both told", func() bool { return told.Load() == 2 })
}

// TestRetryFreesItsSlot: while a read pauses before its next try, another call has the only slot.
func TestRetryFreesItsSlot(t *testing.T) {
	tr := flaky(t, 1, say(strings.Replace(status503, "Conn", "Retry-After: 1\r\nConn", 1)))
	stack := newStack(t, Options{Limit: LimitOptions{Slots: 1, ReserveWrites: -1, ReserveReads: -1, Queue: -1}})
	done := make(chan error, 1)
	go func() {
		_, _, err := do(stack, get(t, tr.url))
		done <- err
	}()
	eventually(t, "it pauses", func() bool { return tr.hits.Load() == 1 && stack.Limiter.Load().InUse == 0 })
	if _, body, err := do(stack, get(t, tr.url)); body != "fine" || err != nil {
		t.Errorf("%q %v", body, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestBreakersUnderRace: whatever happens at once, the breaker comes back when the tracker does.
func TestBreakersUnderRace(t *testing.T) {
	m, o := newMoody(t, "ok"), isolated()
	o.Unanswered, o.OpenFor, o.ProbeEvery, o.Probe = 5, 5*time.Millisecond, time.Millisecond, GetProbe(m.url, nil)
	b := newBreakers(t, o)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 60 {
				m.mood.Store([]string{"ok", "500", "reset", "cut", "hang", "404"}[(g+i)%6])
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%5)*time.Millisecond)
				_, _, err := do(b, request(t, ctx, []string{"GET", "POST"}[i%2], m.url, ""))
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
	eventually(t, "closed again", func() bool { return m.read(t, b) == nil && b.Reads.State() == Closed })
	b.Reads.mu.Lock()
	defer b.Reads.mu.Unlock()
	if n := len(b.Reads.waiting); n != 0 {
		t.Errorf("%d calls are still thought to wait", n)
	}
}
