package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"
)

// mileage is a tapped connection with its counters as they stood when the request got it (after the TLS handshake).
type mileage struct {
	conn           *tap
	sent, received int64
}

// flight is one request on the wire: it knows what has happened when it fails.
type flight struct {
	o         BaseOptions
	ctx       context.Context
	cancel    context.CancelCauseFunc
	write     bool
	begun     time.Time
	upload    *upload
	conn      atomic.Pointer[mileage]
	asked     atomic.Bool // for a connection
	firstByte atomic.Bool
	foreign   atomic.Bool // the answer is not to this request
}

func newFlight(req *http.Request, o BaseOptions) *flight {
	f := &flight{o: o, write: !isRead(req), begun: time.Now()}
	f.ctx, f.cancel = context.WithCancelCause(req.Context())
	if hasBody(req) {
		m := marksOf(f.ctx)
		f.upload = &upload{inner: req.Body, declared: req.ContentLength, tally: m.tally, waited: m.client}
		if f.upload.waited == nil {
			f.upload.waited = &stopwatch{}
		}
	}
	return f
}

// outgoing is the request as net/http gets it.
func (f *flight) outgoing(req *http.Request) *http.Request {
	out := req.WithContext(httptrace.WithClientTrace(f.ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { f.asked.Store(true) },
		GotConn:              f.gotConn,
		GotFirstResponseByte: f.gotFirstByte,
	}))
	out.Header = withoutReplayKeys(req.Header)
	if f.upload != nil {
		out.Body = f.upload
	}
	return out
}

func (f *flight) gotConn(info httptrace.GotConnInfo) {
	conn := info.Conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if f.sentAny() { // on a connection that was kept and has ended: this is net/http's own second try
		countTry(f.ctx)
		marksOf(f.ctx).budget().owe()
	}
	if t, ok := conn.(*tap); ok {
		t.silent.Store(true)
		f.conn.Store(&mileage{conn: t, sent: t.sent.Load(), received: t.received.Load()})
	}
}

func (f *flight) gotFirstByte() {
	f.firstByte.Store(true)
	if m := f.conn.Load(); m != nil {
		f.foreign.Store(m.conn.foreign())
	}
}

var errForeign = errors.New("the tracker answered before it was asked")

var errNoStatus = errors.New("the status of the answer is none that was asked for")

// strange tells what is wrong with an answer that nobody can use: it does not fit the request, or its status is not
// between 200 and 599. That of a switch to another protocol, which nobody asks for here, makes net/http hand out the
// bare connection, and no context ends reading that.
func (f *flight) strange(resp *http.Response) *Error {
	e := &Error{Reason: Reset, Op: Operation(f.ctx), Err: errForeign}
	if !f.foreign.Load() {
		if resp.StatusCode >= 200 && resp.StatusCode <= 599 {
			return nil
		}
		e.Reason, e.Err = BadAnswer, errNoStatus
	}
	if m := f.conn.Load(); m != nil {
		_ = m.conn.Close()
	}
	_ = resp.Body.Close()
	e.Unknown = f.write && f.sentAny()
	return e
}

// failed explains an error that came instead of an answer. The clock of the caller may have run out because of the
// caller's own bytes; the limits of this package run only while the tracker has to do something.
func (f *flight) failed(err error) *Error {
	e := &Error{Op: Operation(f.ctx)}
	if f.ctx.Err() != nil {
		e = contextError(f.ctx)
		if e.Reason == Timeout && f.upload.slow(f.begun) {
			e.Reason = RequestBody
		}
	} else {
		e.Reason = f.reason(err)
		e.Err = discreet(e.Reason, err)
		if e.Reason == LimitFull {
			e.RetryAfter = time.Second
		}
	}
	e.Unknown = f.write && f.sentAny()
	return e
}

func (f *flight) reason(err error) Reason {
	var netErr net.Error
	switch {
	case f.upload.broken():
		return RequestBody
	case !f.asked.Load():
		return Other // refused by net/http itself: no host, a bad header
	case f.conn.Load() == nil && ownShortage(err):
		return LimitFull
	case f.conn.Load() == nil:
		return Connect
	case errors.As(err, &netErr) && netErr.Timeout():
		return Timeout
	case f.headerOverflow():
		return ResponseHeaderTooLarge
	case f.firstByte.Load() && !lostConnection(err):
		return BadAnswer
	}
	return Reset
}

// ownShortage tells whether there was no connection for want of something on this side, files or memory. That says nothing
// about the tracker.
func ownShortage(err error) bool {
	for _, of := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// lostConnection tells whether the other side hung up.
func lostConnection(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

var errUnreadable = errors.New("what the tracker sent is not HTTP")

// discreet keeps the tracker's own text out of the logs: net/http quotes what it cannot read, and that may be a cookie
// or a token.
func discreet(reason Reason, err error) error {
	switch reason {
	case Connect, RequestBody, Timeout, Other, LimitFull:
		return err
	}
	if lostConnection(err) || errors.Is(err, http.ErrBodyReadAfterClose) {
		return err
	}
	return errUnreadable
}

// headerOverflow: net/http stops reading at its limit and says so in words only, so the bytes are counted.
func (f *flight) headerOverflow() bool {
	m := f.conn.Load()
	return m.conn.received.Load()-m.received >= f.o.MaxResponseHeaderBytes
}

// sentAny tells whether the tracker may have seen any of the request. net/http's writer has ended when this is asked.
func (f *flight) sentAny() bool {
	m := f.conn.Load()
	return m != nil && m.conn.sent.Load() > m.sent
}

// upload is the request's body. It tells a failing client from a failing tracker.
type upload struct {
	inner    io.ReadCloser
	declared int64
	tally    *tally
	read     atomic.Int64
	waited   *stopwatch
	failed   atomic.Bool
	closed   atomic.Bool
}

// Read notes who failed and how long the client let the tracker wait.
func (u *upload) Read(p []byte) (int, error) {
	u.waited.start()
	n, err := u.inner.Read(p)
	u.waited.stop()
	total := u.read.Add(int64(n))
	if u.tally != nil {
		u.tally.out.Add(int64(n))
	}
	short := err != nil && (!errors.Is(err, io.EOF) || total < u.declared)
	long := u.declared > 0 && total > u.declared
	if (short || long) && !u.closed.Load() {
		u.failed.Store(true)
	}
	return n, err
}

// Close ends the noting: what net/http reads after giving up is no failure.
func (u *upload) Close() error {
	u.closed.Store(true)
	return u.inner.Close()
}

func (u *upload) broken() bool { return u != nil && u.failed.Load() }

// slow tells whether most of the time was spent waiting for the caller's own bytes.
func (u *upload) slow(since time.Time) bool {
	return u != nil && u.waited.elapsed() > time.Since(since)/2
}
