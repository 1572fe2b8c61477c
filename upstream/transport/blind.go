package transport

import "time"

// blind tells whether the breaker is not closed and nothing has been heard of the tracker since it opened, although
// somebody is listening.
func (b *Breaker) blind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.o.Probe != nil && b.state != Closed && !b.vouched
}

// silent tells whether the breaker opened for want of answers, rather than because of bad ones.
func (b *Breaker) silent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reason.noAnswer()
}

// refuse counts a call that is not let through, and tells when asking again makes sense.
func (b *Breaker) refuse() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rejected++
	return max(time.Until(b.until), b.o.ProbeEvery)
}

// vouch takes note of an answer to a call that began then. What the tracker was asked before the breaker opened says
// nothing about now.
func (b *Breaker) vouch(begun time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suspect = false
	if b.state != Closed && begun.After(b.openedAt) {
		b.vouched = true
	}
}

// stepAside lets another call be the trial instead of those that began while the tracker hung: it may never answer them
// although it is well again. They go on for as long as they were given. b.mu is held.
func (b *Breaker) stepAside(now time.Time) {
	for c := range b.waiting {
		if c.trial == nil || c.scout || c.over || c.episode != b.episode || !c.trial.Stop() {
			continue
		}
		c.over = true
		c.done(errNeutral)
		c.trial = time.AfterFunc(b.trialTime()-now.Sub(c.begun), func() { b.giveUp(c) })
	}
}

// giveUp releases a trial that stepped aside and has no answer yet.
func (b *Breaker) giveUp(c *call) {
	b.mu.Lock()
	_, waiting := b.waiting[c]
	delete(b.waiting, c)
	b.mu.Unlock()
	if waiting {
		c.cancel(&Error{Reason: BreakerOpen, RetryAfter: b.o.ProbeEvery, Err: errReleased})
	}
}

// left follows the end of a call whose verdict has been taken already; b.mu is held.
func (c *call) left(b *Breaker) {
	delete(b.waiting, c)
	if c.trial != nil {
		c.trial.Stop()
	}
}
