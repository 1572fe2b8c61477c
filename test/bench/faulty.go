package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// The ways in which a candidate is sick. With candidateNone nothing is shadowed.
const (
	candidateNone  = "none"
	candidateWell  = "well"
	candidateHung  = "hung"
	candidateFlood = "flooding"
	candidateReset = "resetting"
	candidateDead  = "dead"
)

// faulty stands before a tracker and fails in the way that is set.
type faulty struct {
	address string
	tracker *server

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

// faultyTracker starts a tracker that is sick in a way. close ends it.
func (b *bench) faultyTracker(ctx context.Context, how string) (*faulty, error) {
	tracker, err := b.tracker(ctx)
	if err != nil {
		return nil, err
	}
	f := &faulty{tracker: tracker}
	if f.address, err = freeAddress(ctx); err == nil {
		err = f.be(ctx, how)
	}
	if err != nil {
		tracker.stop()
	}
	return f, err
}

func (f *faulty) close() {
	_ = f.be(context.Background(), candidateDead) // which only closes
	f.tracker.stop()
}

// be ends all connections, and fails in another way from now on.
func (f *faulty) be(ctx context.Context, how string) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listener != nil {
		_ = f.listener.Close()
	}
	for _, each := range f.open {
		_ = each.Close()
	}
	f.open = nil
	if how == candidateDead || how == candidateNone {
		return nil
	}
	if f.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", f.address); err == nil {
		go f.serve(ctx, f.listener, how)
	}
	return err
}

// serve handles connections until the listener is closed.
func (f *faulty) serve(ctx context.Context, listener net.Listener, how string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.open = append(f.open, conn)
		f.mu.Unlock()
		go func() {
			defer conn.Close()
			f.misbehave(ctx, conn, how)
		}()
	}
}

// misbehave does to one connection what a sick tracker does.
func (f *faulty) misbehave(ctx context.Context, conn net.Conn, how string) {
	if how == candidateWell {
		behind, err := new(net.Dialer).DialContext(ctx, "tcp", f.tracker.address)
		if err != nil {
			return
		}
		defer behind.Close()
		go func() {
			defer behind.Close()
			_, _ = io.Copy(behind, conn)
		}()
		_, _ = io.Copy(conn, behind)
		return
	}
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
		return
	}
	switch how {
	case candidateHung:
		_, _ = io.Copy(io.Discard, conn)
	case candidateReset:
		_ = conn.(*net.TCPConn).SetLinger(0)
	case candidateFlood:
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{")
		for piece := bytes.Repeat([]byte(" "), 64<<10); err == nil; {
			_, err = conn.Write(piece)
		}
	}
}
