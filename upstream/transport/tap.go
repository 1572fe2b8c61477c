package transport

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// tap counts what goes over a connection. httptrace alone tells when a header was buffered, not when it left;
// whether a write may have reached the tracker must not be guessed.
type tap struct {
	net.Conn
	// pause is how long the tracker may take nothing of what is sent to it.
	pause          time.Duration
	limited        atomic.Bool // somebody else has set a deadline for writing
	stuck          atomic.Bool // that has happened: crypto/tls need not wait once more to say good-bye
	sent, received atomic.Int64
	// silent: nothing of the present request has been sent; before is what had come when its first bytes were.
	silent atomic.Bool
	before atomic.Int64
}

// Write counts what the socket has taken, and gives up when it takes nothing for too long: nothing else limits how long
// a tracker that has stopped reading holds up a request, since the wait for its answer begins after the last byte.
func (t *tap) Write(p []byte) (int, error) {
	if t.silent.CompareAndSwap(true, false) {
		t.before.Store(t.received.Load())
	}
	total := 0
	for {
		n, err := t.push(p[total:])
		total += n
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if late && n == 0 {
			t.stuck.Store(true)
		}
		if n == 0 || !late || t.limited.Load() {
			return total, err
		}
	}
}

// push is one write with the time for some progress.
func (t *tap) push(p []byte) (int, error) {
	if t.stuck.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	if !t.limited.Load() {
		_ = t.Conn.SetWriteDeadline(time.Now().Add(t.pause)) // a connection without deadlines writes without
	}
	n, err := t.Conn.Write(p)
	t.sent.Add(int64(n))
	return n, err
}

// SetWriteDeadline lets crypto/tls say good-bye in a time of its own.
func (t *tap) SetWriteDeadline(at time.Time) error {
	t.limited.Store(!at.IsZero())
	return t.Conn.SetWriteDeadline(at)
}

// SetDeadline is for both directions.
func (t *tap) SetDeadline(at time.Time) error {
	t.limited.Store(!at.IsZero())
	return t.Conn.SetDeadline(at)
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
