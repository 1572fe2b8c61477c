package transport

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gate is a tracker that answers when it is told to, and knows the order and the number of its guests.
type gate struct {
	*tracker
	open  chan struct{}
	mu    sync.Mutex
	order []string
	now   atomic.Int64
	most  int64
}

func newGate(t *testing.T) *gate {
	g := &gate{open: make(chan struct{})}
	g.tracker = newTracker(t, func(_ http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.order = append(g.order, r.URL.Path[1:])
		g.most = max(g.most, g.now.Add(1))
		g.mu.Unlock()
		defer g.now.Add(-1)
		select {
		case <-g.open:
		case <-r.Context().Done():
		}
	})
	return g
}

// classed is a call of a class; its path is its name at the gate.
func (g *gate) classed(t *testing.T, ctx context.Context, class Class, name string) *http.Request {
	switch class {
	case Shadow:
		ctx = WithShadow(ctx)
	case Write:
		ctx = WithWrite(ctx)
	}
	return request(t, ctx, http.MethodGet, g.url+"/"+name, "")
}

// start makes a call in the background and waits until it has a slot or a place in the queue.
func (g *gate) start(t *testing.T, l *Limiter, class Class, name string) <-chan error {
	t.Helper()
	before := l.Load()
	done := make(chan error, 1)
	req := g.classed(t, t.Context(), class, name)
	go func() {
		_, _, err := do(l, req)
		done <- err
	}()
	eventually(t, name+" in", func() bool {
		now := l.Load()
		return now.InUse+total(now.Waiting) > before.InUse+total(before.Waiting) || now.Shed != before.Shed
	})
	return done
}

func total(n [classes]int) int { return n[Shadow] + n[Read] + n[Write] }

func TestLimitBoundsWhatRuns(t *testing.T) {
	g := newGate(t)
	l := Limit(newBase(t, BaseOptions{}), LimitOptions{Slots: 3, ReserveWrites: -1, ReserveReads: -1, Queue: 20, QueueWait: 5 * time.Second})
	var all []<-chan error
	for i := range 10 {
		all = append(all, g.start(t, l, Write, strconv.Itoa(i)))
	}
	eventually(t, "3 at the tracker", func() bool { return g.now.Load() == 3 })
	if load := l.Load(); load.InUse != 3 || load.Waiting[Write] != 7 {
		t.Errorf("load %+v", load)
	}
	close(g.open)
	for i, done := range all {
		if err := <-done; err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if g.most != 3 || l.Load().InUse != 0 {
		t.Errorf("up to %d at a time; %d held at the end", g.most, l.Load().InUse)
	}
}

func TestLimitSheds(t *testing.T) {
	g := newGate(t)
	l := Limit(newBase(t, BaseOptions{}), LimitOptions{Slots: 1, ReserveWrites: -1, ReserveReads: -1, Queue: 1, QueueWait: 100 * time.Millisecond, RetryAfter: 7 * time.Second})
	running := g.start(t, l, Read, "running")
	begun := time.Now()
	queued := g.start(t, l, Read, "queued")
	_, _, err := do(l, g.classed(t, t.Context(), Read, "extra"))
	e, ok := err.(*Error)
	if !ok || e.Reason != LimitFull || e.RetryAfter != 7*time.Second || e.Unknown || time.Since(begun) > 90*time.Millisecond {
		t.Errorf("no room: %v after %v", err, time.Since(begun))
	}
	if err := <-queued; ReasonOf(err) != LimitFull || time.Since(begun) < 100*time.Millisecond {
		t.Errorf("no slot in time: %v after %v", err, time.Since(begun))
	}
	if load := l.Load(); load.Shed[Read] != 2 || total(load.Waiting) != 0 || load.InUse != 1 {
		t.Errorf("load %+v", load)
	}
	close(g.open)
	if err := <-running; err != nil {
		t.Error(err)
	}
}

// TestNoTimeToWait: there is room in the queue, but nobody is let wait in it.
func TestNoTimeToWait(t *testing.T) {
	g := newGate(t)
	l := Limit(newBase(t, BaseOptions{}), LimitOptions{Slots: 1, ReserveWrites: -1, ReserveReads: -1, QueueWait: -1})
	running, begun := g.start(t, l, Read, "running"), time.Now()
	if _, _, err := do(l, g.classed(t, t.Context(), Read, "extra")); ReasonOf(err) != LimitFull || time.Since(begun) > 900*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	close(g.open)
	if err := <-running; err != nil {
		t.Error(err)
	}
}

// TestWritesHaveASlotOfTheirOwn: wherever there is more than one, unless nobody is to have any.
func TestWritesHaveASlotOfTheirOwn(t *testing.T) {
	for slots, want := range map[int]int{1: 0, 2: 1, 3: 1, 7: 1, 8: 1, 16: 2, 64: 8} {
		o := LimitOptions{Slots: slots}
		if got := o.withDefaults().ReserveWrites; got != want || o.Validate() != nil {
			t.Errorf("of %d slots %d are for writes, want %d; %v", slots, got, want, o.Validate())
		}
		if got := (LimitOptions{Slots: slots, ReserveWrites: -1}).withDefaults().ReserveWrites; got != 0 {
			t.Errorf("of %d slots %d are for writes although none shall be", slots, got)
		}
	}
}

func TestLimitReserves(t *testing.T) {
	g := newGate(t)
	l := Limit(newBase(t, BaseOptions{}), LimitOptions{Slots: 3, ReserveWrites: 1, ReserveReads: 1, Queue: -1})
	refused := func(class Class) {
		t.Helper()
		if _, _, err := do(l, g.classed(t, t.Context(), class, "refused")); ReasonOf(err) != LimitFull {
			t.Errorf("%v took a slot that is not for it: %v", class, err)
		}
	}
	all := []<-chan error{g.start(t, l, Shadow, "shadow")}
	refused(Shadow)
	all = append(all, g.start(t, l, Read, "read"))
	refused(Read)
	all = append(all, g.start(t, l, Write, "write"))
	refused(Write)
	close(g.open)
	for _, done := range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestLimitOrderOfSacrifice(t *testing.T) {
	g := newGate(t)
	l := Limit(newBase(t, BaseOptions{}), LimitOptions{Slots: 1, ReserveWrites: -1, ReserveReads: -1, Queue: 3, QueueWait: 5 * time.Second})
	running := g.start(t, l, Read, "running")
	shadow1 := g.start(t, l, Shadow, "shadow1")
	shadow2 := g.start(t, l, Shadow, "shadow2")
	read := g.start(t, l, Read, "read")
	write1 := g.start(t, l, Write, "write1")
	if err := <-shadow2; ReasonOf(err) != LimitFull {
		t.Errorf("the write should have had the place of the last shadow: %v", err)
	}
	write2 := g.start(t, l, Write, "write2")
	if err := <-shadow1; ReasonOf(err) != LimitFull {
		t.Errorf("the write should have had the place of the other shadow: %v", err)
	}
	close(g.open)
	for _, done := range []<-chan error{running, read, write1, write2} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if want := []string{"running", "write1", "write2", "read"}; len(g.order) != 4 || g.order[1] != want[1] || g.order[2] != want[2] || g.order[3] != want[3] {
		t.Errorf("order %v, want %v", g.order, want)
	}
}

func TestLimitHoldsTheSlotUntilTheBodyEnds(t *testing.T) {
	tr := newTracker(t, bigAnswer)
	l := Limit(newBase(t, BaseOptions{}), LimitOptions{Slots: 1, ReserveWrites: -1, ReserveReads: -1, Queue: -1})
	for name, end := range map[string]func(*http.Response, context.CancelFunc){
		"closed":        func(r *http.Response, _ context.CancelFunc) { _ = r.Body.Close(); _ = r.Body.Close() },
		"context ended": func(_ *http.Response, cancel context.CancelFunc) { cancel() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := l.RoundTrip(request(t, ctx, http.MethodGet, tr.url, ""))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 1<<20)
		if _, _, err := do(l, get(t, tr.url)); ReasonOf(err) != LimitFull {
			t.Errorf("%s: a second call ran while the first body was open: %v", name, err)
		}
		end(resp, cancel)
		eventually(t, "the slot is free", func() bool { return l.Load().InUse == 0 })
		_ = resp.Body.Close()
		if n := l.Load().InUse; n != 0 {
			t.Errorf("%s: given back twice, %d in use", name, n)
		}
		cancel()
	}
}

func TestLimitForgetsWhoLeaves(t *testing.T) {
	g := newGate(t)
	l := Limit(newBase(t, BaseOptions{}), LimitOptions{Slots: 1, ReserveWrites: -1, ReserveReads: -1, QueueWait: 5 * time.Second})
	running := g.start(t, l, Read, "running")
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, _, err := do(l, g.classed(t, ctx, Read, "left"))
		left <- err
	}()
	eventually(t, "it waits", func() bool { return l.Load().Waiting[Read] == 1 })
	cancel()
	if err := <-left; ReasonOf(err) != Canceled || l.Load().Waiting[Read] != 0 || l.Load().Shed[Read] != 0 {
		t.Errorf("%v, load %+v", err, l.Load())
	}
	close(g.open)
	if err := <-running; err != nil {
		t.Error(err)
	}
}

// TestRefusalsCloseTheRequestBody, as every RoundTripper must.
func TestRefusalsCloseTheRequestBody(t *testing.T) {
	g, dead := newGate(t), deadURL(t)
	l := Limit(newBase(t, BaseOptions{}), LimitOptions{Slots: 1, ReserveWrites: -1, ReserveReads: -1, Queue: -1})
	running := g.start(t, l, Read, "running")
	b := newBreakers(t, BreakOptions{Unanswered: 1})
	_, _, _ = do(b, post(t, dead))
	for want, rt := range map[Reason]http.RoundTripper{LimitFull: l, BreakerOpen: b} {
		req, body := post(t, dead), &closeCounter{Reader: strings.NewReader("{}")}
		req.Body = body
		if _, _, err := do(rt, req); ReasonOf(err) != want || body.closed == 0 {
			t.Errorf("%v, closed %d times", err, body.closed)
		}
	}
	close(g.open)
	if err := <-running; err != nil {
		t.Error(err)
	}
}

type closeCounter struct {
	io.Reader
	closed int
}

func (c *closeCounter) Close() error { c.closed++; return nil }

// TestLimitUnderRace: slots and places come out even whatever happens at the same time.
func TestLimitUnderRace(t *testing.T) {
	tr := newTracker(t, func(http.ResponseWriter, *http.Request) {})
	l := Limit(newBase(t, BaseOptions{}), LimitOptions{Slots: 4, Queue: 4, QueueWait: time.Millisecond})
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
			defer cancel()
			_, _, _ = do(l, request(t, ctx, []string{"GET", "POST"}[i%2], tr.url, ""))
		})
	}
	all.Wait()
	eventually(t, "nothing held", func() bool { load := l.Load(); return load.InUse == 0 && total(load.Waiting) == 0 })
}
