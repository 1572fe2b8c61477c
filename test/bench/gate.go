package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// gate stands between Portico and the tracker and fails in the way that is set.
type gate struct {
	target   *url.URL
	server   *http.Server
	address  string
	failure  atomic.Value
	hung     chan struct{}
	listened net.Listener
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
		if g.passes(w, r) {
			proxy.ServeHTTP(w, r)
		}
	})}
	go func() { _ = g.server.Serve(g.listened) }() // close ends it
	return nil
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

func (g *gate) close() { _ = g.server.Close() }
