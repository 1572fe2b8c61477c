package transport

import "time"

// release gives what lets those go who waited when the breaker opened, to be called without b.mu, which is held.
func (b *Breaker) release() func() {
	released, why := b.released, &Error{Reason: BreakerOpen, RetryAfter: time.Until(b.until), Err: errReleased}
	b.released = nil
	return func() {
		for _, waiting := range released {
			waiting.cancel(why)
		}
	}
}

// deliver tells OnChange and starts the prober, outside of the lock and in order.
func (b *Breaker) deliver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.delivering {
		return
	}
	b.delivering = true
	for len(b.pending) > 0 {
		changes := b.pending
		b.pending = nil
		b.mu.Unlock()
		b.tell(changes)
		b.mu.Lock()
	}
	b.delivering = false
}

func (b *Breaker) tell(changes []Change) {
	for _, change := range changes {
		switch {
		case change.To == Open:
			b.opened()
		case change.To == Closed && b.closed != nil:
			b.closed()
		}
		if b.o.OnChange != nil {
			b.o.OnChange(change)
		}
	}
}
