package idmap

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
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

// Store keeps pairs of ids. *state.Store implements it.
type Store interface {
	// IDs returns the pairs that keys select, by both of their own keys.
	IDs(ctx context.Context, keys []state.IDKey) (map[state.IDKey]state.IDPair, error)
	// AddIDs adds pairs, all or none. The error is a *state.IDConflictError where one contradicts another one.
	AddIDs(ctx context.Context, pairs []state.IDPair) error
}

const (
	// maxRemembered bounds the ids in memory.
	maxRemembered = 1 << 18
	// absentFor is how long an id without a pair is remembered as such, and then how long a reply with it: other processes add pairs.
	absentFor = time.Second / 2
	// maxKeys bounds the keys of one query.
	maxKeys = 5000
)

// Options are what a Map needs. Store and Settings are required.
type Options struct {
	Store    Store
	Settings Settings
	// Split bounds what a reply may cost in memory while it is translated.
	Split jsonblob.SplitOptions
}

// Map translates between the ids and names that clients know and those of two trackers. It is safe for concurrent use.
type Map struct {
	store  Store
	rules  map[Kind]Rule
	names  names
	split  jsonblob.SplitOptions
	digest string
	memory *otter.Cache[state.IDKey, remembered]
}

// remembered is what the store has under a key: the side of the pair and its other id. Without a side it has nothing, which is known until a
// time.
type remembered struct {
	side  Side
	id    int64
	until time.Time
}

// New makes a Map. The settings must have no problems.
func New(options Options) *Map {
	m := &Map{
		store: options.Store, rules: map[Kind]Rule{}, names: newNames(options.Settings.Names), split: options.Split,
		memory: otter.Must(&otter.Options[state.IDKey, remembered]{MaximumSize: maxRemembered}),
	}
	for _, kind := range Kinds() {
		m.rules[kind] = options.Settings.rule(kind)
	}
	digest := sha256.Sum256(fmt.Append(nil, m.rules, options.Settings.Names)) // fmt sorts maps
	m.digest = fmt.Sprintf("%x", digest[:4])
	return m
}

// CheckOffset returns an error unless the offset of a kind is above the highest id that the old tracker has given out.
func (m *Map) CheckOffset(kind Kind, highest int64) error {
	if r := m.rules[kind]; r.Mode != Identity && highest >= r.Offset {
		return fmt.Errorf("the old tracker has %s %d, which is not below the offset %d: choose a higher offset", kind.words(), highest, r.Offset)
	}
	return nil
}

// Pair adds a pair: at one side the object that clients know by one id has another one. It must be there before a client is shown the
// object by that side. A pair that contradicts a kept one is a *state.IDConflictError. Others refuse what the rule of the kind excludes.
func (m *Map) Pair(ctx context.Context, kind Kind, client int64, side Side, native int64) error {
	pair := state.IDPair{Kind: string(kind), Client: client, Side: string(side), Native: native}
	if err := m.CheckPair(pair); err != nil {
		return err
	}
	if err := m.store.AddIDs(ctx, []state.IDPair{pair}); err != nil {
		return fmt.Errorf("pair ids: %w", err)
	}
	for _, key := range pair.Keys() {
		m.memory.Invalidate(key)
	}
	return nil
}

// CheckPair returns an error for a pair that the rule of its kind excludes: an object has one id at the tracker on which it was born, and in the
// mode identity at both.
func (m *Map) CheckPair(p state.IDPair) error {
	r, known := m.rules[Kind(p.Kind)]
	_, born := m.born(Side(p.Side), ref{Kind(p.Kind), p.Client})
	if !known || born || min(p.Client, p.Native) < 1 || max(p.Client, p.Native) > maxID {
		return fmt.Errorf("%s: with the mode %q and the offset %d, there is no such pair; kinds are %v, ids are from 1 to %d", p, r.Mode, r.Offset, Kinds(), maxID)
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
			return nil, unmapped(side, r)
		}
		if isCopy {
			natives[r] = pair.id
		}
	}
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
	found, err := m.find(ctx, keys)
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
		case r.id >= rule.Offset:
			return nil, beyond(side, r)
		}
		if client > maxID {
			return nil, beyond(side, r)
		}
		clients[r] = client
	}
	return clients, nil
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
		if found[key] = known; !ok || known.side == "" && now.After(known.until) {
			missing = append(missing, key)
		}
	}
	for some := range slices.Chunk(missing, maxKeys) {
		pairs, err := m.store.IDs(ctx, some)
		if err != nil {
			return nil, unavailable(err)
		}
		for _, key := range some {
			pair := pairs[key]
			entry := remembered{side: Side(pair.Side), id: pair.Client, until: now.Add(absentFor)}
			if key.Side == "" {
				entry.id = pair.Native
			}
			found[key] = entry
			m.memory.Set(key, entry)
		}
	}
	return found, nil
}
