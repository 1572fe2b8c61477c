package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// gate stands between Portico and the tracker. It counts flag type reads, delays them, and fails as it is told.
type gate struct {
	target   *url.URL
	server   *http.Server
	address  string
	delay    atomic.Int64
	failure  atomic.Value
	hung     chan struct{}
	reads    atomic.Int64
	mu       sync.Mutex
	took     []time.Duration
	listened net.Listener
	// slow is how long it takes to answer for bugs by itself; 0 leaves them to the tracker.
	slow time.Duration
}

// The ways in which a tracker is sick.
const (
	well    = "well"
	refuses = "refused"
	hangs   = "hung"
	fails   = "answering 500"
)

func newGate(ctx context.Context, tracker string) (*gate, error) {
	target, err := url.Parse(tracker)
	if err != nil {
		return nil, err
	}
	g := &gate{target: target, hung: make(chan struct{})}
	g.failure.Store(well)
	g.address, err = freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	return g, g.open(ctx)
}

// open begins to listen.
func (g *gate) open(ctx context.Context) error {
	var err error
	if g.listened, err = new(net.ListenConfig).Listen(ctx, "tcp", g.address); err != nil {
		return err
	}
	proxy := httputil.NewSingleHostReverseProxy(g.target)
	g.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		isRead := r.Method == http.MethodGet && len(r.URL.Path) > len("/rest/flag_type/") && r.URL.Path[:len("/rest/flag_type/")] == "/rest/flag_type/"
		if !g.passes(w, r) {
			return
		}
		if g.slow > 0 && strings.HasPrefix(r.URL.Path, "/rest/bug/") {
			g.dawdle(w, r)
			return
		}
		if isRead {
			g.reads.Add(1)
			time.Sleep(time.Duration(g.delay.Load()))
		}
		proxy.ServeHTTP(w, r)
		if isRead {
			g.mu.Lock()
			g.took = append(g.took, time.Since(begun))
			g.mu.Unlock()
		}
	})}
	go func() { _ = g.server.Serve(g.listened) }() // close ends it
	return nil
}

// dawdle gives an empty answer, after a while.
func (g *gate) dawdle(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(g.slow):
	case <-r.Context().Done():
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_, _ = io.WriteString(w, `{"bugs":{"1":[]},"attachments":{}}`)
}

// passes lets a request through, or does to it what the tracker would.
func (g *gate) passes(w http.ResponseWriter, r *http.Request) bool {
	switch g.failure.Load() {
	case hangs:
		select {
		case <-g.hung:
		case <-r.Context().Done():
		}
		return false
	case fails:
		http.Error(w, "Software error", http.StatusInternalServerError)
		return false
	}
	return true
}

// be makes the tracker well or sick.
func (g *gate) be(ctx context.Context, failure string) error {
	was := g.failure.Swap(failure)
	switch {
	case failure == refuses:
		return g.server.Close()
	case was == refuses:
		return g.open(ctx)
	case was == hangs:
		close(g.hung)
		g.hung = make(chan struct{})
	}
	return nil
}

// slowest is the longest that the tracker took for a read, since it was last asked.
func (g *gate) slowest() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	var most time.Duration
	for _, each := range g.took {
		most = max(most, each)
	}
	g.took = nil
	return most
}

func (g *gate) close() { _ = g.server.Close() }
