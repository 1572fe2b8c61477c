package transport

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"portico/upstream"
)

const (
	probeEvery   = 100 * time.Millisecond // pause between two probes
	probeTimeout = 300 * time.Millisecond // while a breaker is open: with probeEvery the longest time to see a recovery
	checkTimeout = time.Second            // after a failed call: a busy tracker must not look like one that hangs
	checkPause   = time.Second            // shortest time between two series of probes after failed calls
	checkProbes  = 5                      // failed probes after which a series ends although the breakers stay closed
	probesToOpen = 2                      // failed probes in a row, without a good call between them
	probeHead    = 64 << 10               // bytes of a response that Well gets
)

// prober sends probes, one at a time, while a breaker is open and after calls that failed. Beside them a second probe at a
// time is patient while a breaker is open: it recognises a tracker that works but is slow.
type prober struct {
	stack    *Stack
	ctx      context.Context
	cancel   context.CancelFunc
	all      sync.WaitGroup
	brief    chan struct{} // wakes the goroutine that sends brief probes
	patient  chan struct{}
	failures atomic.Int32 // probes in a row, and no good call since
	last     atomic.Int64 // when a brief probe ended, in nanoseconds of the Unix time
}

// newProber returns a prober, which does nothing when there is no ProbeURL. The stack has its breakers already.
func newProber(s *Stack) *prober {
	p := &prober{stack: s, brief: make(chan struct{}, 1), patient: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if s.o.Break.ProbeURL != "" {
		p.all.Go(func() { p.run(p.brief, p.probe) })
		p.all.Go(func() { p.run(p.patient, p.probePatiently) })
	}
	return p
}

// failing reports whether probes fail and no call has succeeded since.
func (p *prober) failing() bool { return p.failures.Load() >= probesToOpen }

// callSucceeded ends a row of failed probes.
func (p *prober) callSucceeded() {
	if p.failures.Load() > 0 {
		p.failures.Store(0)
	}
}

// callFailed starts probes after a failed call.
func (p *prober) callFailed() {
	if time.Since(time.Unix(0, p.last.Load())) >= checkPause {
		wake(p.brief)
	}
}

// breakerOpened starts probes. It is called with gobreaker's lock held.
func (p *prober) breakerOpened() {
	wake(p.brief)
	wake(p.patient)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run waits to be woken and probes until probe returns false.
func (p *prober) run(woken <-chan struct{}, probe func() bool) {
	for {
		select {
		case <-woken:
		case <-p.ctx.Done():
			return
		}
		for again := true; again; {
			again = probe()
			if !upstream.Pause(p.ctx, probeEvery) {
				return
			}
		}
	}
}

// probe sends one brief probe and reports whether another one is due.
func (p *prober) probe() bool {
	closed, limit := p.closed(), probeTimeout
	if closed {
		limit = checkTimeout
	}
	failure := p.send(limit)
	p.last.Store(time.Now().UnixNano())
	switch {
	case failure == "":
		p.notify("")
	case failure.failed() && closed == p.closed():
		failures := p.failures.Add(1)
		p.notify(failure)
		return failures < checkProbes || !p.closed()
	}
	return failure == Canceled || !p.closed()
}

// probePatiently sends one patient probe, of which only a good result counts.
func (p *prober) probePatiently() bool {
	if p.send(p.stack.o.Break.TrialTimeout) == "" {
		p.notify("")
	}
	return !p.closed()
}

// send sends a probe and returns why it failed, or "".
func (p *prober) send(limit time.Duration) (failure Reason) {
	o := &p.stack.o.Break
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	defer func() {
		if recover() != nil { // in Well, which reads what the tracker sent
			failure = Other
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.ProbeURL, http.NoBody)
	if err != nil {
		return Other
	}
	req.Header.Set("Accept", "application/json") // without it some trackers respond with a page
	a := newAttempt(&call{stack: p.stack, read: true}, req)
	if err := a.send(req); err != nil {
		a.finish(err)
		if a.connHadEnded(err) {
			return Canceled
		}
		return ReasonOf(err)
	}
	defer func() { _ = a.Close() }()
	head, err := Head(a.resp, probeHead)
	switch {
	case err != nil:
		return ReasonOf(err)
	case a.resp.StatusCode >= http.StatusInternalServerError || o.Well != nil && !o.Well(a.resp.StatusCode, head):
		return ServerError
	}
	return ""
}

// notify gives the breakers the result of a probe.
func (p *prober) notify(failure Reason) {
	if failure == "" {
		p.failures.Store(0)
	}
	p.stack.Reads.probed(failure)
	p.stack.Writes.probed(failure)
}

// closed reports whether all breakers are closed.
func (p *prober) closed() bool {
	return p.stack.Reads.State() == Closed && p.stack.Writes.State() == Closed
}
