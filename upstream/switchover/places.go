package switchover

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Bounds of what lookups found. A caller chooses what is looked up, and how much.
const (
	mostPlaces     = 1 << 14
	mostPlaceBytes = 8 << 20
	mostOnePlace   = 64 << 10
)

// placeKey is one question that was asked for a caller.
type placeKey struct {
	who     digest
	tracker string
	what    string
	// ref is a digest of what was asked about, which may be long.
	ref digest
}

// placeEntry is its answer.
type placeEntry struct {
	found found
	until time.Time
}

// size is about how many bytes an answer takes.
func (e placeEntry) size() int {
	const fixed, scope = 400, 40
	n := fixed + len(e.found.place.Product) + len(e.found.place.Component)
	for _, product := range e.found.products {
		n += scope + len(product)
	}
	for _, scopes := range e.found.scopes {
		n += scope
		for _, one := range scopes {
			n += scope + len(one.Product)
			for _, component := range one.Components {
				n += scope + len(component)
			}
		}
	}
	return n
}

func newPlaces() *bounded[placeKey, placeEntry] {
	return weighed[placeKey](mostPlaces, mostPlaceBytes, placeEntry.size)
}

func (m *Memory) place(key placeKey, now time.Time) (found, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry, ok := m.places.get(key)
	if ok && !now.Before(entry.until) {
		m.places.drop(key)
		return found{}, false
	}
	return entry.found, ok
}

// keep remembers an answer, unless it is out of all proportion.
func (m *Memory) keep(key placeKey, answer found, until time.Time) {
	entry := placeEntry{answer, until}
	if entry.size() > mostOnePlace {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.places.put(key, entry)
}

// sweepPlaces forgets what is no longer believed.
func (m *Memory) sweepPlaces(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.places.dropWhere(func(e placeEntry) bool { return !now.Before(e.until) })
}

// digest tells one lookup from another of the same kind.
func (l *lookup) digest() digest {
	in := binary.AppendVarint([]byte{byte(l.object.kind)}, l.object.id)
	in = appendPart(in, l.object.alias)
	for _, id := range l.ids {
		in = binary.AppendVarint(append(in, 'i'), id)
	}
	for _, name := range l.names {
		in = appendPart(append(in, 'n'), name)
	}
	sum := sha256.Sum256(in)
	return digest(sum[:16])
}
