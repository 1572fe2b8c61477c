package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Breaker is the circuit breaker of one kind of call to one tracker.
//
// gobreaker counts and decides; around it stands what it does not have: open times that grow, a probe that ends
// them early, a deadline for trials, and the release of callers who wait for a tracker that has stopped answering.
// So gobreaker's own open time is a nanosecond, and until is the one that counts.
type Breaker struct {
	name   string
	o      BreakOptions
	opened func() // starts the prober
	closed func() // after it closed; nil = nobody wants to know

	mu         sync.Mutex
	cb         *gobreaker.TwoStepCircuitBreaker[struct{}]
	state      State
	episode    uint64 // grows with every change of state: results of earlier ones no longer count
	since      time.Time
	openedAt   time.Time     // when it last opened
	until      time.Time     // of the open state
	reopened   int           // trials failed in a row
	lifted     bool          // a probe, not time, ended the last open state
	scouts     int           // under way
	scouted    time.Time     // when the last scout went
	usual      time.Duration // about the longest that good answers take to begin
	vouched    bool          // the tracker answered a probe or another call since the breaker opened
	suspect    bool          // a call waited in vain while closed: probes ask whether the tracker hangs
	distrust   bool          // a probe's word has proved wrong since the breaker was last closed
	unanswered int           // calls in a row
	reason     Reason        // of the last failure
	waiting    map[*call]struct{}
	released   []*call
	opens      uint64
	rejected   uint64
	history    []Change
	pending    []Change // for OnChange
	delivering bool
}

func newBreaker(name string, o BreakOptions, opened func()) *Breaker {
	b := &Breaker{name: name, o: o, opened: opened, state: Closed, since: time.Now(), waiting: map[*call]struct{}{}}
	b.cb = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:          name,
		MaxRequests:   uint32(o.Trials),
		Interval:      o.bucket() * buckets,
		BucketPeriod:  o.bucket(),
		Timeout:       1,
		ReadyToTrip:   b.readyToTrip,
		OnStateChange: b.changed,
		IsExcluded:    func(err error) bool { return errors.Is(err, errNeutral) },
	})
	return b
}

var errNeutral = errors.New("says nothing about the tracker")

// call is one admitted call.
type call struct {
	done    func(error)
	episode uint64
	begun   time.Time
	cancel  context.CancelCauseFunc
	trial   *time.Timer // nil but for trials and scouts
	client  *stopwatch  // nil but for those: how long the caller's own bytes were waited for
	scout   bool
	over    bool
}

// verdict is what a finished call says about the tracker: failed with a reason, fine, or nothing.
type verdict struct {
	reason  Reason // "" = fine
	neutral bool
}

// admit lets a call through or returns how long the caller should wait. Reads are released when the breaker opens for
// want of answers; writes are not, because a write that was sent is better waited for than called unknown.
func (b *Breaker) admit(cancel context.CancelCauseFunc, read bool) (*call, time.Duration) {
	defer b.deliver()
	b.mu.Lock()
	defer b.mu.Unlock()
	now, wait := time.Now(), b.o.ProbeEvery
	var done func(error)
	err := errClosedDoor
	if b.state == Open && now.Before(b.until) {
		wait = b.until.Sub(now)
	} else {
		done, err = b.cb.Allow() // refuses when half-open and the trials are under way
	}
	switch {
	case err == nil:
	case read && b.mayScout(now):
		return b.scout(cancel, now), 0
	default:
		b.rejected++
		return nil, wait
	}
	c := &call{done: done, episode: b.episode, begun: now, cancel: cancel}
	if b.state == HalfOpen {
		c.client = &stopwatch{}
		c.trial = time.AfterFunc(b.trialTime(), func() { b.expire(c) })
	}
	if read {
		b.waiting[c] = struct{}{}
	}
	return c, 0
}

var errClosedDoor = errors.New("open, and its time is not over")

// answered is called when the header of a good answer is there: the call no longer waits, its verdict follows.
func (b *Breaker) answered(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, c)
	b.usual = max(b.usual-b.usual/16, time.Since(c.begun))
	if c.trial != nil && c.trial.Stop() {
		c.trial = time.AfterFunc(b.o.TrialTimeout, func() { b.finish(c, verdict{neutral: true}) })
	}
}

// expire ends a trial that got no answer in time, so that one that is never reported cannot hold the breaker half-open.
// A tracker that was not even given the whole question has not failed: then another call may try.
func (b *Breaker) expire(c *call) {
	if c.client.running() || c.client.elapsed() > time.Since(c.begun)/2 {
		b.finish(c, verdict{neutral: true})
		return
	}
	b.finish(c, verdict{reason: Timeout})
}

// finish takes the verdict of a call. Only the first one counts.
func (b *Breaker) finish(c *call, v verdict) {
	b.mu.Lock()
	if c.over {
		c.left(b)
		b.mu.Unlock()
		return
	}
	c.over = true
	if c.trial != nil {
		c.trial.Stop()
	}
	switch {
	case c.scout:
		b.returned(c, v)
	case c.episode == b.episode:
		b.count(c, v)
	}
	delete(b.waiting, c) // after count: a trial that expired is among those to release
	release, ask := b.release(), b.suspect
	b.mu.Unlock()
	release()
	b.deliver()
	if ask {
		b.opened()
	}
}

var errReleased = errors.New("the tracker stopped answering while this call waited")

func (b *Breaker) count(c *call, v verdict) {
	switch {
	case v.neutral:
		c.done(errNeutral)
		return
	case v.reason == "":
		b.unanswered, b.suspect = 0, false
		b.report(c, nil)
		return
	case v.reason.noAnswer():
		b.unanswered++
		b.suspect = b.suspect || v.reason == Timeout && b.state == Closed && b.o.Probe != nil
	default:
		b.unanswered = 0
	}
	b.reason = v.reason
	b.report(c, errFailed)
}

var errFailed = errors.New("the call failed")

// report books a result when it is known. gobreaker books it when the call began, and forgets it when that is longer
// ago than the window: a tracker that hangs for longer than that would never open the breaker.
func (b *Breaker) report(c *call, err error) {
	if b.state != Closed || time.Since(c.begun) < b.o.bucket() {
		c.done(err)
		return
	}
	c.done(errNeutral)
	if done, refused := b.cb.Allow(); refused == nil {
		done(err)
	}
}

func (b *Breaker) readyToTrip(n gobreaker.Counts) bool {
	total := int(n.TotalSuccesses + n.TotalFailures)
	return b.unanswered >= b.o.Unanswered ||
		(total >= b.o.MinRequests && float64(n.TotalFailures) >= b.o.FailureRatio*float64(total))
}

// lift ends the open time early on the word of a probe. Real calls then decide: a probe that was good while they
// fail is not believed again before the breaker has closed.
func (b *Breaker) lift(took time.Duration) {
	defer b.deliver()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.state == HalfOpen && !b.vouched {
		b.stepAside(now)
	}
	b.vouched, b.suspect, b.usual = true, false, max(b.usual, took)
	if b.state != Open || b.distrust && now.Before(b.until) {
		return
	}
	b.lifted = now.Before(b.until)
	b.cb.State() // moves on to half-open
}

// wondering tells whether a probe could say something new. It tells nobody anything: the prober holds its own lock
// meanwhile.
func (b *Breaker) wondering() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == Open || b.state == HalfOpen && !b.vouched || b.suspect
}

// changed is gobreaker's word that the state is another one; b.mu is held.
func (b *Breaker) changed(_ string, from, to gobreaker.State) {
	now := time.Now()
	b.episode++
	b.suspect = false
	b.state, b.since = stateOf(to), now
	change := Change{Breaker: b.name, At: now, From: stateOf(from), To: b.state, Reason: b.reason}
	switch b.state {
	case Open:
		b.open(stateOf(from), now)
		change.OpenFor = b.until.Sub(now)
	case Closed:
		b.reopened, b.distrust, b.unanswered = 0, false, 0
	}
	b.history = append(b.history, change)
	b.history = b.history[max(0, len(b.history)-b.o.History):]
	b.pending = append(b.pending, change)
}

func (b *Breaker) open(from State, now time.Time) {
	b.opens++
	if from == HalfOpen {
		b.reopened++
		b.distrust = b.distrust || b.lifted
	}
	b.lifted, b.vouched, b.openedAt = false, false, now
	hold := b.o.OpenMax
	if b.reopened < 16 {
		hold = min(hold, b.o.OpenFor<<b.reopened)
	}
	b.until = now.Add(hold - time.Duration(b.o.Jitter*rand.Float64()*float64(hold)))
	if b.reason.noAnswer() {
		for c := range b.waiting {
			b.released = append(b.released, c)
		}
	}
}
