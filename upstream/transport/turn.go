package transport

import (
	"context"
	"sync/atomic"
	"time"
)

// turn is the slot of a call that has not begun yet, or why it gets none.
type turn struct {
	of    *Limiter
	asked time.Time
	err   error
	taken atomic.Bool // by the request that goes through Limiter with it
}

// Turn waits for the slot of a call before that begins. Between a caller and Limiter lie http.Client and half a dozen
// layers more, whose stack those who wait need not hold. The call that is made with the context has the slot, or fails just as
// it would have failed without; when it is repeated it queues anew. done must be called when the call has ended.
func (s *Stack) Turn(ctx context.Context, method string) (_ context.Context, done func()) {
	t := &turn{of: s.Limiter, asked: time.Now()}
	t.err = s.Limiter.acquire(ctx, classOf(ctx, method))
	return mark(ctx, func(m *marks) { m.turn = t }), t.giveBack
}

// giveBack returns a slot that no request took.
func (t *turn) giveBack() {
	if t.taken.CompareAndSwap(false, true) && t.err == nil {
		t.of.release()
	}
}

// take gives a request the slot that was waited for, or has it wait.
func (l *Limiter) take(ctx context.Context, class Class) error {
	if t := marksOf(ctx).turn; t != nil && t.of == l && t.taken.CompareAndSwap(false, true) {
		return t.err
	}
	return l.acquire(ctx, class)
}

// Begun is when a call began for its caller, who may have waited for its slot before. Asked before the call has gone through
// Limiter, as its context may be that of other calls later.
func Begun(ctx context.Context) time.Time {
	if t := marksOf(ctx).turn; t != nil && !t.taken.Load() {
		return t.asked
	}
	return time.Now()
}
