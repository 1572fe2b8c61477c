package transport

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// LimitOptions sets how many calls one tracker gets at a time. Zero fields mean the default in brackets.
type LimitOptions struct {
	Slots         int           // calls at a time [64]
	ReserveWrites int           // slots that only writes may take; -1 = none [Slots/8, at least 1 of 2]
	ReserveReads  int           // slots that shadows may not take, beside those for writes; -1 = none [Slots/4]
	Queue         int           // calls that may wait for a slot; -1 = none [64]
	QueueWait     time.Duration // how long one waits at most; negative = not at all [1s]
	RetryAfter    time.Duration // what a refused caller is told [1s]
}

func (o LimitOptions) withDefaults() LimitOptions {
	o.Slots = cmp.Or(o.Slots, 64)
	o.ReserveWrites = max(0, cmp.Or(o.ReserveWrites, o.Slots/8, min(1, o.Slots/2)))
	o.ReserveReads = max(0, cmp.Or(o.ReserveReads, o.Slots/4))
	o.Queue = max(0, cmp.Or(o.Queue, 64))
	o.QueueWait = max(0, cmp.Or(o.QueueWait, time.Second))
	o.RetryAfter = cmp.Or(o.RetryAfter, time.Second)
	return o
}

// Validate reports everything that is wrong with the options at once.
func (o LimitOptions) Validate() error {
	var reserve error
	if d := o.withDefaults(); d.Slots > 0 && d.ReserveWrites+d.ReserveReads >= d.Slots {
		reserve = errors.New("limit reserves: must leave at least one slot to everybody")
	}
	return errors.Join(reserve,
		notNegative("limit slots", o.Slots),
		notNegative("limit Retry-After", o.RetryAfter),
		atLeast("limit reserve for writes", o.ReserveWrites, -1),
		atLeast("limit reserve for reads", o.ReserveReads, -1),
		atLeast("limit queue", o.Queue, -1),
	)
}

// Limiter lets a bounded number of calls through at a time, each from its request to the end of its answer's body.
type Limiter struct {
	next http.RoundTripper
	o    LimitOptions

	mu      sync.Mutex
	inUse   int
	waiting [classes][]*waiter // first come, first served
	shed    [classes]uint64
}

// waiter is told nil when it has a slot, or why it gets none.
type waiter struct{ told chan error }

var (
	errQueueFull = errors.New("no slot and no room to wait")
	errQueueWait = errors.New("no slot in time")
)

// Limit bounds the calls through next.
func Limit(next http.RoundTripper, o LimitOptions) *Limiter {
	return &Limiter{next: next, o: o.withDefaults()}
}

// Load is a Limiter's present state and its past refusals, by Class.
type Load struct {
	Slots, InUse int
	Waiting      [classes]int
	Shed         [classes]uint64
}

// Load reads the state.
func (l *Limiter) Load() Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	load := Load{Slots: l.o.Slots, InUse: l.inUse, Shed: l.shed}
	for class, queue := range l.waiting {
		load.Waiting[class] = len(queue)
	}
	return load
}

// RoundTrip makes the call when there is a slot for its class.
func (l *Limiter) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := l.take(ctx, ClassOf(req)); err != nil {
		closeBody(req)
		return nil, l.refusal(ctx, err)
	}
	resp, err := l.next.RoundTrip(req)
	if err != nil {
		l.release()
		return nil, err
	}
	watch(ctx, resp, false, func(ending) { l.release() })
	return resp, nil
}

// refusal is clean in every case: nothing was sent.
func (l *Limiter) refusal(ctx context.Context, err error) *Error {
	if errors.Is(err, context.Canceled) {
		return contextError(ctx)
	}
	return &Error{Reason: LimitFull, Op: Operation(ctx), RetryAfter: l.o.RetryAfter, Err: err}
}

func (l *Limiter) acquire(ctx context.Context, class Class) error {
	w, err := l.enter(class)
	if w == nil {
		return err
	}
	patience := time.NewTimer(l.o.QueueWait)
	defer patience.Stop()
	select {
	case err := <-w.told:
		return err
	case <-patience.C:
		return l.leave(class, w, errQueueWait)
	case <-ctx.Done():
		return l.leave(class, w, ctx.Err())
	}
}

// enter takes a slot (nil, nil), a place in the queue, or nothing.
func (l *Limiter) enter(class Class) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fits(class) { // then nobody of this class waits: release sees to that
		l.inUse++
		return nil, nil
	}
	if !l.makeRoom(class) {
		l.shed[class]++
		return nil, errQueueFull
	}
	w := &waiter{told: make(chan error, 1)}
	l.waiting[class] = append(l.waiting[class], w)
	return w, nil
}

// leave gives a place in the queue up, unless the waiter was told something in the same moment.
func (l *Limiter) leave(class Class, w *waiter, why error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting[class], w)
	if i < 0 {
		return <-w.told // a slot that came just then is used: the call itself sees an ended context
	}
	l.waiting[class] = slices.Delete(l.waiting[class], i, i+1)
	if !errors.Is(why, context.Canceled) {
		l.shed[class]++
	}
	return why
}

// fits tells whether a slot is free that this class may take.
func (l *Limiter) fits(class Class) bool {
	slots := l.o.Slots
	if class < Write {
		slots -= l.o.ReserveWrites
	}
	if class < Read {
		slots -= l.o.ReserveReads
	}
	return l.inUse < slots
}

// makeRoom finds a place in the queue, if need be by sending the last one of the lowest class below this one away.
func (l *Limiter) makeRoom(class Class) bool {
	total := 0
	for _, queue := range l.waiting {
		total += len(queue)
	}
	if total < l.o.Queue {
		return true
	}
	for lower := range class {
		if n := len(l.waiting[lower]); n > 0 {
			l.waiting[lower][n-1].told <- errQueueFull
			l.waiting[lower] = l.waiting[lower][:n-1]
			l.shed[lower]++
			return true
		}
	}
	return false
}

// release gives the slot to whom it fits, the highest class first.
func (l *Limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse--
	for class := Write; ; class-- {
		for len(l.waiting[class]) > 0 && l.fits(class) {
			l.waiting[class][0].told <- nil
			l.waiting[class] = slices.Delete(l.waiting[class], 0, 1)
			l.inUse++
		}
		if class == Shadow {
			return
		}
	}
}
