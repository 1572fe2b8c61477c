package transport

import (
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"
)

// State is what a breaker does with calls.
type State string

// The states.
const (
	Closed   State = "closed"    // lets everything through
	HalfOpen State = "half-open" // lets a few trials through
	Open     State = "open"      // lets nothing through
)

func stateOf(s gobreaker.State) State {
	switch s {
	case gobreaker.StateOpen:
		return Open
	case gobreaker.StateHalfOpen:
		return HalfOpen
	}
	return Closed
}

// Change is one change of a breaker's state.
type Change struct {
	Breaker  string // "read" or "write"
	At       time.Time
	From, To State
	Reason   Reason        // of the last failure before the change
	OpenFor  time.Duration // only of changes to Open
}

// Status is a breaker at one moment.
type Status struct {
	Breaker    string
	State      State
	Since      time.Time
	Until      time.Time // when Open: the end of it, unless a probe ends it earlier
	Reason     Reason    // of the last failure
	Successes  int       // within the window, or since the state changed
	Failures   int
	Unanswered int    // calls in a row that got no answer at all
	Opens      uint64 // since the start
	Rejected   uint64 // since the start
	History    []Change
}

// Refuses tells whether a call would be refused now without a try. It changes nothing, and costs next to nothing.
func (b *Breaker) Refuses() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case Open:
		return time.Now().Before(b.until)
	case HalfOpen: // one that hangs may take seconds
		return int(b.cb.Counts().Requests) >= b.o.Trials
	}
	return false
}

// State is the present state.
func (b *Breaker) State() State { return b.Status().State }

// Status reads everything.
func (b *Breaker) Status() Status {
	defer b.deliver()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != Open || !time.Now().Before(b.until) {
		b.cb.State() // lets time pass: an open state that is over, results that have left the window
	}
	n := b.cb.Counts()
	s := Status{
		Breaker: b.name, State: b.state, Since: b.since, Reason: b.reason,
		Successes: int(n.TotalSuccesses), Failures: int(n.TotalFailures), Unanswered: b.unanswered,
		Opens: b.opens, Rejected: b.rejected, History: slices.Clone(b.history),
	}
	if s.State == Open {
		s.Until = b.until
	}
	return s
}
