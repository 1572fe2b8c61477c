package transport

import "time"

// A call that waits in vain may have asked for too much, or the tracker hangs. Callers find out slowly: each waits for the
// whole timeout, and many who ask for the same thing are one call. So probes are sent after the first such call, and those that
// get no answer either count like calls.

// confirm takes a probe without an answer for a call without one, if there is a suspicion. A probe that waited no longer than
// this tracker takes at times proves nothing.
func (b *Breaker) confirm(reason Reason, waited time.Duration) {
	b.mu.Lock()
	if !b.suspect || !reason.noAnswer() || reason == Timeout && waited < 2*b.usual {
		b.mu.Unlock()
		return
	}
	b.unanswered++
	if done, err := b.cb.Allow(); err == nil {
		done(errFailed)
	}
	release := b.release()
	b.mu.Unlock()
	release()
	b.deliver()
}
