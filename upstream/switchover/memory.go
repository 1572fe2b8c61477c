package switchover

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"portico/upstream"
)

// Bounds of a Memory. What is beyond them gives way, the longest unused first.
const (
	mostCallers = 4096
	mostWrites  = 1 << 16 // of all callers
	mostByOne   = 1024    // writes of one caller
	mostHistory = 64      // revisions, where there is no store
)

// Memory is what a switchover remembers of callers for a short while: where each
// wrote what, what was looked up for it, which writes are under way, and a kill
// that no store knows of yet. It outlives a reload of the configuration, is kept in
// this process only and holds no credentials.
type Memory struct {
	secret [32]byte
	// written is the number of writes that are remembered; most of the time none.
	written atomic.Int64

	mu      sync.Mutex
	writers *bounded[digest, *writer]
	places  *bounded[placeKey, placeEntry]

	flights flights

	// storing is held while the ledger is told of a change.
	storing turn
	// rules is held while a table is made the one that counts, and never while
	// anybody waits for the ledger.
	rules sync.Mutex
	// pending is a kill that the ledger may not know of.
	pending *undelivered
	// local keeps the revisions where there is no store.
	local localLedger
}

// writer is what one caller wrote, each object once, the oldest first.
type writer struct{ writes []written }

// written is a caller's last write of one object.
type written struct {
	object  object
	tracker string
	at      time.Time
}

// NewMemory makes one that knows nothing.
func NewMemory() *Memory {
	m := &Memory{
		writers: newBounded[digest, *writer](mostCallers),
		places:  newPlaces(),
		flights: flights{running: map[object][]*flight{}},
		storing: make(turn, 1),
	}
	_, _ = rand.Read(m.secret[:]) // it never fails
	return m
}

// undelivered gives a kill that the ledger may not know of, or nil.
func (m *Memory) undelivered() *undelivered {
	m.rules.Lock()
	defer m.rules.Unlock()
	return m.pending
}

func (m *Memory) digest(caller *upstream.Caller) digest { return digestOf(m.secret[:], caller) }

// note remembers that a caller wrote objects at a tracker.
func (m *Memory) note(who digest, objects []object, tracker string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, known := m.writers.get(who)
	if !known {
		for len(m.writers.entries) >= mostCallers {
			m.forgetOne()
		}
		w = &writer{}
		m.writers.put(who, w)
	}
	for _, o := range objects {
		m.written.Add(w.note(written{o, tracker, now}))
	}
	for m.written.Load() > mostWrites {
		m.forgetOne()
	}
}

// note gives by how much the number of writes grew.
func (w *writer) note(one written) int64 {
	grown := int64(1)
	kept := w.writes[:0]
	for _, other := range w.writes {
		if other.object == one.object {
			grown--
			continue
		}
		kept = append(kept, other)
	}
	if len(kept) >= mostByOne {
		kept = kept[:copy(kept, kept[1:])]
		grown--
	}
	w.writes = append(kept, one)
	return grown
}

// forgetOne drops the caller who was not heard of for the longest time.
func (m *Memory) forgetOne() {
	if w, ok := m.writers.dropOldest(); ok {
		m.written.Add(-int64(len(w.writes)))
	}
}

// since gives what a caller wrote after a time, the oldest first, and forgets
// what is older.
func (m *Memory) since(who digest, after time.Time) []written {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, known := m.writers.get(who)
	if !known {
		return nil
	}
	old := 0
	for old < len(w.writes) && !w.writes[old].at.After(after) {
		old++
	}
	m.written.Add(-int64(old))
	w.writes = w.writes[old:]
	if len(w.writes) == 0 {
		m.writers.drop(who)
		return nil
	}
	return append([]written(nil), w.writes...)
}

// sweep forgets all that was written up to a time, and what is no longer believed now.
func (m *Memory) sweep(until, now time.Time) {
	m.sweepPlaces(now)
	if m.written.Load() == 0 {
		return
	}
	m.mu.Lock()
	all := make([]digest, 0, len(m.writers.entries))
	for who := range m.writers.entries {
		all = append(all, who)
	}
	m.mu.Unlock()
	for _, who := range all {
		m.since(who, until)
	}
}
