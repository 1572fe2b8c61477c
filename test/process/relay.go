package process

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Relay passes bytes to a server and back: late, not at all, or not while it is down.
type Relay struct {
	// Address is where clients connect.
	Address string
	// Delay is how late what the server sends arrives, a time.Duration.
	Delay atomic.Int64
	// Silent keeps the connections and passes nothing.
	Silent atomic.Bool
	// CutBefore and CutAfter are how many of the next COMMITs of PostgreSQL end their connection: before the server gets them, or before its response.
	CutBefore, CutAfter atomic.Int64

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
	all   sync.WaitGroup
}

// StartRelay starts a relay before the server at an address, until the test ends.
func StartRelay(t testing.TB, server string) *Relay {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Address: listener.Addr().String(), conns: map[net.Conn]struct{}{}}
	r.all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.all.Go(func() { r.serve(conn, server) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		r.Down(true)
		r.all.Wait()
	})
	return r
}

// RelayDatabase starts a relay before the PostgreSQL server of a URL, and returns the URL through the relay.
func RelayDatabase(t testing.TB, dsn string) (relayed string, r *Relay) {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	r = StartRelay(t, address.Host)
	address.Host = r.Address
	return address.String(), r
}

func (r *Relay) serve(in net.Conn, server string) {
	out, err := (&net.Dialer{Timeout: time.Second}).Dial("tcp", server)
	if err != nil {
		_ = in.Close()
		return
	}
	r.mu.Lock()
	if r.down {
		_, _ = in.Close(), out.Close()
	}
	r.conns[in], r.conns[out] = struct{}{}, struct{}{}
	r.mu.Unlock()
	var both sync.WaitGroup
	var deaf atomic.Bool
	both.Go(func() { r.pass(out, in, func(data []byte) bool { return r.cuts(data, &deaf) }) })
	both.Go(func() {
		r.pass(in, out, func([]byte) bool {
			time.Sleep(time.Duration(r.Delay.Load()))
			return deaf.Load()
		})
	})
	both.Wait()
	r.mu.Lock()
	delete(r.conns, in)
	delete(r.conns, out)
	r.mu.Unlock()
}

// pass passes what ends does not want the connection to end with.
func (r *Relay) pass(to, from net.Conn, ends func(data []byte) bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if ends(buffer[:n]) {
			return
		}
		if n > 0 && !r.Silent.Load() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cuts reports whether what a client sends to a server is a COMMIT with which the connection ends. deaf says that it ends with the response.
func (r *Relay) cuts(data []byte, deaf *atomic.Bool) bool {
	if !bytes.Contains(data, []byte("commit\x00")) {
		return false
	}
	if r.CutBefore.Load() > 0 && r.CutBefore.Add(-1) >= 0 {
		return true
	}
	if r.CutAfter.Load() > 0 && r.CutAfter.Add(-1) >= 0 {
		deaf.Store(true) // the response ends it; the server might not read what came just before the end
	}
	return false
}

// Cut resets every connection.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.conns {
		if tcp, is := conn.(*net.TCPConn); is {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// Down resets every connection and ends new ones at once, or lets them through again.
func (r *Relay) Down(down bool) {
	r.mu.Lock()
	r.down = down
	r.mu.Unlock()
	if down {
		r.Cut()
	}
}
