package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"portico/proxy"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

// lasting is what outlives a house: it is handed from one to the next when the
// configuration is read again.
type lasting struct {
	// life ends when the program is told to stop. Whoever builds a house then need not wait for a database any more.
	life context.Context
	// replays are remembered creates where there is no store for them.
	replays *proxy.Replays
	// memory is what callers wrote of late, and where.
	memory *switchover.Memory

	mu sync.Mutex
	// stores are those in use, by where they are.
	stores map[string]*openStore
	// stacks are connections to trackers, by all that makes them differ.
	stacks map[string]*lastingStack
	// commons are what caches have in common, once for each that uses it, the
	// latest last.
	commons []*commonUse
}

// openStore is a store with the number of houses that use it.
type openStore struct {
	*state.Store
	replays *proxy.Replays
	at      string
	users   int
}

func newLasting() *lasting {
	return &lasting{
		life: context.Background(), replays: proxy.NewReplays(nil, nil), memory: switchover.NewMemory(),
		stores: map[string]*openStore{}, stacks: map[string]*lastingStack{},
	}
}

// acquire opens a store, or gives the one that another house has open already.
// Whoever gets it releases it.
func (l *lasting) acquire(ctx context.Context, at string, logger *slog.Logger) (*openStore, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.stores[at]; held != nil {
		held.users++
		return held, nil
	}
	store, err := state.Open(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("open the state: %w", err)
	}
	secret, err := store.Secret(ctx, replaySecret)
	if err != nil {
		_ = store.Close()
		return nil, fmt.Errorf("open the state: %w", err)
	}
	held := &openStore{Store: store, at: at, users: 1}
	held.replays = proxy.NewReplays(newStoredReplays(store, at, logger), secret[:])
	l.stores[at] = held
	return held, nil
}

// release gives a store back; the last to do so closes it.
func (l *lasting) release(held *openStore, logger *slog.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held.users--; held.users > 0 {
		return
	}
	delete(l.stores, held.at)
	if err := held.Close(); err != nil {
		logger.Warn("the state could not be closed", "cause", err)
	}
}
