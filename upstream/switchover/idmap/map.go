package idmap

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"portico/mapping/jsonblob"
	"portico/upstream/state"
)

// Side is one of the two trackers.
type Side string

// The sides, as the store names them.
const (
	OldSide Side = "old"
	NewSide Side = "new"
)

const (
	// maxRemembered bounds the ids in memory.
	maxRemembered = 1 << 18
	// absentFor is how long a native id without a pair is remembered as such, and then how long a reply with it: other processes add pairs.
	absentFor = time.Second / 2
	// maxKeys bounds the keys of one query.
	maxKeys = 5000
	// copyWait bounds how long a reply waits for copies under way, about which it asks every copyPoll.
	copyWait = 2 * time.Second
	copyPoll = 20 * time.Millisecond
)

// Options are what a Map needs. Store and Settings are required.
type Options struct {
	Store    *state.Store
	Settings Settings
	// Split bounds what a reply may cost in memory while it is translated.
	Split jsonblob.SplitOptions
	// Copying numbers the copies that a side is getting now, whose ids are not known yet. Nil where nothing is copied.
	Copying func(ctx context.Context, side Side) ([]int64, error)
}

// Map translates between the ids and names that clients know and those of two trackers. It is safe for concurrent use.
type Map struct {
	o      Options
	rules  map[Kind]Rule
	names  names
	digest string
	memory *otter.Cache[state.IDKey, remembered]
	// highest are the highest native ids of the old tracker that were seen.
	highest map[Kind]*atomic.Int64
	missing *missing
}

// remembered is what the store has under a key: the side of the pair and its other id. Without a side it has nothing, which is known until a
// time; own says that the object is certainly no copy.
type remembered struct {
	side  Side
	id    int64
	until time.Time
	own   bool
}

// New makes a Map. The settings must have no problems.
func New(options Options) *Map {
	m := &Map{
		o: options, rules: map[Kind]Rule{}, names: newNames(options.Settings.Names), highest: map[Kind]*atomic.Int64{}, missing: &missing{},
		memory: otter.Must(&otter.Options[state.IDKey, remembered]{MaximumSize: maxRemembered}),
	}
	for _, kind := range Kinds() {
		m.rules[kind], m.highest[kind] = options.Settings.rule(kind), &atomic.Int64{}
	}
	m.digest = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, m.rules, options.Settings.Names)))[:8] // fmt sorts maps
	return m
}

// Pair is the pair of a side that shows the object that clients know by one id under the id shown, as if the copy were an object of its own. The error
// is that of CheckPair.
func (m *Map) Pair(kind Kind, client int64, side Side, shown int64) (state.IDPair, error) {
	native, born := m.born(side, ref{kind, shown})
	if !born {
		native = 0 // which no object has
	}
	pair := state.IDPair{Kind: string(kind), Client: client, Side: string(side), Native: native}
	return pair, m.CheckPair(pair)
}

// Added forgets what was known before the store got pairs.
func (m *Map) Added(pairs []state.IDPair) {
	for _, pair := range pairs {
		for _, key := range pair.Keys() {
			m.memory.Invalidate(key)
		}
	}
}

// NearOffset returns a problem if the old tracker has shown an id that is too near to an offset: one that is not below it is no longer shown to clients.
func (m *Map) NearOffset() string {
	for kind, highest := range m.highest {
		if offset := m.rules[kind].Offset; highest.Load() >= offset*9/10 {
			return fmt.Sprintf("the old tracker has %s %d, and the offset is %d", kind.words(), highest.Load(), offset)
		}
	}
	return ""
}

// CheckPair returns an error for a pair that the rule of its kind excludes: an object has one id at the tracker on which it was born, and in the
// mode identity at both.
func (m *Map) CheckPair(p state.IDPair) error {
	r, known := m.rules[Kind(p.Kind)]
	_, born := m.born(Side(p.Side), ref{Kind(p.Kind), p.Client})
	if !known || born || min(p.Client, p.Native) < 1 || max(p.Client, p.Native) > maxID {
		return fmt.Errorf("%s: this pair contradicts switchover.ids (mode %q, offset %d): kinds are %v, ids are from 1 to %d, and an object keeps its id at the tracker "+
			"where it was created. Correct the setting or the pair, or leave out a parked copy: portico migrate journal skip", p, r.Mode, r.Offset, Kinds(), maxID)
	}
	return nil
}

// ref is an id of a kind.
type ref struct {
	kind Kind
	id   int64
}

// key selects the pair of an id at a side or, with an empty side, of one that clients know.
func key(side Side, r ref) state.IDKey {
	return state.IDKey{Kind: string(r.kind), Side: string(side), ID: r.id}
}

// born returns the native id of an object that was born at a side, and false for one that was not.
func (m *Map) born(side Side, client ref) (native int64, ok bool) {
	r := m.rules[client.kind]
	switch {
	case r.Mode == Identity:
		return client.id, true
	case side == OldSide:
		return client.id, client.id < r.Offset
	default:
		return client.id - r.Offset, client.id > r.Offset
	}
}

// natives returns the ids at one side of objects that clients name. For one that the side does not have under any known id the error is that
// of unmapped.
func (m *Map) natives(ctx context.Context, side Side, clients []ref) (map[ref]int64, error) {
	keys := make(map[ref]state.IDKey, len(clients))
	natives := make(map[ref]int64, len(clients))
	for _, r := range clients {
		native, born := m.born(side, r)
		if natives[r] = native; !born {
			keys[r] = key("", r)
		} else if m.rules[r.kind].Mode != Identity {
			keys[r] = key(side, ref{r.kind, native})
		}
	}
	found, err := m.find(ctx, slices.Collect(maps.Values(keys)))
	if err != nil {
		return nil, err
	}
	for r, key := range keys {
		// The pair of an object that was born there would be that of another object: clients know the copy by another id.
		pair, isCopy := found[key], key.Side == ""
		if isCopy != (pair.side == side) {
			m.missing.add(side, r)
			return nil, unmapped(side, r)
		}
		if isCopy {
			natives[r] = pair.id
		}
	}
	m.missing.served(clients)
	return natives, nil
}

// clients returns the ids by which clients know objects of one side.
func (m *Map) clients(ctx context.Context, side Side, natives []ref) (map[ref]int64, error) {
	var keys []state.IDKey
	for _, r := range natives {
		if m.rules[r.kind].Mode != Identity {
			keys = append(keys, key(side, r))
		}
	}
	found, err := m.settled(ctx, side, keys)
	if err != nil {
		return nil, err
	}
	clients := make(map[ref]int64, len(natives))
	for _, r := range natives {
		rule, client := m.rules[r.kind], r.id
		switch pair := found[key(side, r)]; {
		case pair.side != "":
			client = pair.id
		case rule.Mode == Identity:
		case side == NewSide:
			client += rule.Offset
		default:
			m.highest[r.kind].Store(max(r.id, m.highest[r.kind].Load()))
			if r.id >= rule.Offset {
				return nil, beyond(side, r)
			}
		}
		if client > maxID {
			return nil, beyond(side, r)
		}
		clients[r] = client
	}
	return clients, nil
}

// settled finds native ids of a side. An id without a pair may be that of a copy which the side is just getting, so it waits until all copies
// that it finds under way have their pairs.
func (m *Map) settled(ctx context.Context, side Side, keys []state.IDKey) (map[state.IDKey]remembered, error) {
	unpaired := slices.DeleteFunc(slices.Clone(keys), func(key state.IDKey) bool {
		known, _ := m.memory.GetIfPresent(key)
		return known.side != "" || known.own
	})
	if m.o.Copying == nil || len(unpaired) == 0 {
		return m.find(ctx, keys)
	}
	before, err := m.o.Copying(ctx, side)
	if err == nil && len(before) > 0 {
		found, err := m.find(ctx, keys)
		if err != nil || !slices.ContainsFunc(unpaired, func(key state.IDKey) bool { return found[key].side == "" }) {
			return found, err
		}
	}
	patient, cancel := context.WithTimeout(ctx, copyWait)
	defer cancel()
	for err == nil && len(before) > 0 {
		select {
		case <-patient.Done():
			return nil, unavailable("the tracker has an object that may be a copy, whose id is not known yet", patient.Err())
		case <-time.After(copyPoll):
		}
		var now []int64
		now, err = m.o.Copying(ctx, side)
		before = slices.DeleteFunc(before, func(copy int64) bool { return !slices.Contains(now, copy) })
	}
	if err != nil {
		return nil, unavailable(storeAway, err)
	}
	for _, key := range unpaired {
		m.memory.Invalidate(key)
	}
	found, err := m.find(ctx, keys)
	for _, key := range unpaired {
		entry := found[key]
		if entry.own = entry.side == ""; err == nil {
			m.memory.Set(key, entry)
		}
	}
	return found, err
}

// ForCopies is the Map for what makes copies, and waits for none.
func (m *Map) ForCopies() *Map {
	other := *m
	other.o.Copying, other.missing = nil, &missing{} // no client was refused
	return &other
}

// find looks keys up in memory and those that are not there, all at once, in the store.
func (m *Map) find(ctx context.Context, keys []state.IDKey) (map[state.IDKey]remembered, error) {
	found, now := make(map[state.IDKey]remembered, len(keys)), time.Now()
	var missing []state.IDKey
	for _, key := range keys {
		if _, twice := found[key]; twice {
			continue
		}
		known, ok := m.memory.GetIfPresent(key)
		found[key] = known
		// What a client names may get its pair at any moment, which it must not miss.
		if !ok || known.side == "" && (key.Side == "" || now.After(known.until)) {
			missing = append(missing, key)
		}
	}
	for some := range slices.Chunk(missing, maxKeys) {
		pairs, err := m.o.Store.IDs(ctx, some)
		if err != nil {
			return nil, unavailable(storeAway, err)
		}
		for _, key := range some {
			pair := pairs[key]
			entry := remembered{side: Side(pair.Side), id: pair.Client, until: now.Add(absentFor), own: found[key].own}
			if key.Side == "" {
				entry.id = pair.Native
			}
			found[key] = entry
			m.memory.Set(key, entry)
		}
	}
	return found, nil
}
