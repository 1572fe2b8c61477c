package main

import (
	"crypto/sha256"
	"sync"

	"portico/proxy"
)

// lateOutcomes are outcomes of creates that the store could not take, because its
// disk is full or it is away. One that is nil gives its key free.
type lateOutcomes struct {
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*proxy.Replay
}

// mostLate bounds how many are kept: 16 MiB at most, and far less in fact.
const mostLate = 1024

func newLateOutcomes() *lateOutcomes {
	return &lateOutcomes{byKey: map[[sha256.Size]byte]*proxy.Replay{}}
}

// put keeps one while there is room. Where there is none its create stays one that
// runs, which is the careful thing to say.
func (l *lateOutcomes) put(key [sha256.Size]byte, outcome *proxy.Replay) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byKey) < mostLate {
		l.byKey[key] = outcome
	}
}

// take gives one away.
func (l *lateOutcomes) take(key [sha256.Size]byte) (outcome *proxy.Replay, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	outcome, ended = l.byKey[key]
	delete(l.byKey, key)
	return outcome, ended
}
