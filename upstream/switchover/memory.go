package switchover

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"portico/mapping"
)

// Bounds of a memory, which begins anew when it is full.
const (
	maxWrites     = 1 << 16 // of all callers
	maxOwnWrites  = 1024    // of one caller
	maxPlaces     = 1 << 13
	placeLifetime = 10 * time.Second
)

// memory is what a switchover remembers of callers for a short while: where each
// wrote what, and what was looked up for it. It holds no credentials.
type memory struct {
	// written is the number of writes that are remembered; most of the time none.
	written atomic.Int64

	mu      sync.Mutex
	writers map[identity][]written // of each caller, each object once, the oldest first
	// recalled are callers whose writes were read from the journal, with the time of their last read after that.
	recalled map[identity]time.Time
	places   map[placeKey]placeEntry
}

// written is a caller's last write of one object.
type written struct {
	object object
	side   side
	at     time.Time
	// created says that it is an attachment that this write has created. Its bugs
	// are writes of their own.
	created bool
	// bug is the id of the bug that the object is or belongs to, 0 when it is not known.
	bug int64
}

// placeKey is one lookup that was made for a caller.
type placeKey struct {
	caller identity
	side   side
	object object
}

type placeEntry struct {
	place mapping.Place
	until time.Time
}

func newMemory() *memory {
	return &memory{writers: map[identity][]written{}, recalled: map[identity]time.Time{}, places: map[placeKey]placeEntry{}}
}

// place gives what was looked up a few seconds ago.
func (m *memory) place(key placeKey, now time.Time) (mapping.Place, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry, ok := m.places[key]
	return entry.place, ok && now.Before(entry.until)
}

// keepPlace remembers what was looked up.
func (m *memory) keepPlace(key placeKey, place mapping.Place, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.places) >= maxPlaces {
		clear(m.places)
	}
	m.places[key] = placeEntry{place, now.Add(placeLifetime)}
}

// note remembers what a caller wrote.
func (m *memory) note(caller identity, writes ...written) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.written.Load() > maxWrites {
		clear(m.writers)
		m.written.Store(0)
	}
	own := m.writers[caller]
	m.written.Add(-int64(len(own)))
	for _, one := range writes {
		own = append(slices.DeleteFunc(own, func(other written) bool { return other.object == one.object }), one)
	}
	own = own[max(0, len(own)-maxOwnWrites):]
	m.writers[caller] = own
	m.written.Add(int64(len(own)))
}

// since gives what a caller wrote after a time, the oldest first.
func (m *memory) since(caller identity, after time.Time) []written {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(later(m.writers[caller], after))
}

// knows reports whether the writes of a caller were read from the journal and it has read something after a time. If so, this is its last read.
func (m *memory) knows(caller identity, after, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.recalled[caller].After(after)
	if known {
		m.recalled[caller] = now
	}
	return known
}

// recall remembers writes of a caller from the journal, which come before those that it has made here.
func (m *memory) recall(caller identity, writes []written, now time.Time) {
	m.note(caller, append(writes, m.since(caller, time.Time{})...)...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.recalled) >= maxWrites {
		clear(m.recalled)
	}
	m.recalled[caller] = now
}

// later leaves out the writes up to a time.
func later(writes []written, after time.Time) []written {
	for len(writes) > 0 && !writes[0].at.After(after) {
		writes = writes[1:]
	}
	return writes
}

// forget drops all that was written up to a time.
func (m *memory) forget(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.recalled, func(_ identity, read time.Time) bool { return !read.After(until) })
	for caller, own := range m.writers {
		left := later(own, until)
		m.written.Add(int64(len(left) - len(own)))
		if m.writers[caller] = left; len(left) == 0 {
			delete(m.writers, caller)
		}
	}
}
