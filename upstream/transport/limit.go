package transport

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	tickEvery   = 25 * time.Millisecond // in which the slots change once at most
	rampTicks   = 24                    // in which a tracker without a response gets as many calls as MaxSlots
	minEnded    = 8                     // calls whose mean time counts
	slowLooks   = 4                     // in a row, after which the slots shrink
	maxSlower   = 1.7                   // times the usual mean; at 2 twice as many calls are served no sooner
	growthPause = 30 * time.Second      // until slots are doubled again after that served no more calls, or after a failure
	calmTicks   = 40                    // with fewer calls than Slots, after which what was learned no longer counts
)

// Limiter lets a bounded number of calls run at a time, each from its request to the end of its response's body.
//
// It learns how many slots the tracker has use for. While calls wait, it doubles the slots, as long as the tracker responds as quickly as
// before or has not responded at all: a slow tracker would have got all those calls at once without Portico, too. Where responses take longer
// with more calls, those only wait at the tracker, and the slots shrink. So they do after a failure, and when there are few calls.
type Limiter struct {
	o LimitOptions

	mu    sync.Mutex
	slots int
	inUse int
	queue []*waiter // the highest class first, then first come, first served
	shed  uint64
	ticks bool // tick runs: calls wait, or there are more slots than Slots

	// What was learned. Calls that began before changed do not count in ended and took.
	usual   time.Duration // the mean time to a response with as many calls as Slots; 0 = no responses yet
	ended   int           // calls since the last look at them
	took    time.Duration // by those
	slower  int           // looks in a row that found responses to take longer; slowLooks of them count
	changed time.Time     // when the slots did
	next    time.Time     // when they may be doubled
	calm    int           // ticks in a row with fewer calls than Slots
}

var (
	errFull = errors.New("no slot, and the queue is full")
	errLate = errors.New("no slot in time")
)

// waiter is one place in the queue.
type waiter struct {
	class    Class
	until    time.Time
	patience time.Duration // of acquire
	result   chan error    // nil when it has a slot, or why it gets none
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

// acquire waits for a slot. It returns the error of ctx when that ends first. A call beyond Slots may have to wait for a worker of the tracker
// instead of a slot: patience is how long it may do so, and 0 for all others.
func (l *Limiter) acquire(ctx context.Context, class Class) (patience time.Duration, err error) {
	w, patience := l.enter(class)
	if w == nil {
		return patience, nil
	}
	select {
	case err = <-w.result:
	case <-ctx.Done():
		err = l.leave(w, ctx.Err())
	}
	return w.patience, err
}

// enter takes a slot and returns no waiter, or takes a place in the queue. When the queue is full its last waiter is refused: the
// latest of the lowest class.
func (l *Limiter) enter(class Class) (*waiter, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fits(class) { // then no call of this class waits, because dispatch lets in all that fit
		return nil, l.take(l.o.QueueWait)
	}
	w := &waiter{class: class, until: time.Now().Add(l.o.QueueWait), result: make(chan error, 1)}
	at := len(l.queue)
	for at > 0 && l.queue[at-1].class < class {
		at--
	}
	l.queue = slices.Insert(l.queue, at, w)
	if last := len(l.queue) - 1; last == l.o.Queue {
		l.queue[last].result <- errFull
		l.queue = l.queue[:last]
		l.shed++
	}
	if !l.ticks {
		l.ticks = true
		time.AfterFunc(tickEvery, l.tick)
	}
	return w, 0
}

// take takes a slot, and returns the time that is left as the patience of a call beyond Slots.
func (l *Limiter) take(left time.Duration) time.Duration {
	if l.inUse++; l.inUse <= l.o.Slots {
		return 0
	}
	return left
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

// dispatch gives free slots to calls that wait.
func (l *Limiter) dispatch() {
	for len(l.queue) > 0 && l.fits(l.queue[0].class) {
		w := l.queue[0]
		w.patience = l.take(time.Until(w.until))
		w.result <- nil
		l.queue = l.queue[1:]
	}
}

// release frees the slot of a call that began at a time and whose response took some, or 0 when there was none.
func (l *Limiter) release(began time.Time, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse--
	if took > 0 && l.ticks && !began.Before(l.changed) {
		l.ended++
		l.took += took
	}
	l.dispatch()
}

// tick refuses calls that have waited for too long and decides about the slots.
func (l *Limiter) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
		late := !now.Before(w.until)
		if late {
			w.result <- errLate
			l.shed++
		}
		return late
	})
	l.learn(now)
	l.dispatch()
	if l.ticks = len(l.queue) > 0 || l.slots > l.o.Slots; l.ticks {
		time.AfterFunc(tickEvery, l.tick)
	} else {
		l.forget()
	}
}

// learn decides about the slots by the responses since the last time: they shrink when responses were slower slowLooks times in a row, and grow when
// calls wait.
func (l *Limiter) learn(now time.Time) {
	if l.calm++; l.inUse >= l.o.Slots-l.o.ReserveWrites {
		l.calm = 0
	}
	mean, grown := l.took/time.Duration(max(1, l.ended)), 2*l.slots
	switch {
	case l.calm > calmTicks:
		l.forget()
		return
	case l.ended == 0 && l.usual == 0: // no response yet, so nothing says that more calls would only wait
		grown = l.slots + (l.o.MaxSlots-l.o.Slots)/rampTicks + 1
	case l.ended < minEnded: // too few to tell
		return
	case l.usual == 0 || l.slots == l.o.Slots:
		l.usual = mean
	case float64(mean) <= maxSlower*float64(l.usual):
		l.slower = 0
	default:
		if l.slower++; l.slower == slowLooks {
			l.slots, l.changed, l.next = max(l.o.Slots, int(int64(l.slots)*int64(l.usual)/int64(mean))), now, now.Add(growthPause)
		}
	}
	l.ended, l.took = 0, 0
	if len(l.queue) == 0 || l.slower > 0 || now.Before(l.next) {
		return
	}
	if l.slots = min(grown, l.o.MaxSlots); l.usual > 0 {
		l.changed = now
	}
}

// forget ends the use of what was learned. Calls that run go on.
func (l *Limiter) forget() {
	l.slots, l.usual, l.ended, l.took, l.slower, l.calm, l.changed = l.o.Slots, 0, 0, 0, 0, 0, time.Time{}
}

// failed is called when the tracker has failed.
func (l *Limiter) failed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	l.next = time.Now().Add(growthPause)
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
