package transport

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	idleTimeout    = time.Second // for which a connection is kept, which may occupy a worker of the tracker
	maxHeaderBytes = 64 << 10    // of a response header, with what TLS adds
	smallBuffer    = 4 << 10     // enough for the header of a request or a response, and a small body
	largeBuffer    = 128 << 10   // for a request with a long body, so that it goes out in large pieces
	maxInterim     = 5           // responses with a status of 1xx before the one that counts
	// directBody is the longest request body that is sent before the response is read. During a longer one the tracker may
	// respond that it does not take it.
	directBody = 64 << 10
	// lateResponse is how long a response may take after the tracker has stopped taking its request.
	lateResponse = time.Second
)

// conn is a connection to the tracker, which carries one request at a time. net/http writes the request and reads the response in the
// goroutine of the call. The embedded connection is the one below TLS: its bytes are counted, because whether a write
// may have reached the tracker must not be guessed.
type conn struct {
	net.Conn
	pool         *pool
	scheme, host string
	stream       net.Conn        // TLS over this conn, or this conn
	raw          syscall.RawConn // of Conn, or nil
	in           *bufio.Reader   // of a response that has begun to come
	timer        *time.Timer     // until the connection is overdue, or has been idle for long
	state        atomic.Int32    // changes with pool.mu held

	sent, received atomic.Int64  // the bytes of the present request and its response
	patience       time.Duration // for which the response may take longer than HeaderTimeout
	silence        time.Duration // for which a body may pause; 0 before the response header is here, less than 0 after the response
	cut            atomic.Bool   // no more of the request is sent
	sendErr        error         // of Write; net/http hides it in an error of its own
	late           bool          // nothing came in time; net/http may hide that too
}

// The states of a conn.
const (
	unserved int32 = iota // no byte has come
	overdue               // none has come for so long that the connection may wait for a worker of the tracker
	served
	closed
)

var errLongHeader = errors.New("the response header is too long")

// Write gives up when the tracker takes nothing for HeaderTimeout. Nothing else limits how long a tracker that has stopped
// reading holds up a request, because the wait for its response begins after the last byte.
func (c *conn) Write(p []byte) (int, error) {
	for total := 0; ; {
		_ = c.SetWriteDeadline(time.Now().Add(c.pool.o.HeaderTimeout)) // a connection without deadlines writes without
		n, err := 0, os.ErrDeadlineExceeded
		if !c.cut.Load() {
			n, err = c.Conn.Write(p[total:])
		}
		total += n
		c.sent.Add(int64(n))
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			c.sendErr = err
			return total, err
		}
	}
}

// Read counts what comes.
func (c *conn) Read(p []byte) (int, error) {
	switch {
	case c.silence > 0:
		_ = c.SetReadDeadline(time.Now().Add(c.silence))
	case c.silence < 0:
		return 0, os.ErrDeadlineExceeded
	case c.received.Load() >= maxHeaderBytes:
		return 0, errLongHeader
	}
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	c.late = isTimeout(err)
	if n > 0 && c.state.Load() < served {
		c.pool.move(c, served)
	}
	return n, err
}

// Close counts the connection out before the tracker learns of it and gives its worker to another one. It sends no TLS alert, which
// could block.
func (c *conn) Close() error {
	c.pool.move(c, closed)
	return c.Conn.Close()
}

// exchange sends a request and returns the response, whose body is to be read from the connection, and whether the connection
// can be used again after that. failed reports that the body of the request has failed; the tracker's response is not waited for then.
func (c *conn) exchange(req *http.Request, failed *atomic.Bool) (resp *http.Response, usable bool, err error) {
	c.sent.Store(0)
	c.received.Store(0)
	c.cut.Store(false)
	c.silence, c.sendErr, c.late = 0, nil, false
	var sendErr error
	if isLong(req) {
		resp, sendErr, err = c.readWhileSending(req, failed)
	} else {
		sendErr = c.send(req, failed)
		resp, err = c.readHeader(req)
	}
	if err != nil {
		if sendErr != nil && !isTimeout(sendErr) && c.received.Load() == 0 {
			err = sendErr
		} else if c.late {
			err = os.ErrDeadlineExceeded
		}
		return nil, false, err
	}
	c.silence = min(c.pool.o.HeaderTimeout, maxSilence)
	return resp, sendErr == nil && !resp.Close && !req.Close, nil
}

// readWhileSending sends a request and reads the header of the response at the same time, and sends no more after a response that is no success.
func (c *conn) readWhileSending(req *http.Request, failed *atomic.Bool) (resp *http.Response, sendErr, err error) {
	_ = c.SetReadDeadline(time.Time{})
	result := make(chan error, 1)
	go func() { result <- c.send(req, failed) }()
	if resp, err = c.readHeader(req); err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		c.cut.Store(true)
		_ = c.SetWriteDeadline(time.Now())
	}
	return resp, <-result, err
}

func isLong(req *http.Request) bool {
	return hasBody(req) && (req.ContentLength < 0 || req.ContentLength > directBody)
}

// send sends a request, closes its body and limits the wait for the response.
func (c *conn) send(req *http.Request, failed *atomic.Bool) error {
	var w *bufio.Writer
	if isLong(req) {
		w = bufio.NewWriterSize(c.stream, largeBuffer)
	} else {
		w, _ = c.pool.writers.Get().(*bufio.Writer)
		defer c.pool.writers.Put(w)
		defer w.Reset(nil)
		w.Reset(c.stream)
	}
	err := req.Write(w)
	if err == nil {
		err = w.Flush()
	}
	if c.sendErr != nil {
		err = c.sendErr
	}
	wait := lateResponse
	switch {
	case err == nil:
		wait = c.pool.o.HeaderTimeout + c.patience
	case failed.Load():
		wait = 0
	}
	_ = c.SetReadDeadline(time.Now().Add(wait))
	return err
}

// readHeader returns a response without its body. Before its first byte it needs no buffer, because many calls may wait for that.
func (c *conn) readHeader(req *http.Request) (*http.Response, error) {
	c.await()
	c.in, _ = c.pool.readers.Get().(*bufio.Reader)
	c.in.Reset(c.stream)
	for range maxInterim {
		resp, err := http.ReadResponse(c.in, req)
		if err != nil || resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode < 100 {
			return resp, err
		}
	}
	return nil, errors.New("too many interim responses")
}

// endResponse gives back the buffer of a response that was read, and reports whether the tracker has sent nothing beyond it. TLS may hold
// something that the buffer does not have.
func (c *conn) endResponse() bool {
	in := c.in
	c.in, c.silence = nil, -1
	defer c.pool.readers.Put(in)
	defer in.Reset(nil)
	_, err := in.Peek(1)
	return isTimeout(err)
}
