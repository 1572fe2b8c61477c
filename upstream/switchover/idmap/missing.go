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
	one := Unpaired{r.kind, r.id, side, time.Now(), 1}
	m.ids = slices.DeleteFunc(m.ids, func(known Unpaired) bool {
		same := known.Kind == r.kind && known.ID == r.id && known.Side == side
		if same {
			one.Times += known.Times
		}
		return same
	})
	m.ids = append([]Unpaired{one}, m.ids[:min(len(m.ids), maxMissing-1)]...)
}

// served forgets ids that a tracker has, whichever lacked them.
func (m *missing) served(refs []ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids = slices.DeleteFunc(m.ids, func(known Unpaired) bool { return slices.Contains(refs, ref{known.Kind, known.ID}) })
}

// Unpaired lists the ids without a pair that clients of this process have named, the last one first. A nil Map has none.
func (m *Map) Unpaired() []Unpaired {
	if m == nil {
		return []Unpaired{}
	}
	m.missing.mu.Lock()
	defer m.missing.mu.Unlock()
	return append([]Unpaired{}, m.missing.ids...)
}
