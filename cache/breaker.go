package cache

import (
	"math/bits"
	"sync"
)

const (
	// breakerLimit is how many failures in a row make Redis count as away.
	breakerLimit = 3
	// breakerShare is how many of the last 16 commands do so, however they come.
	breakerShare = 8
)

// breaker keeps reads away from a Redis that does not answer. It closes again
// only when the goroutine that watches Redis got through, so no read ever pays
// for finding out.
//
// It is not the circuit breaker of upstream/transport, whose open time ends with
// trials by real calls and with a lock around each. Here nothing is tried by a
// read, and a wrong guess costs little: a read that finds Redis away asks the
// tracker.
type breaker struct {
	mu       sync.Mutex
	failures int
	// lately has a bit for each of the last commands, set where it failed.
	lately uint16
	open   bool
	// changed is told why Redis counts as away.
	changed func(available bool, cause error)
}

func (b *breaker) allows() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.open
}

func (b *breaker) failed(cause error) {
	b.mu.Lock()
	b.failures++
	b.lately = b.lately<<1 | 1
	trips := !b.open && (b.failures >= breakerLimit || bits.OnesCount16(b.lately) >= breakerShare)
	b.open = b.open || trips
	b.mu.Unlock()
	if trips {
		b.changed(false, cause)
	}
}

// succeeded ends a row of failures. It closes an open breaker only for a probe:
// a late success of a call from before says nothing about now.
func (b *breaker) succeeded(probe bool) {
	b.mu.Lock()
	closes := b.open && probe
	b.lately <<= 1
	if closes || !b.open {
		b.failures, b.open = 0, false
	}
	if closes {
		b.lately = 0
	}
	b.mu.Unlock()
	if closes {
		b.changed(true, nil)
	}
}
