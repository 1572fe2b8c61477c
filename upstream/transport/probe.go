package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Probe asks a tracker for a sign of life over rt, which has no breaker. nil = alive. An error that wraps ErrUnwell says
// that the tracker answers, and does not hang, but is not well either.
type Probe func(ctx context.Context, rt http.RoundTripper) error

// ErrUnwell is the answer of a tracker to a Probe that is no sign of health.
var ErrUnwell = errors.New("the tracker answers with a failure")

// GetProbe is a Probe that wants an answer to GET url that is not a 5xx.
func GetProbe(url string) Probe {
	return func(ctx context.Context, rt http.RoundTripper) error {
		req, err := http.NewRequestWithContext(WithOperation(ctx, "probe"), http.MethodGet, url, http.NoBody)
		if err != nil {
			return fmt.Errorf("make the probe's request: %w", err)
		}
		resp, err := rt.RoundTrip(req)
		if err != nil {
			return fmt.Errorf("probe the tracker: %w", err)
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("probe the tracker: status %d: %w", resp.StatusCode, ErrUnwell)
		}
		if _, err := io.CopyN(io.Discard, resp.Body, 64<<10); err != nil && err != io.EOF { //nolint:errorlint // exactly io.EOF
			return fmt.Errorf("read the answer to the probe: %w", err)
		}
		return nil
	}
}

// prober asks for signs of life while a breaker is open. It starts with the first one that opens, ends with the last
// one that is no longer open, and is owned by Breakers.Close.
type prober struct {
	o       BreakOptions
	rt      http.RoundTripper
	targets []*Breaker
	ctx     context.Context
	cancel  context.CancelFunc
	all     sync.WaitGroup
	tokens  chan struct{}

	mu      sync.Mutex
	running bool
}

func newProber(rt http.RoundTripper, o BreakOptions) *prober {
	ctx, cancel := context.WithCancel(context.Background())
	return &prober{o: o, rt: rt, ctx: ctx, cancel: cancel, tokens: make(chan struct{}, o.Probes)}
}

func (p *prober) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.o.Probe == nil || p.running || p.ctx.Err() != nil {
		return
	}
	p.running = true
	p.all.Go(p.run)
}

func (p *prober) close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.all.Wait()
}

func (p *prober) run() {
	tick := time.NewTicker(p.o.ProbeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			return
		}
		if p.finished() {
			return
		}
		select {
		case p.tokens <- struct{}{}:
			p.all.Go(p.ask)
		default: // enough of them hang already
		}
	}
}

// finished is decided under the lock of start, so that a breaker that opens now finds the prober running or starts it.
func (p *prober) finished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.targets {
		if b.wondering() {
			return false
		}
	}
	p.running = false
	return true
}

func (p *prober) ask() {
	defer func() { <-p.tokens }()
	ctx, cancel := context.WithTimeout(p.ctx, p.o.ProbeTimeout)
	defer cancel()
	begun := time.Now()
	err := p.o.Probe(ctx, p.rt)
	for _, b := range p.targets {
		switch {
		case err == nil:
			b.lift()
		case errors.Is(err, ErrUnwell):
			b.vouch(begun)
		}
	}
}
