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

// GetProbe is a Probe that wants an answer to GET url that is not a 5xx. Of what is none, well judges the status and the
// beginning of the body; a nil one takes everything.
func GetProbe(url string, well func(status int, head []byte) bool) Probe {
	return func(ctx context.Context, rt http.RoundTripper) error {
		req, err := http.NewRequestWithContext(WithOperation(ctx, "probe"), http.MethodGet, url, http.NoBody)
		if err != nil {
			return fmt.Errorf("make the probe's request: %w", err)
		}
		req.Header.Set("Accept", "application/json") // others may be answered with a page
		resp, err := rt.RoundTrip(req)
		if err != nil {
			return fmt.Errorf("probe the tracker: %w", err)
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("probe the tracker: status %d: %w", resp.StatusCode, ErrUnwell)
		}
		head, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		if err != nil {
			return fmt.Errorf("read the answer to the probe: %w", err)
		}
		if well != nil && !well(resp.StatusCode, head) {
			return fmt.Errorf("probe the tracker: not what was due, with status %d: %w", resp.StatusCode, ErrUnwell)
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
	// brief are probes of the usual time. A few patient ones, which nobody waits for, see a tracker that is well but slow:
	// without them it would be taken for one that hangs, for good.
	brief, patient chan struct{}

	mu      sync.Mutex
	running bool
}

// patientProbes are under way at a time at most.
const patientProbes = 5

func newProber(rt http.RoundTripper, o BreakOptions) *prober {
	ctx, cancel := context.WithCancel(context.Background())
	return &prober{o: o, rt: rt, ctx: ctx, cancel: cancel,
		brief: make(chan struct{}, o.Probes), patient: make(chan struct{}, patientProbes)}
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
	patientEvery := max(1, int(2*p.o.ProbeTimeout/p.o.ProbeEvery))
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			return
		}
		if p.finished() {
			return
		}
		p.send(p.brief, p.o.ProbeTimeout)
		if n%patientEvery == 0 {
			p.send(p.patient, max(p.o.ProbeTimeout, p.o.TrialTimeout))
		}
	}
}

// send begins a probe, unless enough of its kind hang already.
func (p *prober) send(kind chan struct{}, limit time.Duration) {
	select {
	case kind <- struct{}{}:
		p.all.Go(func() {
			defer func() { <-kind }()
			p.ask(limit)
		})
	default:
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

// errPanic says nothing about the tracker.
var errPanic = errors.New("the probe panicked")

// probe keeps a panic from ending the process: nobody else could.
func (p *prober) probe(ctx context.Context) (err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		err = errPanic
		if p.o.OnPanic != nil {
			p.o.OnPanic(cause)
		}
	}()
	return p.o.Probe(ctx, p.rt)
}

func (p *prober) ask(limit time.Duration) {
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	begun := time.Now()
	err := p.probe(ctx)
	for _, b := range p.targets {
		switch {
		case err == nil:
			b.lift(time.Since(begun))
		case errors.Is(err, ErrUnwell):
			b.vouch(begun)
		case p.ctx.Err() == nil:
			b.confirm(ReasonOf(err), time.Since(begun))
		}
	}
}
