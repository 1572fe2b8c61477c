package transport

import (
	"cmp"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxPaused = 16384 // clients that are remembered because the tracker limits them
	maxPause  = 24 * time.Hour
)

// Stack is the transport of one tracker's HTTP client: HTTP/1.1 over its own connections, no proxy, no compression, no redirects. Nothing
// of it is shared with another tracker.
//
// Reads share kept connections. Every write has a connection of its own, because real trackers end kept ones without notice
// (docs/reference/clients.md duty 18), and the write would be lost or sent twice. A read is sent again over a new connection, which counts as a
// retry, so reads have connections of their own, too, when there is no retry left. The same holds while a connection may wait for a
// worker of the tracker: then no connection is kept, and the tracker takes all of them in the order in which they came.
type Stack struct {
	Reads, Writes *Breaker // a tracker that cannot write may still read
	Limiter       *Limiter

	o      Options
	pool   *pool
	prober *prober
	budget budget
	paused *expiring[[16]byte]    // clients that the tracker limits
	noConn atomic.Pointer[string] // why the last connection failed
}

// New returns a Stack. The caller must Close it.
func New(o Options) *Stack {
	o = o.withDefaults()
	s := &Stack{o: o, Limiter: &Limiter{o: o.Limit, slots: o.Limit.Slots}, pool: newPool(o.Base), paused: newExpiring[[16]byte](maxPaused)}
	s.budget.stored = retryBurst
	s.Reads, s.Writes = newBreaker("read", s), newBreaker("write", s)
	s.prober = newProber(s)
	return s
}

// Close ends probing, waits for the probes under way and closes kept connections. Calls still work.
func (s *Stack) Close() {
	s.prober.cancel()
	s.prober.all.Wait()
	s.pool.closeIdle()
}

// Probe sends a probe soon, unless one has ended within the last second or there is no ProbeURL. Failed probes open the
// breakers, so that a tracker without calls is watched as well. It does not wait.
func (s *Stack) Probe() { s.prober.callFailed() }

// call is one call with all its tries.
type call struct {
	Call
	stack    *Stack
	class    Class
	read     bool
	follower Observer // of a Trace, or nil
	tries    int
	deadline time.Time    // of all tries
	admitted time.Time    // when its first request was, zero before that
	fresh    bool         // a kept connection has failed
	sent     atomic.Int64 // bytes of request bodies
}

func (s *Stack) newCall(of Call, method string) *call {
	return &call{Call: of, stack: s, class: of.class(method), read: of.reads(method)}
}

func (c *call) breaker() *Breaker {
	if c.read {
		return c.stack.Reads
	}
	return c.stack.Writes
}

// RoundTrip makes one call. It refuses calls for a client that the tracker limits, because trackers extend a block at every try.
// Its errors, and those of the response's body, are *Error. A request body that blocks must observe the deadline itself:
// RoundTrip waits for its Read to return before it gives up.
func (s *Stack) RoundTrip(req *http.Request) (*http.Response, error) {
	c := s.newCall(CallOf(req.Context()), req.Method)
	if s.o.Trace != nil {
		req, c.follower = s.o.Trace(req, time.Now())
	}
	resp, err := c.repeat(req)
	if err != nil {
		c.report(nil, err)
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests && c.Client != [16]byte{} {
		s.paused.add(c.Client, min(maxPause, cmp.Or(RetryAfter(resp.Header), c.Pause)))
	}
	return resp, nil
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
	if b := c.breaker(); b.Refuses() {
		return c.newError(BreakerOpen, b.reject(), nil)
	}
	if err := s.Limiter.refuse(c.class); err != nil {
		return c.newError(LimitFull, time.Second, err)
	}
	return nil
}

func (c *call) newError(reason Reason, retryAfter time.Duration, err error) *Error {
	return &Error{Reason: reason, Op: c.Operation, RetryAfter: retryAfter, Err: err}
}

// report tells the observers that the call has ended, with the response of an attempt or without one.
func (c *call) report(with *attempt, err error) {
	sample := Sample{
		Operation: c.Operation, Class: c.class, Reason: ReasonOf(err), Unknown: OutcomeUnknown(err), Tries: c.tries,
		BytesOut: c.sent.Load(),
	}
	if !c.admitted.IsZero() {
		sample.Total = time.Since(c.admitted)
	}
	if with != nil {
		sample.Status, sample.BytesIn = with.resp.StatusCode, with.received.Load()
	}
	for _, observer := range [...]Observer{c.stack.o.Observer, c.follower} {
		if observer != nil {
			observer.Observe(sample)
		}
	}
}

// hasBody reports whether there are bytes to send.
func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// closeBody closes the body of a request that is not sent, as every RoundTripper must.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// expiring is a bounded set whose keys expire.
type expiring[K comparable] struct {
	max   int
	mu    sync.Mutex
	until map[K]time.Time
}

func newExpiring[K comparable](max int) *expiring[K] {
	return &expiring[K]{max: max, until: map[K]time.Time{}}
}

// left returns how long a key stays; 0 or less for one that is not there.
func (e *expiring[K]) left(key K) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Until(e.until[key])
}

// add adds a key for some time, and reports false when there is no place for it.
func (e *expiring[K]) add(key K, stays time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.until) >= e.max {
		maps.DeleteFunc(e.until, func(_ K, at time.Time) bool { return time.Until(at) <= 0 })
	}
	if len(e.until) >= e.max {
		return false
	}
	e.until[key] = time.Now().Add(stays)
	return true
}
