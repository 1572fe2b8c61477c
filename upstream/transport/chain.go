package transport

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
)

// Options sets a whole chain. The zero value is a usable one.
type Options struct {
	Base     BaseOptions
	Retry    RetryOptions
	Limit    LimitOptions
	Break    BreakOptions
	Observer Observer // nil = nothing is measured
	Trace    Trace    // nil = no call is followed
}

// Validate reports everything that is wrong with the options at once.
func (o Options) Validate() error {
	return errors.Join(o.Base.Validate(), o.Retry.Validate(), o.Limit.Validate(), o.Break.Validate())
}

// Stack is a whole chain: the transport of one tracker's HTTP client. Nothing of it is shared with another tracker.
type Stack struct {
	Breakers *Breakers
	Limiter  *Limiter
	top      http.RoundTripper
	base     http.RoundTripper
}

// Chain builds Measure, Retry, Limit, Break over base; a nil base is Base(o.Base).
//
// The order is this because Measure must see what the caller sees. Retry is outside Limit, so that a call gives its
// slot back before it pauses, and queues again behind others. Limit is outside Break, so that a trial is never spent
// on waiting in our own queue, our own refusals never look like the tracker's failures, and every single
// request of a retried call has its own verdict. An open breaker empties the queue quickly: slots come back at once.
func Chain(base http.RoundTripper, o Options) (*Stack, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("set up the transport: %w", err)
	}
	if base == nil {
		base = Base(o.Base)
	}
	s := &Stack{base: base, Breakers: Break(base, o.Break)}
	s.Limiter = Limit(s.Breakers, o.Limit)
	o.Retry.Within = cmp.Or(o.Retry.Within, o.Base.withDefaults().ResponseHeaderTimeout)
	s.top = Retry(s.Limiter, o.Retry)
	switch {
	case o.Trace != nil:
		s.top = Follow(s.top, o.Trace, o.Observer)
	case o.Observer != nil:
		s.top = Measure(s.top, o.Observer)
	}
	return s, nil
}

// RoundTrip makes a call through the whole chain.
func (s *Stack) RoundTrip(req *http.Request) (*http.Response, error) { return s.top.RoundTrip(req) }

// CloseIdleConnections closes kept connections; http.Client passes its own call on to this.
func (s *Stack) CloseIdleConnections() {
	if c, ok := s.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Close ends probing and closes kept connections.
func (s *Stack) Close() {
	s.Breakers.Close()
	s.CloseIdleConnections()
}
