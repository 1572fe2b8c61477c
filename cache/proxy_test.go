package cache

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// chaosProxy is a way to a server that can be slow, or cut.
type chaosProxy struct {
	addr string
	// delay is how late the server's bytes arrive.
	delay atomic.Int64

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
}

func startChaosProxy(t *testing.T, to string) *chaosProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &chaosProxy{addr: l.Addr().String(), conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		l.Close()
		p.cut(true)
	})
	go p.serve(l, to)
	return p
}

func (p *chaosProxy) serve(l net.Listener, to string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", to)
		if err != nil || !p.keep(client, server) {
			client.Close()
			continue
		}
		go p.pass(client, server, false)
		go p.pass(server, client, true)
	}
}

// keep remembers connections, unless the way is cut.
func (p *chaosProxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
		if p.down {
			conn.Close()
		}
	}
	return !p.down
}

// cut ends all connections and lets no new ones through, or lets them again.
func (p *chaosProxy) cut(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	if down {
		for conn := range p.conns {
			conn.Close()
		}
		clear(p.conns)
	}
}

func (p *chaosProxy) pass(from, to net.Conn, late bool) {
	defer from.Close()
	defer to.Close()
	part := make([]byte, 64<<10)
	for {
		n, err := from.Read(part)
		if late {
			time.Sleep(time.Duration(p.delay.Load()))
		}
		if _, failed := to.Write(part[:n]); err != nil || failed != nil {
			return
		}
	}
}
