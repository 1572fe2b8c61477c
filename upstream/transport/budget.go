package transport

import "sync"

// budget keeps retries to a share of the traffic: every call earns a fraction of a retry, up to burst in store.
// When a tracker fails for everybody, retries add that share to its load and no more.
type budget struct {
	mu           sync.Mutex
	share, burst float64
	stored       float64
}

func newBudget(share float64, burst int) *budget {
	return &budget{share: share, burst: float64(burst), stored: float64(burst)}
}

func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored = min(b.burst, b.stored+b.share)
}

// left tells whether there is something to spend; nil has no end.
func (b *budget) left() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stored >= 1
}

// owe takes one that was spent without asking.
func (b *budget) owe() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored--
}

func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stored < 1 {
		return false
	}
	b.stored--
	return true
}
