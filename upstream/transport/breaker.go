package transport

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	breakWindow   = 10 * time.Second // results are counted over this sliding time
	breakBuckets  = 10               // steps that the window moves in
	maxTargets    = 1024             // failed targets that a breaker remembers
	maxHistory    = 32               // changes that a breaker remembers
	minRetryAfter = 100 * time.Millisecond
	trialFraction = 8 // the first trial has this fraction of TrialTimeout; each one that fails doubles it
)

// State is what a breaker does with calls.
type State string

// The states.
const (
	Closed   State = "closed"    // lets everything through
	HalfOpen State = "half-open" // lets one trial through at a time
	Open     State = "open"      // lets nothing through
)

// Change is one change of a breaker's state.
type Change struct {
	Breaker string    `json:"-"` // "read" or "write"
	At      time.Time `json:"at"`
	From    State     `json:"from"`
	To      State     `json:"to"`
	Reason  Reason    `json:"reason,omitempty"` // of the last failure before the change
	Cause   string    `json:"-"`                // the same in words
}

// Status is a breaker at one moment.
type Status struct {
	Breaker   string    `json:"breaker"`
	State     State     `json:"state"`
	Since     time.Time `json:"since"`
	Reason    Reason    `json:"last_reason,omitempty"` // of the last failure
	Cause     string    `json:"last_cause,omitempty"`  // the same in words, such as "connection refused"
	Successes int       `json:"successes"`             // within the window, or since the state changed
	Failures  int       `json:"failures"`              // the same; repeated failures of one target count once
	Opens     uint64    `json:"opens"`                 // since the start
	Rejected  uint64    `json:"rejected"`              // since the start
	History   []Change  `json:"history"`
}

// Breaker is the circuit breaker of one kind of call to one tracker. gobreaker counts and decides.
//
// Results are recorded when calls end, because gobreaker drops those of calls that began before its window. Only a trial
// holds gobreaker's report function while it runs.
type Breaker struct {
	name  string
	o     BreakOptions
	stack *Stack
	cb    *gobreaker.TwoStepCircuitBreaker[struct{}]
	seed  maphash.Seed

	mu       sync.Mutex // taken inside gobreaker's lock, so gobreaker must not be called while it is held
	epoch    uint64     // number of changes of state; results of calls from earlier ones do not count
	since    time.Time
	reason   Reason // of the last failure
	probe    probeResult
	trial    *admission // under way, or nil
	failed   int        // trials in a row
	targets  *expiring[uint64]
	waiting  map[*admission]bool //  reads without a response header
	opens    uint64
	rejected uint64
	history  []Change
}

// probeResult is the result of probes since the breaker opened. A failure stays: from then on probes decide instead of calls.
type probeResult uint8

const (
	probeUnknown probeResult = iota
	probeGood
	probeFailed
)

// admission is one call that a breaker let through.
type admission struct {
	target   [2]string // method and path, which identify a request for counting its failures
	read     bool
	end      context.CancelCauseFunc // ends the call
	epoch    uint64
	report   func(error) // of a trial; nil for other calls
	deadline *time.Timer // of a trial
	header   bool        // the response header is here
	booked   atomic.Bool // its result
}

var (
	errNeutral = errors.New("not a result of the tracker")
	errFailed  = errors.New("the call failed")
)

func newBreaker(name string, s *Stack) *Breaker {
	b := &Breaker{
		name: name, o: s.o.Break, stack: s, seed: maphash.MakeSeed(), since: time.Now(),
		targets: newExpiring[uint64](maxTargets), waiting: map[*admission]bool{},
	}
	b.cb = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:          name,
		Interval:      breakWindow,
		BucketPeriod:  breakWindow / breakBuckets,
		Timeout:       s.o.Break.OpenFor,
		ReadyToTrip:   b.readyToTrip,
		OnStateChange: b.changed,
		IsExcluded:    func(err error) bool { return errors.Is(err, errNeutral) },
	})
	return b
}

func (b *Breaker) hasProbes() bool { return b.o.ProbeURL != "" }

// State returns the present state.
func (b *Breaker) State() State { return State(b.cb.State().String()) }

// Refuses reports whether a call would be refused now. It changes nothing but a state whose time is over.
func (b *Breaker) Refuses() bool {
	switch b.State() {
	case Closed:
		return false
	case Open:
		return true
	}
	mayTry := b.mayTry()
	b.mu.Lock()
	defer b.mu.Unlock()
	return !mayTry || b.trial != nil
}

// Status returns the present state with its counts and history.
func (b *Breaker) Status() Status {
	state, n := b.State(), b.cb.Counts()
	b.mu.Lock()
	defer b.mu.Unlock()
	return Status{
		Breaker: b.name, State: state, Since: b.since, Reason: b.reason, Cause: b.stack.cause(b.reason),
		Successes: int(n.TotalSuccesses), Failures: int(n.TotalFailures),
		Opens: b.opens, Rejected: b.rejected, History: append([]Change{}, b.history...),
	}
}

// readyToTrip opens the breaker when probes fail as well, or for silence. Failures that are responses open it only where
// there are no probes. gobreaker calls it with its lock held.
func (b *Breaker) readyToTrip(n gobreaker.Counts) bool {
	b.mu.Lock()
	silent := b.reason.silent()
	b.mu.Unlock()
	total := int(n.TotalSuccesses + n.TotalFailures)
	half := total >= b.o.MinRequests && 2*int(n.TotalFailures) >= total
	switch {
	case b.stack.prober.failing():
		return true
	case silent:
		return half || int(n.ConsecutiveFailures) >= b.o.Unanswered
	}
	return half && !b.hasProbes()
}

// reject counts a refusal and returns how long its caller should wait.
func (b *Breaker) reject() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rejected++
	return max(minRetryAfter, time.Until(b.since.Add(b.o.OpenFor)))
}

// admit lets a call through and returns 0, or returns how long the caller should wait.
func (b *Breaker) admit(a *admission) time.Duration {
	state := b.State()
	if state == HalfOpen && b.mayTry() {
		a.report, _ = b.cb.Allow()
	}
	if state != Closed && a.report == nil {
		return b.reject()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.epoch = b.epoch
	if a.report != nil {
		b.trial = a
		limit := min(b.o.TrialTimeout, b.o.TrialTimeout/trialFraction<<min(b.failed, trialFraction))
		a.deadline = time.AfterFunc(limit, func() { b.expire(a) })
	} else if a.read {
		b.waiting[a] = true
	}
	return 0
}

// mayTry reports whether a call may be a trial. While probes fail, no client waits to find out whether the tracker is
// back, except one read now and then, for a tracker that fails probes alone. A write follows when reads work.
func (b *Breaker) mayTry() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.hasProbes() || b.probe == probeGood:
		return true
	case b == b.stack.Reads:
		return time.Since(b.since) > b.o.TrialTimeout
	}
	return b.stack.Reads.State() == Closed
}

// expire ends a trial at its deadline, so that one without a result cannot hold the breaker half-open. A trial without a
// response has failed. A write continues all the same, because its outcome would be unknown otherwise.
func (b *Breaker) expire(a *admission) {
	b.mu.Lock()
	header := a.header
	b.mu.Unlock()
	if header {
		b.finish(a, Canceled) // the body takes its time, and another call may try
		return
	}
	b.finish(a, Timeout)
	if a.read {
		a.end(&Error{Reason: BreakerOpen, RetryAfter: b.o.OpenFor, Err: errors.New("no response within the deadline of a trial")})
	}
}

// headerReceived notes the response header. A 5xx is the end of the call for the breaker; a 4xx is a response like any other.
func (b *Breaker) headerReceived(a *admission, status int) {
	if status >= 500 {
		b.finish(a, ServerError)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.header = true
	delete(b.waiting, a)
}

// finish books the result of a call, once. The reason is empty for a success.
func (b *Breaker) finish(a *admission, reason Reason) {
	if a.booked.Swap(true) {
		return
	}
	current, repeated := b.end(a, reason)
	var result error
	switch {
	case reason == "":
		b.stack.prober.callSucceeded()
	case !reason.failed():
		result = errNeutral
	default:
		b.stack.prober.callFailed()
		if result = errFailed; repeated && b.discounts() && (a.report == nil || !reason.silent()) {
			result = errNeutral
		}
	}
	switch {
	case a.report != nil:
		a.report(result)
	case current && !errors.Is(result, errNeutral):
		b.add(Closed, result)
	}
}

// end takes a call out of those under way. It reports whether the breaker is still in the state in which it let the call through, and whether the
// target of the call has failed before within the window.
func (b *Breaker) end(a *admission, reason Reason) (current, repeated bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, a)
	if a.deadline != nil {
		a.deadline.Stop()
	}
	if b.trial == a {
		b.trial = nil
	}
	current = a.epoch == b.epoch
	if reason.failed() && reason != Connect { // no request can cause a failure to connect, so each one of those counts
		key := maphash.Comparable(b.seed, a.target)
		repeated = b.targets.left(key) > 0 || !b.targets.add(key, breakWindow)
	}
	if reason.failed() && current && !repeated {
		b.reason = reason
	}
	return current, repeated
}

// discounts reports whether the failures of one target may count once only: there is other evidence of how the tracker is.
func (b *Breaker) discounts() bool { return b.hasProbes() || b.cb.Counts().TotalSuccesses > 0 }

// add books a result if the breaker is in a state.
func (b *Breaker) add(in State, result error) {
	if b.State() != in {
		return
	}
	if report, err := b.cb.Allow(); err == nil {
		report(result)
	}
}

// probed takes the result of a probe. In the closed state a failed one counts like a call. In the half-open state a good one
// closes the breaker if probes have failed before: it replaces a trial under way.
func (b *Breaker) probed(failure Reason) {
	b.mu.Lock()
	closes := failure == "" && b.probe == probeFailed
	switch {
	case failure != "":
		b.probe, b.reason = probeFailed, failure
	case b.probe == probeUnknown:
		b.probe = probeGood
	}
	trial := b.trial
	b.mu.Unlock()
	switch {
	case failure != "":
		b.add(Closed, errFailed)
	case closes:
		if trial != nil {
			b.finish(trial, Canceled)
		}
		b.add(HalfOpen, nil)
	}
}

// changed is called by gobreaker with its lock held.
func (b *Breaker) changed(_ string, from, to gobreaker.State) {
	b.mu.Lock()
	now := time.Now()
	change := Change{Breaker: b.name, At: now, From: State(from.String()), To: State(to.String()), Reason: b.reason, Cause: b.stack.cause(b.reason)}
	b.epoch++
	b.since = now
	var release map[*admission]bool
	switch change.To {
	case Open:
		b.opens++
		if change.From == HalfOpen {
			b.failed++
		} else if b.probe = probeUnknown; b.stack.prober.failing() {
			b.probe = probeFailed
		}
		if b.reason.silent() {
			release, b.waiting = b.waiting, map[*admission]bool{}
		}
	case Closed:
		b.failed = 0
	}
	b.history = append(b.history, change)
	b.history = b.history[max(0, len(b.history)-maxHistory):]
	b.mu.Unlock()
	for a := range release {
		go a.end(&Error{Reason: BreakerOpen, RetryAfter: b.o.OpenFor, Err: errors.New("the tracker stopped responding while this call waited")})
	}
	if change.To == Open {
		b.stack.prober.breakerOpened()
	}
	if b.o.OnChange != nil {
		b.o.OnChange(change)
	}
}
