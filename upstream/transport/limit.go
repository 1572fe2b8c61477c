package transport

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	minWindow   = 250 * time.Millisecond // of counting calls that end, so that one pause of either machine decides nothing
	minGain     = 1.15                   // how many times as many calls twice the slots must serve in the same time
	growthPause = 30 * time.Second       // until slots are doubled again after that served no more calls, or after a failure
)

// Limiter lets a bounded number of calls run at a time, each from its request to the end of its response's body.
//
// It learns how many slots the tracker has use for. While calls wait, it doubles the slots, and goes back where twice as many did not
// serve more calls in the same time. A failure of the tracker, or a queue that is empty, ends the use of what was learned.
type Limiter struct {
	o LimitOptions

	mu    sync.Mutex
	slots int
	inUse int
	queue []*waiter // the highest class first, then first come, first served
	shed  uint64

	// A window is a time in which ending calls are counted.
	window    time.Time // its begin
	ended     int       // calls
	saturated bool      // calls waited when it began
	before    float64   // calls that ended in a second before the slots were last doubled; 0 if they were not
	next      time.Time // when they may be doubled
}

func newLimiter(o LimitOptions) *Limiter { return &Limiter{o: o, slots: o.Slots} }

var errFull = errors.New("no slot, and the queue is full")

// waiter is one place in the queue.
type waiter struct {
	class  Class
	result chan error // nil when it has a slot, or why it gets none
}

// Load is a Limiter's present state and the number of its past refusals.
type Load struct {
	Slots, InUse, Waiting int
	Shed                  uint64
}

// Load returns the present state.
func (l *Limiter) Load() Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Load{Slots: l.slots, InUse: l.inUse, Waiting: len(l.queue), Shed: l.shed}
}

// acquire waits for a slot. It returns the error of ctx when that ends first.
func (l *Limiter) acquire(ctx context.Context, class Class) error {
	w := l.enter(class)
	if w == nil {
		return nil
	}
	timeout := time.NewTimer(l.o.QueueWait)
	defer timeout.Stop()
	select {
	case err := <-w.result:
		return err
	case <-timeout.C:
		return l.leave(w, errors.New("no slot in time"))
	case <-ctx.Done():
		return l.leave(w, ctx.Err())
	}
}

// enter takes a slot and returns nil, or takes a place in the queue. When the queue is full its last waiter is refused: the
// latest of the lowest class.
func (l *Limiter) enter(class Class) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fits(class) { // then no call of this class waits, because release lets in all that fit
		l.inUse++
		return nil
	}
	if len(l.queue) == 0 && l.ended == 0 {
		l.window, l.saturated = time.Now(), true
	}
	w := &waiter{class, make(chan error, 1)}
	at := slices.IndexFunc(l.queue, func(other *waiter) bool { return other.class < class })
	if at < 0 {
		at = len(l.queue)
	}
	l.queue = slices.Insert(l.queue, at, w)
	if last := len(l.queue) - 1; last == l.o.Queue {
		l.queue[last].result <- errFull
		l.queue = slices.Delete(l.queue, last, last+1)
		l.shed++
	}
	return w
}

// leave gives up a place in the queue, unless the waiter got a result at the same moment.
func (l *Limiter) leave(w *waiter, reason error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.queue, w)
	if at < 0 {
		return <-w.result // a slot that came just then is used: the call itself sees an ended context
	}
	l.queue = slices.Delete(l.queue, at, at+1)
	if !errors.Is(reason, context.Canceled) {
		l.shed++
	}
	return reason
}

// fits reports whether a slot is free that this class may take. What fits a class fits all higher ones.
func (l *Limiter) fits(class Class) bool {
	slots := l.slots
	if class < Write {
		slots -= l.o.ReserveWrites
	}
	return l.inUse < slots
}

// release frees a slot and gives free slots to calls that wait.
func (l *Limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse--
	if l.ended++; l.ended >= l.slots-l.o.ReserveWrites { // time enough for each slot to be used
		l.learn(time.Now())
	}
	for len(l.queue) > 0 && l.fits(l.queue[0].class) {
		l.queue[0].result <- nil
		l.queue = slices.Delete(l.queue, 0, 1)
		l.inUse++
	}
}

// learn ends a window and decides about the slots. Only a window at both ends of which calls wait tells what the tracker can do.
func (l *Limiter) learn(now time.Time) {
	passed := now.Sub(l.window)
	if passed < minWindow {
		return
	}
	saturated, rate := l.saturated && len(l.queue) > 0, float64(l.ended)/passed.Seconds()
	l.window, l.ended, l.saturated = now, 0, len(l.queue) > 0
	switch {
	case !saturated:
		l.before = 0
		if l.inUse < l.o.Slots {
			l.slots = l.o.Slots
		}
	case l.before > 0 && rate < minGain*l.before:
		l.slots, l.before, l.next = l.slots/2, 0, now.Add(growthPause)
	case 2*l.slots <= l.o.MaxSlots && now.After(l.next):
		l.slots, l.before = 2*l.slots, rate
	}
}

// failed ends the use of what was learned. Calls that run go on.
func (l *Limiter) failed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots, l.before, l.next = l.o.Slots, 0, time.Now().Add(growthPause)
}

// refuse counts and returns the refusal of a call that enter would refuse at once, or returns nil.
func (l *Limiter) refuse(class Class) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.queue) - 1
	if l.fits(class) || last+1 < l.o.Queue || last >= 0 && l.queue[last].class < class {
		return nil
	}
	l.shed++
	return errFull
}

// Refuse returns the error of a read that would be refused at once, or nil. The read counts as made then.
func (s *Stack) Refuse(of Call) error {
	c := s.newCall(of, http.MethodGet)
	err := c.refuse()
	if err != nil {
		c.report(nil, err)
	}
	return err
}

// refuse returns why a call must not begin, nil while it may.
func (c *call) refuse() error {
	s := c.stack
	if wait := s.paused.left(c.Client); wait > 0 {
		return c.newError(RateLimited, wait, nil)
	}
	if wait := c.breaker().refuse(c.read); wait > 0 {
		return c.newError(BreakerOpen, wait, nil)
	}
	if err := s.Limiter.refuse(c.class); err != nil {
		return c.newError(LimitFull, time.Second, err)
	}
	return nil
}
