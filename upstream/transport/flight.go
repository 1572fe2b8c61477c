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

// tap counts what goes over a connection. httptrace alone tells when a header was buffered, not when it left;
// whether a write may have reached the tracker must not be guessed.
type tap struct {
	net.Conn
	sent, received atomic.Int64
	// silent: nothing of the present request has been sent; before is what had come when its first bytes were.
	silent atomic.Bool
	before atomic.Int64
}

// Write counts what the socket has taken.
func (t *tap) Write(p []byte) (int, error) {
	if t.silent.CompareAndSwap(true, false) {
		t.before.Store(t.received.Load())
	}
	n, err := t.Conn.Write(p)
	t.sent.Add(int64(n))
	return n, err
}

// Read counts what has come.
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.received.Add(int64(n))
	return n, err
}

// foreign tells whether the answer that begins now came before its request was sent: a second answer to the request
// before, or a farewell to an idle connection. net/http takes it for the answer to this request if it comes in the
// moment between two checks of its own, and the caller would get what was meant for another.
func (t *tap) foreign() bool {
	return t.silent.Load() || t.received.Load() == t.before.Load()
}

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
		f.upload = &upload{inner: req.Body, declared: req.ContentLength, tally: marksOf(f.ctx).tally}
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

// strange ends a connection whose answers no longer fit the requests.
func (f *flight) strange(resp *http.Response) *Error {
	_ = f.conn.Load().conn.Close()
	_ = resp.Body.Close()
	return &Error{Reason: Reset, Op: Operation(f.ctx), Unknown: f.write && f.sentAny(), Err: errForeign}
}

// failed explains an error that came instead of an answer.
func (f *flight) failed(err error) *Error {
	e := &Error{Op: Operation(f.ctx), Err: err}
	if f.ctx.Err() != nil {
		e = contextError(f.ctx)
	} else {
		e.Reason = f.reason(err)
	}
	if e.Reason == Timeout && f.upload.slow(f.begun) {
		e.Reason = RequestBody
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

// lostConnection tells whether the other side hung up.
func lostConnection(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
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
	waited   stopwatch
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
