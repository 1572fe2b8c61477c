package switchover

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"portico/mapping"
)

const (
	// maxMemory bounds, in bytes, what is remembered of writes and what of lookups.
	maxMemory     = 16 << 20
	maxOwnWrites  = 1024 // of one caller; up to twice as many before the oldest go
	placeLifetime = 10 * time.Second
)

// memory is what a switchover remembers of callers for a short while: where each
// wrote what, and what was looked up for it. It holds no credentials.
type memory struct {
	// lastWrite is when a caller has written last, in nanoseconds of Unix time. Most of the time that is long ago.
	lastWrite atomic.Int64
	callers   *otter.Cache[identity, ownWrites]
	places    *otter.Cache[placeKey, mapping.Place]
}

// ownWrites are the writes of one caller, the oldest first. Only the last one of an object counts.
type ownWrites struct {
	writes []written
	// recalled is when its writes were read from the journal.
	recalled time.Time
}

// written is a caller's last write of one object.
type written struct {
	object object
	side   side
	at     time.Time
	// bug is the id of the bug that the object is or belongs to, 0 when it is not known, and ofNoBug where that does not matter.
	bug int64
}

// ofNoBug is the bug of an attachment that a write has created: its bugs are writes of their own.
const ofNoBug = -1

// placeKey is one lookup that was made for a caller.
type placeKey struct {
	caller identity
	side   side
	object object
}

func newMemory() *memory {
	return &memory{
		callers: otter.Must(&otter.Options[identity, ownWrites]{MaximumWeight: maxMemory, Weigher: func(_ identity, own ownWrites) uint32 {
			size := 1
			for _, w := range own.writes {
				size += w.object.size()
			}
			return uint32(size)
		}}),
		places: otter.Must(&otter.Options[placeKey, mapping.Place]{
			MaximumWeight: maxMemory, Weigher: func(key placeKey, _ mapping.Place) uint32 { return uint32(key.object.size()) },
			ExpiryCalculator: otter.ExpiryWriting[placeKey, mapping.Place](placeLifetime),
		}),
	}
}

// size is about how many bytes remembering an object takes, with names as long as a client likes.
func (o *object) size() int { return 256 + len(o.alias) + len(o.product) }

// note remembers what a caller has just written.
func (m *memory) note(caller identity, writes []written, now time.Time) {
	m.callers.Compute(caller, func(own ownWrites, _ bool) (ownWrites, otter.ComputeOp) {
		own.writes = latest(own.writes, writes)
		return own, otter.WriteOp
	})
	m.lastWrite.Store(now.UnixNano())
}

// recall remembers what the journal has of a caller, which comes before what it has written since.
func (m *memory) recall(caller identity, writes []written, now time.Time) {
	m.callers.Compute(caller, func(own ownWrites, _ bool) (ownWrites, otter.ComputeOp) {
		return ownWrites{latest(writes, own.writes), now}, otter.WriteOp
	})
	m.lastWrite.Store(now.UnixNano())
}

// latest joins two lists of writes. Of each object the later write counts, and of a caller with many objects the last ones. Readers of the list before
// see nothing of what is added behind it.
func latest(before, after []written) []written {
	all := append(before, after...)
	if len(all) <= 2*maxOwnWrites {
		return all
	}
	var kept []written
	known := make(map[object]bool, maxOwnWrites)
	for _, w := range slices.Backward(all) {
		if !known[w.object] && len(kept) < maxOwnWrites {
			known[w.object] = true
			kept = append(kept, w)
		}
	}
	slices.Reverse(kept)
	return kept
}
