package idmap

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Unpaired is an id that a client has named and for which the tracker that had to respond has no object.
type Unpaired struct {
	Kind Kind  `json:"kind"`
	ID   int64 `json:"id"`
	Side Side  `json:"side"`
	// Last is when it was named last, and Times how often.
	Last  time.Time `json:"last"`
	Times int64     `json:"times"`
}

// maxMissing bounds how many ids without a pair are known.
const maxMissing = 100

// missing are ids without a pair, the last ones that clients have named.
type missing struct {
	mu    sync.Mutex
	ids   []Unpaired
	count atomic.Int64
}

func (m *missing) add(side Side, r ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := Unpaired{Kind: r.kind, ID: r.id, Side: side}
	if at := slices.IndexFunc(m.ids, func(known Unpaired) bool { return known.Kind == r.kind && known.ID == r.id && known.Side == side }); at >= 0 {
		one = m.ids[at]
		m.ids = slices.Delete(m.ids, at, at+1)
	}
	one.Last, one.Times = time.Now(), one.Times+1
	m.ids = slices.Insert(m.ids, 0, one)
	m.ids = m.ids[:min(len(m.ids), maxMissing)]
	m.count.Store(int64(len(m.ids)))
}

// served forgets ids that a tracker has, whichever lacked them. Most of the time there are none.
func (m *missing) served(refs []ref) {
	if m.count.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids = slices.DeleteFunc(m.ids, func(known Unpaired) bool { return slices.Contains(refs, ref{known.Kind, known.ID}) })
	m.count.Store(int64(len(m.ids)))
}

// Unpaired lists the ids without a pair that clients of this process have named, the last one first.
func (m *Map) Unpaired() []Unpaired {
	m.missing.mu.Lock()
	defer m.missing.mu.Unlock()
	return append([]Unpaired{}, m.missing.ids...)
}
