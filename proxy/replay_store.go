package proxy

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"portico/mapping"
)

// Replays are the creates that came with an Idempotency-Key, so that one that is sent again is not carried out again. They
// may serve several Servers, one after another, as when the configuration is read again.
type Replays struct {
	prints fingerprints
	store  ReplayStore
}

// NewReplays makes Replays that are kept in a store; nil keeps them in this process, where they do not survive it. The secret
// is what fingerprints are made under, the same for all who share the store; nil is one that nobody else knows.
func NewReplays(store ReplayStore, secret []byte) *Replays {
	if store == nil {
		store = newReplayMemory(mostReplays, time.Now)
	}
	prints := newFingerprints()
	if secret != nil {
		prints.key = sha256.Sum256(secret)
	}
	return &Replays{prints: prints, store: store}
}

// Replay is what is known of one create.
type Replay struct {
	// Content stands for what the first request said.
	Content [sha256.Size]byte
	// Running says that it is still being carried out.
	Running bool
	// Body is the tracker's answer, unless Failed is set.
	Body []byte
	// Failed is the error that the client got, for a create that may have been carried out.
	Failed *mapping.Error
}

// ReplayStore keeps Replays for ReplayTime. Keys and contents are fingerprints: nothing leads back from them. It is safe for
// concurrent use.
type ReplayStore interface {
	// Begin claims a key. Where somebody else has it, it is not claimed, and what is known of it is told.
	Begin(ctx context.Context, key, content [sha256.Size]byte) (known Replay, claimed bool, err error)
	// End says what became of a claim; nil gives the key free.
	End(ctx context.Context, key [sha256.Size]byte, outcome *Replay)
}

// ReplayTime is how long a create is remembered.
const ReplayTime = 24 * time.Hour

// mostReplays bounds how many creates are remembered in a process: 64 MiB at most, and less than one in fact.
const mostReplays = 4096

// replayMemory is the ReplayStore of one process.
type replayMemory struct {
	most int
	now  func() time.Time

	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*list.Element
	order list.List // of *remembered, the oldest first
}

type remembered struct {
	Replay
	key   [sha256.Size]byte
	since time.Time
}

func newReplayMemory(most int, now func() time.Time) *replayMemory {
	return &replayMemory{most: most, now: now, byKey: map[[sha256.Size]byte]*list.Element{}}
}

// Begin implements ReplayStore.
func (m *replayMemory) Begin(_ context.Context, key, content [sha256.Size]byte) (Replay, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end := m.now().Add(-ReplayTime)
	m.forget(func(old *remembered) bool { return !old.since.After(end) })
	if known := m.byKey[key]; known != nil {
		return known.Value.(*remembered).Replay, false, nil
	}
	m.forget(func(*remembered) bool { return len(m.byKey) >= m.most })
	if len(m.byKey) >= m.most {
		failed := failure(mapping.CodeUnavailable, mapping.ReasonOverload, "Too many requests with an Idempotency-Key are being carried out.", nil)
		failed.RetryAfter = time.Second
		return Replay{}, false, failed
	}
	entry := &remembered{Replay: Replay{Content: content, Running: true}, key: key, since: m.now()}
	m.byKey[key] = m.order.PushBack(entry)
	return Replay{}, true, nil
}

// End implements ReplayStore.
func (m *replayMemory) End(_ context.Context, key [sha256.Size]byte, outcome *Replay) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.byKey[key]
	switch {
	case known == nil:
	case outcome == nil:
		m.remove(known)
	default:
		known.Value.(*remembered).Replay = *outcome
	}
}

// forget removes from the oldest on, as long as it should. What is running stays.
func (m *replayMemory) forget(should func(*remembered) bool) {
	for at := m.order.Front(); at != nil; {
		next, entry := at.Next(), at.Value.(*remembered)
		if !should(entry) {
			return
		}
		if !entry.Running {
			m.remove(at)
		}
		at = next
	}
}

func (m *replayMemory) remove(at *list.Element) {
	delete(m.byKey, at.Value.(*remembered).key)
	m.order.Remove(at)
}
