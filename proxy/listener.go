package proxy

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"portico/mapping"
)

// Listener wraps a listener so that what net/http itself says of requests that it cannot read, in plain text and before
// any handler runs, comes out as every other error does (clients.md, section 4, row 4). The server must have ConnState
// as its hook, or only the first request of a connection is looked after.
func Listener(inner net.Listener) net.Listener { return listener{inner, newDesks(), &parting{}} }

type listener struct {
	net.Listener
	desks   *sync.Pool
	parting *parting
}

// parting is until when answers on the short way may be sent once a server has begun to close connections: one moment for all
// of them, since a server closes them one after the other.
type parting struct {
	mu   sync.Mutex
	last time.Time
}

// parted is how long that may take.
const parted = time.Second

func (p *parting) moment() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.last) > parted { // nobody has been closing for a while
		p.last = now.Add(parted)
	}
	return p.last
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	boundUnsent(accepted)
	return &conn{Conn: accepted, desks: l.desks, parting: l.parting}, nil
}

// ConnState is the hook of an http.Server that is served by Listener.
func ConnState(c net.Conn, state http.ConnState) {
	if ours, ok := c.(interface{ rest() }); ok && state == http.StateIdle {
		ours.rest()
	}
}

// conn looks at the first write of each answer, and knows the short way for some requests.
type conn struct {
	net.Conn
	answered atomic.Bool

	// short is the short way, once a server has offered it; desks is nil where none may.
	short atomic.Pointer[shortcut]
	desks *sync.Pool
	// busy says that net/http has a request.
	busy atomic.Bool
	given
	// idle is how long net/http waits for the next request, extended when the short way last moved the deadlines.
	idle     atomic.Int64
	extended time.Time
	// answering is held while an answer is on the short way; closing says that somebody waits for that to end.
	answering sync.Mutex
	closing   atomic.Bool
	parting   *parting
}

// localAddress is the address of a connection, by which a handler finds the connection.
type localAddress struct {
	net.Addr
	conn *conn
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr {
	if c.desks == nil {
		return c.Conn.LocalAddr()
	}
	return &localAddress{c.Conn.LocalAddr(), c}
}

// Read implements net.Conn. Requests that are answered on the short way never get out of here.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if n == 0 || err != nil || !c.take(p[:n]) {
			return n, err
		}
	}
}

// take answers what was read, or gives false when it is for net/http.
func (c *conn) take(text []byte) bool {
	if c.desks == nil {
		return false
	}
	if short := c.short.Load(); short != nil && !c.busy.Load() && c.nothing() && isWholeGet(text) && short.answer(c, text) {
		return true
	}
	c.busy.Store(true)
	c.add(text)
	if !c.extended.IsZero() {
		c.extended = time.Time{}
		_ = c.SetWriteDeadline(time.Time{})
	}
	return false
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(deadline time.Time) error {
	if !c.busy.Load() {
		c.idle.Store(0)
		if !deadline.IsZero() {
			c.idle.Store(int64(time.Until(deadline)))
		}
	}
	return c.Conn.SetReadDeadline(deadline)
}

// Close implements net.Conn. An answer on the short way is sent first: net/http takes the connection for idle.
func (c *conn) Close() error {
	if !c.answering.TryLock() {
		c.closing.Store(true)
		_ = c.Conn.SetWriteDeadline(c.parting.moment())
		c.answering.Lock()
	}
	defer c.answering.Unlock()
	return c.Conn.Close()
}

// rest gets ready for the next request of the connection.
func (c *conn) rest() {
	c.answered.Store(false)
	c.busy.Store(false)
	c.over()
	_ = c.SetWriteDeadline(time.Time{}) // the last reply's must not outlive it
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if c.answered.Swap(true) {
		return c.Conn.Write(p)
	}
	status, ours := plainError(p)
	if !ours {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(jsonError(status)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite lets net/http say that nothing more comes before it stops listening.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// plainError recognizes what net/http writes straight to a connection: a status line followed by just these two headers.
// Nothing that a handler sends looks like that, since it carries a date and a request id at least.
func plainError(p []byte) (status int, ok bool) {
	// The one answer of this kind that has a date is to an expectation that net/http does not know.
	if bytes.HasPrefix(p, []byte("HTTP/1.1 417 ")) && bytes.HasSuffix(p, []byte("\r\n\r\n")) &&
		bytes.Contains(p, []byte("\r\nContent-Length: 0\r\n")) && !bytes.Contains(p, []byte("\r\n"+headerRequestID+":")) {
		return http.StatusExpectationFailed, true
	}
	line, rest, found := bytes.Cut(p, []byte("\r\n"))
	if !found || !bytes.HasPrefix(rest, []byte("Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")) {
		return 0, false
	}
	text, found := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !found || len(text) < 3 {
		return 0, false
	}
	status, err := strconv.Atoi(string(text[:3]))
	return status, err == nil
}

// jsonError is the whole answer that a client gets instead.
func jsonError(status int) []byte {
	failed := mapping.Refuse(mapping.CodeJSON, "The request could not be read as HTTP.")
	if status != http.StatusBadRequest {
		failed = mapping.Refuse(200000+status, "The request could not be read: %s.", http.StatusText(status))
	}
	if status == http.StatusRequestHeaderFieldsTooLarge {
		failed.Reason = mapping.ReasonTooLarge
	}
	header := http.Header{"Content-Type": {typeJSON}, "Connection": {"close"}, headerRequestID: {requestID("")}}
	setCommonHeaders(header)
	setErrorHeaders(header, failed)
	body := errorBody(failed, mapping.DocumentationURL)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	var answer bytes.Buffer
	fmt.Fprintf(&answer, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = header.Write(&answer) // a buffer takes everything
	answer.WriteString("\r\n")
	answer.Write(body)
	return answer.Bytes()
}
