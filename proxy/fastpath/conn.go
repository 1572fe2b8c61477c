package fastpath

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Handler serves a request and returns true, or returns false and has written nothing. It must not wait, and keeps nothing of the
// request but strings. A write deadline that it sets bounds how long the client may pause while it takes the response.
type Handler func(w http.ResponseWriter, r *http.Request) bool

const (
	// closeTime bounds how long responses may still be sent once a server closes their connections.
	closeTime = time.Second
	// maxDeadlineLag is how late a deadline may be moved. Moving it for every response costs more than routing the request.
	maxDeadlineLag = time.Second
	// maxPiece is the size up to which a response is sent in one write. The deadline is moved for each piece of a longer one.
	maxPiece = 128 << 10
)

// Listener wraps a listener so that handler is shown the requests of its connections first. It is for plain HTTP/1.1: TLS
// must not be below it.
func Listener(inner net.Listener, handler Handler) net.Listener {
	return &listener{Listener: inner, handler: handler, requests: sync.Pool{New: newRequest}}
}

type listener struct {
	net.Listener
	handler  Handler
	requests sync.Pool

	mu sync.Mutex
	// closeBy is the write deadline of responses whose connections are closed.
	closeBy time.Time
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: accepted, listener: l, client: accepted.RemoteAddr().String()}, nil
}

// closeDeadline returns one deadline for all connections that are closed at about the same time, since a server closes them one
// after the other.
func (l *listener) closeDeadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.closeBy) > closeTime {
		l.closeBy = now.Add(closeTime)
	}
	return l.closeBy
}

// ConnState must be called from the hook of the same name of the http.Server, or no request takes the fast path.
func ConnState(c net.Conn, state http.ConnState) {
	if found := find(c); found != nil && state == http.StateIdle {
		found.idle = true
	}
}

// LastUsed returns when the fast path last sent something on a connection, zero for never. net/http takes such a connection for idle.
func LastUsed(c net.Conn) time.Time {
	found := find(c)
	if found == nil || found.lastUsed.Load() == 0 {
		return time.Time{}
	}
	return time.Unix(0, found.lastUsed.Load())
}

// find returns the fast path's connection below a wrapped one, or nil.
func find(c net.Conn) *conn {
	for {
		if found, ok := c.(*conn); ok {
			return found
		}
		wrapper, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = wrapper.NetConn()
	}
}

// conn is one connection. The fields without a lock belong to the goroutine that net/http reads in.
type conn struct {
	net.Conn
	listener *listener
	client   string // its address
	// buffer is how much net/http reads while it holds nothing: the size of its buffer. It reads less behind bytes that it holds,
	// which may be the beginning of a request.
	buffer int
	// idle says that net/http waits for the next request, and idleTime for how long.
	idle     bool
	idleTime time.Duration
	// moved is when the fast path last moved the deadlines, zero where they are net/http's.
	moved time.Time

	// serving is held while a response is written; closing says that Close waits for that.
	serving  sync.Mutex
	closing  atomic.Bool
	lastUsed atomic.Int64 // in nanoseconds since 1970
}

// NetConn returns the connection below.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn. It serves requests until there is one for net/http.
func (c *conn) Read(p []byte) (int, error) {
	if c.buffer == 0 {
		c.buffer = len(p)
	}
	for {
		n, err := c.Conn.Read(p)
		switch {
		case err != nil || !c.idle:
			return n, err
		case len(p) == c.buffer && isWholeGet(p[:n]) && c.serve(p[:n]):
			continue
		}
		c.idle = false
		if !c.moved.IsZero() {
			c.moved = time.Time{}
			_ = c.SetWriteDeadline(time.Time{})
		}
		return n, nil
	}
}

// serve returns false where the request is for net/http.
func (c *conn) serve(text []byte) bool {
	f := c.listener.requests.Get().(*fastRequest)
	defer c.listener.requests.Put(f)
	if !f.parse(text, c.client) {
		return false
	}
	c.serving.Lock()
	defer c.serving.Unlock()
	if !c.listener.handler(f, &f.request) {
		return false
	}
	c.send(f.response(), f.pause)
	return true
}

// send sends a response. The next read finds out how it failed.
func (c *conn) send(response []byte, pause time.Duration) {
	for len(response) > 0 {
		c.moveDeadlines(pause)
		n, err := c.Conn.Write(response[:min(len(response), maxPiece)])
		if err != nil {
			_ = c.Conn.Close()
			return
		}
		response = response[n:]
	}
}

func (c *conn) moveDeadlines(pause time.Duration) {
	now := time.Now()
	c.lastUsed.Store(now.UnixNano())
	if lag := now.Sub(c.moved); lag > min(maxDeadlineLag, pause/4) || c.idleTime > 0 && lag > c.idleTime/4 {
		c.moved = now
		_ = c.SetWriteDeadline(now.Add(pause))
		if c.idleTime > 0 {
			_ = c.Conn.SetReadDeadline(now.Add(c.idleTime))
		}
	}
	if c.closing.Load() { // Close may have set its deadline before this one
		_ = c.SetWriteDeadline(c.listener.closeDeadline())
	}
}

// SetReadDeadline implements net.Conn. The deadline of an idle connection is that of its next request.
func (c *conn) SetReadDeadline(deadline time.Time) error {
	if c.idle {
		c.idleTime = time.Until(deadline)
	}
	return c.Conn.SetReadDeadline(deadline)
}

// Close implements net.Conn. A response of the fast path is sent first, because net/http takes the connection for idle.
func (c *conn) Close() error {
	if !c.serving.TryLock() {
		c.closing.Store(true)
		_ = c.SetWriteDeadline(c.listener.closeDeadline())
		c.serving.Lock()
	}
	defer c.serving.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets net/http end its side of the connection first.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
