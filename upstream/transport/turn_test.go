package transport

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// onlyOne is a stack with one slot and room for one who waits.
func onlyOne(t *testing.T, observer Observer) *Stack {
	return newStack(t, Options{
		Observer: observer,
		Limit:    LimitOptions{Slots: 1, ReserveWrites: -1, ReserveReads: -1, Queue: 1, QueueWait: 5 * time.Second},
	})
}

func TestTurnIsTheSlotOfTheCall(t *testing.T) {
	g, stack := newGate(t), onlyOne(t, nil)
	close(g.open)
	ctx, done := stack.Turn(t.Context(), http.MethodGet)
	if load := stack.Limiter.Load(); load.InUse != 1 {
		t.Errorf("before the call %+v", load)
	}
	if _, _, err := do(stack, request(t, ctx, http.MethodGet, g.url+"/a", "")); err != nil {
		t.Fatalf("a call that has its slot: %v", err)
	}
	if load := stack.Limiter.Load(); load.InUse != 0 {
		t.Errorf("after the call %+v", load)
	}
	// Another call of the same context has to ask for a slot of its own.
	if _, _, err := do(stack, request(t, ctx, http.MethodGet, g.url+"/b", "")); err != nil {
		t.Errorf("the second call: %v", err)
	}
	done()
	if load := stack.Limiter.Load(); load.InUse != 0 {
		t.Errorf("at the end %+v", load)
	}
}

func TestTurnThatNobodyTookIsGivenBackOnce(t *testing.T) {
	stack := onlyOne(t, nil)
	_, done := stack.Turn(t.Context(), http.MethodGet)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, refused := stack.Turn(gone, http.MethodGet)
	if refused(); stack.Limiter.Load().InUse != 1 {
		t.Error("who got no slot gave one back")
	}
	done()
	done()
	if load := stack.Limiter.Load(); load.InUse != 0 {
		t.Errorf("%+v", load)
	}
}

// TestTurnsAreOfOneStack: a slot at one tracker is none at another.
func TestTurnsAreOfOneStack(t *testing.T) {
	g, mine, other := newGate(t), onlyOne(t, nil), onlyOne(t, nil)
	ctx, done := mine.Turn(t.Context(), http.MethodGet)
	defer done()
	running := make(chan error, 1)
	go func() {
		_, _, err := do(other, request(t, ctx, http.MethodGet, g.url+"/a", ""))
		running <- err
	}()
	eventually(t, "a slot of its own", func() bool { return other.Limiter.Load().InUse == 1 })
	close(g.open)
	if err := <-running; err != nil {
		t.Error(err)
	}
}

// TestRefusedTurnFailsItsCall in the way in which it would have failed without, and nothing is sent.
func TestRefusedTurnFailsItsCall(t *testing.T) {
	g, seen := newGate(t), &recorder{}
	stack := onlyOne(t, seen)
	running := g.start(t, stack.Limiter, Read, "running")
	gone, leave := context.WithCancel(t.Context())
	waiting := make(chan context.Context)
	go func() {
		ctx, _ := stack.Turn(gone, http.MethodGet)
		waiting <- ctx
	}()
	eventually(t, "one waits", func() bool { return total(stack.Limiter.Load().Waiting) == 1 })
	full, done := stack.Turn(t.Context(), http.MethodGet)
	if _, _, err := do(stack, request(t, full, http.MethodGet, g.url+"/full", "")); ReasonOf(err) != LimitFull {
		t.Errorf("no room to wait: %v", err)
	}
	done()
	leave()
	if _, _, err := do(stack, request(t, <-waiting, http.MethodGet, g.url+"/gone", "")); ReasonOf(err) != Canceled {
		t.Errorf("the caller has gone: %v", err)
	}
	close(g.open)
	if err := <-running; err != nil {
		t.Error(err)
	}
	if load := stack.Limiter.Load(); load.InUse != 0 || load.Shed[Read] != 1 || len(g.order) != 1 {
		t.Errorf("%+v, the tracker saw %q", load, g.order)
	}
	if samples := seen.all(); len(samples) != 2 || samples[0].Reason != LimitFull {
		t.Errorf("observed: %+v", samples)
	}
}

// TestTurnsHaveTheirClass: a shadow finds no slot where a read does.
func TestTurnsHaveTheirClass(t *testing.T) {
	stack := newStack(t, Options{Limit: LimitOptions{Slots: 2, ReserveWrites: -1, ReserveReads: 1, Queue: -1}})
	_, first := stack.Turn(WithShadow(t.Context()), http.MethodGet)
	defer first()
	_, second := stack.Turn(WithShadow(t.Context()), http.MethodGet)
	defer second()
	_, third := stack.Turn(t.Context(), http.MethodGet)
	defer third()
	if load := stack.Limiter.Load(); load.InUse != 2 || load.Shed != [classes]uint64{Shadow: 1} {
		t.Errorf("%+v", load)
	}
}

// TestWaitingForATurnIsMeasured as a part of the call.
func TestWaitingForATurnIsMeasured(t *testing.T) {
	const wait = 50 * time.Millisecond
	g, seen := newGate(t), &recorder{}
	stack := onlyOne(t, seen)
	running := g.start(t, stack.Limiter, Read, "running")
	time.AfterFunc(wait, func() { close(g.open) })
	ctx, done := stack.Turn(t.Context(), http.MethodGet)
	defer done()
	if _, _, err := do(stack, request(t, ctx, http.MethodGet, g.url+"/a", "")); err != nil {
		t.Fatal(err)
	}
	if took := seen.last(t).Headers; took < wait/2 {
		t.Errorf("measured %v of a call that waited %v", took, wait)
	}
	resting := time.Now()
	time.Sleep(wait)
	if begun := Begun(ctx); begun.Before(resting) {
		t.Errorf("another call of the same context began %v ago", time.Since(begun))
	}
	<-running
}

// TestRepeatedCallsQueueAnew: the slot of a turn is good for one request.
func TestRepeatedCallsQueueAnew(t *testing.T) {
	tr := flaky(t, 1, say("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"))
	stack := onlyOne(t, nil)
	ctx, done := stack.Turn(t.Context(), http.MethodGet)
	status, _, err := do(stack, request(t, ctx, http.MethodGet, tr.url, ""))
	done()
	if load := stack.Limiter.Load(); err != nil || status != http.StatusOK || load.InUse != 0 {
		t.Errorf("%d, %v, %+v", status, err, load)
	}
}
