package transport

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"portico/upstream"
)

const (
	// staleWait is how long a connection waits for its first byte before the number of workers that was seen earlier no longer
	// counts: other users of the tracker may have taken them since.
	staleWait = 250 * time.Millisecond
	// overdueWait, and three round trips more, is how long a connection may be without its first byte before it counts as one that may
	// wait for a worker. A tracker that takes all connections and is merely busy needs less: if those counted, every request of a busy
	// time would make a connection of its own, which costs as much as the request.
	overdueWait = 25 * time.Millisecond
)

// pool opens the connections to a tracker, keeps idle ones, and finds out whether connections wait for a worker. A server that gives
// each connection a worker (Apache with prefork) keeps further ones in its accept backlog, and a kept connection occupies a worker
// although it is idle. Seen from here, a connection that never delivered a byte may wait there.
type pool struct {
	o   BaseOptions
	tls *tls.Config

	writers sync.Pool // in which requests without a long body are written; empty between two requests
	readers sync.Pool // through which responses are read; a connection has one from the first byte of a response to its last

	mu       sync.Mutex
	idle     []*conn // the one that was used last is the last one
	open     int     // connections
	unserved int     // those of them without a byte from the tracker
	overdue  int     // those of them that should have had one by now
	served   int     // the largest number that were open and had delivered a byte at the same time: the tracker has that many workers
}

func newPool(o BaseOptions) *pool {
	secure := o.TLS.Clone()
	if secure == nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	secure.ClientSessionCache = tls.NewLRUClientSessionCache(8) // makes the extra handshakes of writes cheap
	return &pool{
		o: o, tls: secure,
		writers: sync.Pool{New: func() any { return bufio.NewWriterSize(nil, smallBuffer) }},
		readers: sync.Pool{New: func() any { return bufio.NewReaderSize(nil, smallBuffer) }},
	}
}

// kept returns a connection to the server of a URL that is idle and whole, or nil.
func (p *pool) kept(to *url.URL) *conn {
	for {
		c := p.takeIdle(func(c *conn) bool { return c.scheme == to.Scheme && c.host == to.Host })
		if c == nil || c.silent() {
			return c
		}
		_ = c.Close()
	}
}

// takeIdle takes the idle connection that was used last of those that match, or returns nil.
func (p *pool) takeIdle(match func(*conn) bool) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, c := range slices.Backward(p.idle) {
		if match(c) {
			p.idle = slices.Delete(p.idle, at, at+1)
			return c
		}
	}
	return nil
}

// dial opens a connection to the server of a URL. It may take ConnectTimeout and patience.
func (p *pool) dial(ctx context.Context, to *url.URL, patience time.Duration) (*conn, error) {
	connecting, cancel := context.WithTimeout(ctx, p.o.ConnectTimeout+patience)
	defer cancel()
	begun := time.Now()
	established, err := p.o.Dial(connecting, "tcp", upstream.HostPort(to))
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: established, pool: p, scheme: to.Scheme, host: to.Host}
	c.stream = c
	if socket, ok := established.(syscall.Conn); ok {
		c.raw, _ = socket.SyscallConn()
	}
	p.add(c, time.Since(begun))
	if to.Scheme == "https" {
		config := p.tls.Clone()
		config.ServerName = cmp.Or(config.ServerName, to.Hostname())
		shaking, cancel := context.WithTimeout(ctx, p.o.ConnectTimeout+patience)
		defer cancel()
		over := tls.Client(c, config)
		if err := over.HandshakeContext(shaking); err != nil {
			_ = c.Close()
			return nil, err
		}
		c.stream = over
	}
	return c, nil
}

// put keeps an idle connection, or closes it where there are enough or another connection may wait for its worker.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	kept := len(p.idle) < p.o.MaxIdleConns && !p.isScarce()
	if kept {
		p.idle = append(p.idle, c)
		c.timer.Reset(idleTimeout)
	}
	p.mu.Unlock()
	if !kept {
		_ = c.Close()
	}
}

// closeIdle closes the idle connections.
func (p *pool) closeIdle() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}

// scarce reports whether a connection may wait for a worker that another connection of this process occupies.
func (p *pool) scarce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isScarce()
}

func (p *pool) isScarce() bool { return p.overdue > 0 && p.open > max(p.served, p.unserved) }

// freeIdle closes idle connections if another one may wait for their workers.
func (p *pool) freeIdle() {
	if p.scarce() {
		p.closeIdle()
	}
}

// add counts a connection that took some time to establish.
func (p *pool) add(c *conn, took time.Duration) {
	p.mu.Lock()
	p.open++
	p.unserved++
	p.mu.Unlock()
	c.timer = time.AfterFunc(overdueWait+3*took, func() { p.due(c) })
}

// due is called when a connection is overdue, or has been idle for idleTimeout unless it is in use again.
func (p *pool) due(c *conn) {
	if c.state.Load() >= served {
		if c = p.takeIdle(func(idle *conn) bool { return idle == c }); c != nil {
			_ = c.Close()
		}
		return
	}
	p.move(c, overdue)
	p.freeIdle()
	time.AfterFunc(staleWait, func() { p.forget(c) })
}

// forget drops what was learned about the number of workers if a connection is still overdue.
func (p *pool) forget(c *conn) {
	p.mu.Lock()
	if c.state.Load() == overdue {
		p.served = p.open - p.unserved
	}
	p.mu.Unlock()
	p.freeIdle()
}

// move changes the state of a connection, which only ever grows.
func (p *pool) move(c *conn, state int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	former := c.state.Load()
	if former >= state {
		return
	}
	c.state.Store(state)
	if former == overdue {
		p.overdue--
	}
	switch state {
	case overdue:
		p.overdue++
		return
	case closed:
		p.open--
	}
	c.timer.Stop()
	if former < served {
		p.unserved--
	}
	p.served = max(p.served, p.open-p.unserved)
}
