package faults

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// relay passes bytes to Redis and back: late, not at all, or until it is cut.
type relay struct {
	address, behind string
	delay           atomic.Int64
	silent          atomic.Bool

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	all    sync.WaitGroup
}

func startRelay(t testing.TB, behind string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: listener.Addr().String(), behind: behind, conns: map[net.Conn]struct{}{}}
	r.all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.all.Go(func() { r.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.cut()
		r.all.Wait()
	})
	return r
}

func (r *relay) serve(in net.Conn) {
	out, err := net.DialTimeout("tcp", r.behind, time.Second)
	if err != nil {
		_ = in.Close()
		return
	}
	r.mu.Lock()
	if r.closed {
		_, _ = in.Close(), out.Close()
	}
	r.conns[in], r.conns[out] = struct{}{}, struct{}{}
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { r.pipe(out, in) })
	both.Go(func() { r.pipe(in, out) })
	both.Wait()
	r.mu.Lock()
	delete(r.conns, in)
	delete(r.conns, out)
	r.mu.Unlock()
}

func (r *relay) pipe(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			time.Sleep(time.Duration(r.delay.Load()))
			if r.silent.Load() {
				continue
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.conns {
		reset(conn)
	}
}
