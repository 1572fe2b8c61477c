package idmap

import (
	"slices"
	"sync"
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
	mu  sync.Mutex
	ids []Unpaired
}

func (m *missing) add(side Side, r ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := Unpaired{Kind: r.kind, ID: r.id, Side: side}
	m.ids = slices.DeleteFunc(m.ids, func(known Unpaired) bool {
		same := known.Kind == r.kind && known.ID == r.id && known.Side == side
		if same {
			one = known
		}
		return same
	})
	one.Last, one.Times = time.Now(), one.Times+1
	m.ids = slices.Insert(m.ids, 0, one)
	m.ids = m.ids[:min(len(m.ids), maxMissing)]
}

// served forgets ids that a tracker has, whichever lacked them.
func (m *missing) served(refs []ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids = slices.DeleteFunc(m.ids, func(known Unpaired) bool { return slices.Contains(refs, ref{known.Kind, known.ID}) })
}

// Unpaired lists the ids without a pair that clients of this process have named, the last one first.
func (m *Map) Unpaired() []Unpaired {
	m.missing.mu.Lock()
	defer m.missing.mu.Unlock()
	return append([]Unpaired{}, m.missing.ids...)
}
