package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// download is the answer's body on the wire: its errors are explained, and silence has a limit.
type download struct {
	f     *flight
	inner io.ReadCloser
	timer *time.Timer
	once  sync.Once
	// most is how many bytes are read at most, 0 for all; bytes is how many were.
	most, bytes int64
}

func (f *flight) body(inner io.ReadCloser) io.ReadCloser {
	d := &download{f: f, inner: inner, most: marksOf(f.ctx).most}
	d.timer = time.AfterFunc(f.o.BodyIdleTimeout, func() {
		f.cancel(&Error{Reason: Timeout, Err: errSilent})
	})
	d.timer.Stop() // runs only inside Read: a client that is slow to take its bytes is not the tracker's silence
	return d
}

var (
	errSilent  = errors.New("no bytes of the answer for too long")
	errTooLong = errors.New("the answer is longer than anybody reads")
)

// Read limits each wait for bytes and explains every error.
func (d *download) Read(p []byte) (int, error) {
	d.timer.Reset(d.f.o.BodyIdleTimeout)
	n, err := d.inner.Read(p)
	d.timer.Stop()
	if d.bytes += int64(n); d.most > 0 && d.bytes > d.most {
		d.release()
		return n, &Error{Reason: BadAnswer, Op: Operation(d.f.ctx), Unknown: d.f.write, Err: errTooLong}
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	e := d.explain(err)
	d.release()
	return n, e
}

// Close gives the connection back, or ends it when the answer was not read to its end.
func (d *download) Close() error {
	err := d.inner.Close()
	d.release()
	return err
}

func (d *download) release() {
	d.once.Do(func() { d.timer.Stop(); d.f.cancel(context.Canceled) })
}

func (d *download) explain(err error) *Error {
	e := &Error{Reason: CutShort, Op: Operation(d.f.ctx)}
	var netErr net.Error
	switch {
	case d.f.ctx.Err() != nil:
		e = contextError(d.f.ctx)
	case errors.As(err, &netErr) && netErr.Timeout():
		e.Reason, e.Err = Timeout, err
	default:
		e.Err = discreet(CutShort, err)
	}
	e.Unknown = d.f.write
	return e
}
