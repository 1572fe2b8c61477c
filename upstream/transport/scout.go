package transport

import (
	"context"
	"time"
)

// A probe can be good while calls go on failing: what is sick may be another part of the tracker than the one that probes
// ask. Then only a call can find out that it is well again, and an open time that has grown to seconds is long to wait for
// that. So a read is let through ahead of time as often as a probe, a scout. Writes are not: each one that goes wrong
// leaves somebody with an unknown outcome.

// mayScout tells whether a read may go ahead; b.mu is held.
func (b *Breaker) mayScout(now time.Time) bool {
	return b.vouched && (b.distrust || b.state == HalfOpen) && b.scouts < b.o.Probes && now.Sub(b.scouted) >= b.o.ProbeEvery
}

// scout lets one through. Its caller is released when it takes too long; b.mu is held.
func (b *Breaker) scout(cancel context.CancelCauseFunc, now time.Time) *call {
	b.scouts++
	b.scouted = now
	c := &call{scout: true, begun: now, cancel: cancel, client: &stopwatch{}}
	c.trial = time.AfterFunc(b.patience(), func() {
		b.giveUp(c)
		b.expire(c)
	})
	b.waiting[c] = struct{}{}
	return c
}

// returned takes the verdict of a scout. A good one counts as a trial that went well, and a trial that still waits steps
// aside for it; b.mu is held.
func (b *Breaker) returned(c *call, v verdict) {
	b.scouts--
	if v.neutral || v.reason != "" || b.state == Closed || c.begun.Before(b.openedAt) {
		return
	}
	if b.state == Open {
		b.cb.State() // moves on to half-open
	}
	b.stepAside(time.Now())
	if done, err := b.cb.Allow(); err == nil {
		done(nil)
	}
}

// encourage lets the next write be the trial at once: reads have been seen to be well again.
func (b *Breaker) encourage() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.state == Open && now.Before(b.until) {
		b.lifted, b.vouched, b.distrust, b.until = true, true, false, now
	}
}
