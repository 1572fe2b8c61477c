package transport_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "portico/upstream/transport"

	"portico/test/process"
)

// gate is a tracker that responds when open is closed, and records the order and the number of its requests.
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
		ctx = With(ctx, shadow)
	case Write:
		ctx = With(ctx, writes)
	}
	return request(t, ctx, http.MethodGet, g.url+"/"+name, "")
}

// start makes a call in the background and waits until it has a slot or a place in the queue.
func (g *gate) start(t *testing.T, l *Stack, class Class, name string) <-chan error {
	t.Helper()
	before := l.Limiter.Load()
	done := background(l, g.classed(t, t.Context(), class, name))
	process.Eventually(t, name+" in", func() bool {
		now := l.Limiter.Load()
		return now.InUse+now.Waiting > before.InUse+before.Waiting || now.Shed != before.Shed
	})
	return done
}

// finish opens the gate, and all the given calls succeed.
func (g *gate) finish(t *testing.T, calls ...<-chan error) {
	t.Helper()
	close(g.open)
	for i, done := range calls {
		if err := <-done; err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// limited is a stack with a limit and nothing else.
func limited(t *testing.T, limit LimitOptions) *Stack {
	o := plain(BaseOptions{})
	o.Limit = limit
	return newStack(t, o)
}

func TestLimitSheds(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	l := limited(t, LimitOptions{Slots: 1, ReserveWrites: -1, Queue: 1, QueueWait: time.Second})
	running := g.start(t, l, Read, "running")
	begun := time.Now()
	queued := g.start(t, l, Read, "queued")
	_, _, err := do(l, g.classed(t, t.Context(), Read, "extra"))
	e, ok := err.(*Error)
	if !ok || e.Reason != LimitFull || e.RetryAfter != time.Second || e.Unknown {
		t.Errorf("no room: %v", err)
	}
	if len(queued) > 0 && time.Since(begun) < time.Second {
		t.Error("the call in the queue was refused first")
	}
	if err := <-queued; ReasonOf(err) != LimitFull || time.Since(begun) < time.Second {
		t.Errorf("no slot in time: %v after %v", err, time.Since(begun))
	}
	if load := l.Limiter.Load(); load.Shed != 2 || load.Waiting != 0 || load.InUse != 1 {
		t.Errorf("load %+v", load)
	}
	g.finish(t, running)

	// A place in the queue is of no use to a call that may not wait in it.
	g = newGate(t)
	l = limited(t, LimitOptions{Slots: 1, ReserveWrites: -1, QueueWait: -1})
	running = g.start(t, l, Read, "running")
	process.Eventually(t, "a call is refused before it could have waited", func() bool {
		begun := time.Now()
		if _, _, err := do(l, g.classed(t, t.Context(), Read, "extra")); ReasonOf(err) != LimitFull {
			t.Error(err)
		}
		return time.Since(begun) < 900*time.Millisecond
	})
	g.finish(t, running)
}

// TestWritesHaveASlotOfTheirOwn: wherever there is more than one, unless none shall be reserved. A write finds it.
func TestWritesHaveASlotOfTheirOwn(t *testing.T) {
	t.Parallel()
	free := func(o LimitOptions) int {
		g, s := newGate(t), limited(t, o)
		var calls []<-chan error
		defer func() {
			close(g.open)
			for _, done := range calls {
				<-done // the error is that of a full limit, or none
			}
		}()
		start := func(class Class) int {
			for range o.Slots {
				calls = append(calls, g.start(t, s, class, class.String()))
			}
			return s.Limiter.Load().InUse
		}
		reads := start(Read)
		if shadows := start(Shadow); shadows != reads {
			t.Errorf("calls for comparison took %d slots that reads do not get", shadows-reads)
		}
		if all := start(Write); all != o.Slots {
			t.Errorf("%d slots of %d are in use when writes have come", all, o.Slots)
		}
		return o.Slots - reads
	}
	for slots, want := range map[int]int{1: 0, 2: 1, 7: 1, 16: 2} {
		if got := free(LimitOptions{Slots: slots, Queue: -1}); got != want {
			t.Errorf("of %d slots %d are for writes, want %d", slots, got, want)
		}
		if got := free(LimitOptions{Slots: slots, Queue: -1, ReserveWrites: -1}); got != 0 {
			t.Errorf("of %d slots %d are for writes although none shall be", slots, got)
		}
	}
}

func TestLimitOrderOfSacrifice(t *testing.T) {
	g := newGate(t)
	l := limited(t, LimitOptions{Slots: 1, ReserveWrites: -1, Queue: 3, QueueWait: 5 * time.Second})
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
	g.finish(t, running, read, write1, write2)
	if want := []string{"running", "write1", "write2", "read"}; !slices.Equal(g.order, want) || g.most != 1 || l.Limiter.Load().InUse != 0 {
		t.Errorf("order %v, want %v; up to %d at a time, %+v at the end", g.order, want, g.most, l.Limiter.Load())
	}
}

func TestLimitHoldsTheSlotUntilTheBodyEnds(t *testing.T) {
	tr := newTracker(t, bigResponse)
	l := limited(t, LimitOptions{Slots: 1, ReserveWrites: -1, Queue: -1})
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
		process.Eventually(t, "the slot is free", func() bool { return l.Limiter.Load().InUse == 0 })
		_ = resp.Body.Close()
		if n := l.Limiter.Load().InUse; n != 0 {
			t.Errorf("%s: given back twice, %d in use", name, n)
		}
		cancel()
	}
}

// TestRefusalsCloseTheRequestBody, as every RoundTripper must.
func TestRefusalsCloseTheRequestBody(t *testing.T) {
	g, dead := newGate(t), deadURL(t)
	l := limited(t, LimitOptions{Slots: 1, ReserveWrites: -1, Queue: -1})
	running := g.start(t, l, Read, "running")
	b := newBreaking(t, BreakOptions{Unanswered: 1})
	_, _, _ = do(b, post(t, dead))
	for want, rt := range map[Reason]http.RoundTripper{LimitFull: l, BreakerOpen: b} {
		req, body := post(t, dead), &closeCounter{Reader: strings.NewReader("{}")}
		req.Body = body
		if _, _, err := do(rt, req); ReasonOf(err) != want || body.closed == 0 {
			t.Errorf("%v, closed %d times", err, body.closed)
		}
	}
	g.finish(t, running)
}

type closeCounter struct {
	io.Reader
	closed int
}

func (c *closeCounter) Close() error { c.closed++; return nil }

// TestLimitUnderRace: slots and places come out even whatever happens at the same time.
func TestLimitUnderRace(t *testing.T) {
	tr := newTracker(t, func(http.ResponseWriter, *http.Request) {})
	l := limited(t, LimitOptions{Slots: 4, Queue: 4, QueueWait: time.Millisecond})
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
			defer cancel()
			_, _, _ = do(l, request(t, ctx, []string{"GET", "POST"}[i%2], tr.url, ""))
		})
	}
	all.Wait()
	process.Eventually(t, "nothing held", func() bool { load := l.Limiter.Load(); return load.InUse == 0 && load.Waiting == 0 })
}

// TestRefusedIsMeasured: what Refuse refuses fails in the way in which a call fails, and is measured as one. The time of a call
// begins when it is sent: the wait for a slot is no part of it.
func TestRefusedIsMeasured(t *testing.T) {
	const wait = 50 * time.Millisecond
	g, seen := newGate(t), &recorder{}
	stack := newStack(t, Options{
		Observer: seen,
		Limit:    LimitOptions{Slots: 1, ReserveWrites: -1, Queue: 1, QueueWait: 5 * time.Second},
	})
	running := g.start(t, stack, Read, "running")
	gone, leave := context.WithCancel(t.Context())
	waiting := background(stack, g.classed(t, gone, Read, "waiting"))
	process.Eventually(t, "one waits", func() bool { return stack.Limiter.Load().Waiting == 1 })
	if _, _, err := do(stack, g.classed(t, t.Context(), Read, "extra")); ReasonOf(err) != LimitFull {
		t.Errorf("no room to wait: %v", err)
	}
	if err := stack.Refuse(Call{Operation: "op"}); ReasonOf(err) != LimitFull {
		t.Errorf("no room to wait: %v", err)
	}
	time.Sleep(wait)
	leave()
	if err := <-waiting; ReasonOf(err) != Canceled {
		t.Errorf("the caller has gone: %v", err)
	}
	if err := stack.Refuse(Call{}); err != nil {
		t.Errorf("with room to wait: %v", err)
	}
	g.finish(t, running)
	if load := stack.Limiter.Load(); load.InUse != 0 || load.Waiting != 0 || load.Shed != 2 || len(g.order) != 1 {
		t.Errorf("%+v, the tracker saw %q", load, g.order)
	}
	if samples := seen.all(); len(samples) != 4 || samples[1].Operation != "op" || samples[1].Reason != LimitFull || samples[2].Reason != Canceled ||
		samples[0].Total+samples[1].Total+samples[2].Total != 0 || samples[3].Total < wait {
		t.Errorf("observed: %+v", samples)
	}
}
