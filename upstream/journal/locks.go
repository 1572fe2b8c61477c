package journal

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// locks are the leases that this process has or waits for, by their names. The store has those of other processes.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// lock waits until it has all of them.
func (l *locks) lock(ctx context.Context, names []string) error {
	for {
		other := l.try(names)
		if other == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-other:
		}
	}
}

// try takes all names, or none and returns what is closed when one that is held becomes free.
func (l *locks) try(names []string) (other chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if held := l.held[name]; held != nil {
			return held
		}
	}
	for _, name := range names {
		l.held[name] = make(chan struct{})
	}
	return nil
}

func (l *locks) unlock(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		close(l.held[name])
		delete(l.held, name)
	}
}

func (l *locks) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.held)) // as writes give them back, or PostgreSQL would have one of them fail
}
