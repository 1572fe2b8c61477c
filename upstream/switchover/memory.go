package switchover

import (
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"portico/upstream"
)

// Bounds of a Memory. What is beyond them gives way, the longest unused first.
const (
	mostCallers  = 4096
	mostWrites   = 1 << 16 // of all callers
	mostByOne    = 1024    // writes of one caller
	mostSilences = 16
	mostHistory  = 64 // revisions, where there is no store
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
	// silences are until when trackers are not asked for what can be done without.
	silences *bounded[string, time.Time]

	flights flights

	// storing is held while the ledger is told of a change.
	storing turn
	// rules is held while a table is made the one that counts, and never while
	// anybody waits for the ledger.
	rules sync.Mutex
	// pending is a kill that the ledger may not know of.
	pending *undelivered
	// switchovers are those that are open, more than one while a former configuration
	// has requests.
	switchovers []*Switchover
	// inForce is the kill that counts, and where.
	inForce inForce
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
	// made says that it is an attachment that this write has made. The bugs that got
	// it are writes of their own.
	made bool
	// bug is the id of the bug that the object is or hangs on, 0 when it is not known.
	bug int64
	// looked says that there is no more to find out about the bug.
	looked bool
}

// NewMemory makes one that knows nothing.
func NewMemory() *Memory {
	m := &Memory{
		writers:  newBounded[digest, *writer](mostCallers),
		places:   newPlaces(),
		silences: newBounded[string, time.Time](mostSilences),
		flights:  flights{running: map[object][]*flight{}},
		storing:  make(turn, 1),
	}
	_, _ = rand.Read(m.secret[:]) // it never fails
	return m
}

func (m *Memory) enter(s *Switchover) {
	m.rules.Lock()
	defer m.rules.Unlock()
	m.switchovers = append(m.switchovers, s)
}

func (m *Memory) leave(s *Switchover) {
	m.rules.Lock()
	defer m.rules.Unlock()
	m.switchovers = slices.DeleteFunc(m.switchovers, func(other *Switchover) bool { return other == s })
}

// undelivered gives a kill that the ledger may not know of, or nil.
func (m *Memory) undelivered() *undelivered {
	m.rules.Lock()
	defer m.rules.Unlock()
	return m.pending
}

func (m *Memory) digest(caller *upstream.Caller) digest { return digestOf(m.secret[:], caller) }

// note remembers what a caller wrote.
func (m *Memory) note(who digest, writes ...written) {
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
	for _, one := range writes {
		m.written.Add(w.note(one))
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
			if one.bug == 0 {
				one.bug = other.bug // it stays where it hangs
			}
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

// learn remembers the bug of a write, 0 when there is none.
func (m *Memory) learn(who digest, what *written, bug int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, known := m.writers.get(who)
	if !known {
		return
	}
	for i := range w.writes {
		if one := &w.writes[i]; one.object == what.object && one.tracker == what.tracker {
			one.bug, one.looked = bug, true
		}
	}
}

// silence has a tracker that did not answer not be asked for a while for what can
// be done without.
func (m *Memory) silence(tracker string, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.silences.put(tracker, until)
}

// silent tells whether a tracker is not to be asked.
func (m *Memory) silent(tracker string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	until, known := m.silences.get(tracker)
	return known && now.Before(until)
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
	m.written.Add(-w.forget(after))
	if len(w.writes) == 0 {
		m.writers.drop(who)
		return nil
	}
	return append([]written(nil), w.writes...)
}

// forget drops what was written up to a time, and gives how much that was.
func (w *writer) forget(until time.Time) int64 {
	old := 0
	for old < len(w.writes) && !w.writes[old].at.After(until) {
		old++
	}
	w.writes = w.writes[old:]
	return int64(old)
}

// sweep forgets all that was written up to a time, and what is no longer believed now.
// It uses nothing, or whoever wrote last would give way as soon as anybody else.
func (m *Memory) sweep(until, now time.Time) {
	m.sweepPlaces(now)
	if m.written.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writers.dropWhere(func(w *writer) bool {
		m.written.Add(-w.forget(until))
		return len(w.writes) == 0
	})
}
