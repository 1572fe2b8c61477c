package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// attempt is one request of a call. It is also the body of its response, and holds the slot of the call and its admission by the breaker
// until that has ended: with the end of the data, with an error, when it is closed, or when its context ends, whichever is first. So
// both get their results even from a caller that forgets to close.
type attempt struct {
	admission
	call    *call
	ctx     context.Context // of this attempt
	breaker *Breaker        // nil in a probe
	hasSlot atomic.Bool
	waiting atomic.Bool // for the tracker, and not for the client

	patience time.Duration // for which the request may wait for a worker of the tracker, on top of the limits
	began    time.Time     // sending
	took     time.Duration // to the response; 0 before it

	conn       atomic.Pointer[conn] // while the request or its response occupies one
	reused     bool                 // conn was kept from an earlier request
	usable     bool                 // conn can be kept when the response is whole
	bodyFailed atomic.Bool          // of the request

	resp     *http.Response // nil before there is one
	body     io.ReadCloser  // of resp
	ahead    []byte         // what was read ahead
	last     error          // of the data, io.EOF of whole ones
	received atomic.Int64
	whole    atomic.Bool // all data were received

	mu      sync.Mutex
	stop    func() bool // of context.AfterFunc
	over    bool
	err     error // when over; nil after a whole response, and after one that its reader closed early by choice
	reports bool  // the call ends with this attempt
}

func newAttempt(c *call, req *http.Request) *attempt {
	a := &attempt{call: c}
	a.ctx, a.end = context.WithCancelCause(req.Context())
	a.target, a.read = [...]string{req.Method, req.URL.Path}, c.read
	a.waiting.Store(true)
	return a
}

// ended returns why the attempt must not go on, or nil.
func (a *attempt) ended() *Error {
	if a.ctx.Err() == nil {
		return nil
	}
	return contextError(a.ctx)
}

// attempt makes one request when there is a slot for it and the breaker lets it through. The slot comes before the breaker, so that a trial is never spent on waiting in the queue.
func (c *call) attempt(req *http.Request) *attempt {
	c.tries++
	a := newAttempt(c, req)
	err := a.admit()
	if err != nil {
		closeBody(req)
	} else {
		err = a.send(req)
	}
	if err != nil {
		a.finish(err)
	}
	return a
}

// admit takes a slot and asks the breaker.
func (a *attempt) admit() (err error) {
	c := a.call
	if a.patience, err = c.stack.Limiter.acquire(a.ctx, c.class); errors.Is(err, context.Canceled) {
		return contextError(a.ctx)
	} else if err != nil {
		return c.newError(LimitFull, time.Second, err)
	}
	a.hasSlot.Store(true)
	a.began = time.Now()
	breaker := c.breaker()
	if wait := breaker.admit(&a.admission); wait > 0 {
		return c.newError(BreakerOpen, wait, nil)
	}
	a.breaker = breaker
	c.admitted = cmp.Or(c.admitted, a.began)
	return nil
}

// send sends the request and waits for the header of the response.
func (a *attempt) send(req *http.Request) error {
	c, err := a.connect(req)
	if err != nil {
		closeBody(req)
		return err
	}
	if c.patience = a.patience; a.call.tries > 1 {
		c.patience = min(c.patience, time.Until(a.call.deadline)-a.call.stack.o.Base.HeaderTimeout)
	}
	a.conn.Store(c)
	a.mu.Lock()
	a.stop = context.AfterFunc(a.ctx, a.expired)
	a.mu.Unlock()
	if err := a.call.mayBeSent(); err != nil {
		closeBody(req)
		return a.call.newError(Canceled, 0, err)
	}
	resp, usable, err := c.exchange(a.outgoing(req), &a.bodyFailed) //nolint:bodyclose // the attempt becomes the body
	a.usable = usable
	if failure := a.failure(c, resp, err); failure != nil {
		failure.Unknown = !a.read && c.sent.Load() > 0
		return failure
	}
	a.accept(resp)
	return nil
}

// outgoing returns the request as it is sent: a copy, unless nothing is changed.
func (a *attempt) outgoing(req *http.Request) *http.Request {
	host := a.call.stack.o.Base.Host
	if a.usable && host == (Host{}) && !hasBody(req) {
		return req
	}
	out := *req
	out.Close = !a.usable
	host.set(&out)
	if hasBody(req) {
		out.Body = &upload{ReadCloser: req.Body, attempt: a, left: req.ContentLength}
	}
	return &out
}

// connect returns a connection for the request: a kept one or a new one.
func (a *attempt) connect(req *http.Request) (*conn, error) {
	c, s := a.call, a.call.stack
	if req.URL.Host == "" {
		return nil, c.newError(Other, 0, errors.New("the request names no host"))
	}
	a.usable = a.read && s.budget.take(0) && !s.pool.scarce()
	if a.usable && !c.fresh {
		if kept := s.pool.kept(req.URL); kept != nil {
			a.reused, a.patience = true, 0 // it has its worker
			return kept, nil
		}
	}
	got, err := s.pool.dial(a.ctx, req.URL, a.patience)
	why := a.ended()
	switch {
	case err == nil:
		return got, nil
	case why != nil:
		return nil, why
	case isOwnShortage(err):
		return nil, c.newError(LimitFull, time.Second, err)
	}
	s.noConn.Store(new(connectCause(err)))
	return nil, c.newError(Connect, 0, err)
}

// failure returns what is wrong with the result of an exchange, or nil. The end of the context may have taken c from the attempt.
func (a *attempt) failure(c *conn, resp *http.Response, err error) *Error {
	reason := BadResponse
	if err == nil && resp.StatusCode >= 200 && resp.StatusCode <= 599 {
		return nil
	}
	why := a.ended()
	switch {
	case err == nil:
		err = errors.New("the status is not between 200 and 599")
	case why != nil:
		return why
	case a.bodyFailed.Load():
		reason = RequestBody
	case isTimeout(err):
		reason = Timeout
	case errors.Is(err, errLongHeader):
		reason = ResponseHeaderTooLarge
	case isAlert(err):
		reason = Connect
		a.call.stack.noConn.Store(new(connectCause(err)))
	default:
		if c.received.Load() == 0 || isLost(err) {
			reason = Reset
		}
		err = discreet(err)
	}
	return a.call.newError(reason, 0, err)
}

// upload is the body of a request. It tells a failing client from a failing tracker.
type upload struct {
	io.ReadCloser
	attempt *attempt
	left    int64 // of the declared length
}

// Read counts what is sent and notes failures of the body.
func (u *upload) Read(p []byte) (int, error) {
	if err := u.attempt.call.mayBeSent(); err != nil {
		u.attempt.bodyFailed.Store(true)
		return 0, errors.New(err.Error()) // not the same error, which would say that nothing was sent
	}
	n, err := u.ReadCloser.Read(p)
	u.attempt.call.sent.Add(int64(n))
	u.left -= int64(n)
	if err != nil && (err != io.EOF || u.left > 0) {
		u.attempt.bodyFailed.Store(true)
	}
	return n, err
}
