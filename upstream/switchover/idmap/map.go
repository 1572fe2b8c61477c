package idmap

import (
	"context"
	"crypto/sha256"
	"fmt"
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
	// settles says that ids may have to wait for the pairs of copies.
	settles bool
}

// remembered is what the store has under a key: the side of the pair and its other id. Without a side it has nothing: the object is certainly no
// copy, and the store is asked again after a time.
type remembered struct {
	side  Side
	id    int64
	until time.Time
}

// New makes a Map. The settings must have no problems.
func New(options Options) *Map {
	m := &Map{
		o: options, rules: map[Kind]Rule{}, names: newNames(options.Settings.Names), highest: map[Kind]*atomic.Int64{}, missing: &missing{}, settles: true,
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

// key selects the pair of an id at a side or, with an empty side, of one that clients know. Ids that both trackers share have none.
func (m *Map) key(side Side, r ref) (key state.IDKey) {
	if m.rules[r.kind].Mode != Identity {
		key = state.IDKey{Kind: string(r.kind), Side: string(side), ID: r.id}
	}
	return key
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
func (m *Map) natives(ctx context.Context, side Side, clients []ref) ([]int64, error) {
	natives, keys := make([]int64, len(clients)), make([]state.IDKey, len(clients))
	for i, r := range clients {
		native, born := m.born(side, r)
		if natives[i], keys[i] = native, m.key(side, ref{r.kind, native}); !born {
			keys[i] = m.key("", r)
		}
	}
	found, err := m.find(ctx, side, keys, false)
	if err != nil {
		return nil, err
	}
	for i, r := range clients {
		// The pair of an object that was born there would be that of another object: clients know the copy by another id.
		_, born := m.born(side, r)
		if isPaired := found[i].side == side; isPaired == born {
			m.missing.add(side, r)
			return nil, unmapped(side, r)
		}
		if !born {
			natives[i] = found[i].id
		}
	}
	m.missing.served(clients)
	return natives, nil
}

// clients returns the ids by which clients know objects of one side. Those of the kinds made were made by the call that has shown them.
func (m *Map) clients(ctx context.Context, side Side, natives []ref, made ...Kind) ([]int64, error) {
	clients, keys := make([]int64, len(natives)), make([]state.IDKey, len(natives))
	for i, r := range natives {
		if keys[i] = m.key(side, r); m.settles && slices.Contains(made, r.kind) {
			m.memory.Set(keys[i], remembered{until: time.Now().Add(absentFor)})
		}
	}
	found, err := m.find(ctx, side, keys, m.settles)
	if err != nil {
		return nil, err
	}
	for i, r := range natives {
		rule := m.rules[r.kind]
		switch clients[i] = r.id; {
		case found[i].side != "":
			clients[i] = found[i].id
		case rule.Mode == Identity:
		case side == NewSide:
			clients[i] += rule.Offset
		default:
			m.highest[r.kind].Store(max(r.id, m.highest[r.kind].Load()))
			if r.id >= rule.Offset {
				return nil, beyond(side, r)
			}
		}
		if clients[i] > maxID {
			return nil, beyond(side, r)
		}
	}
	return clients, nil
}

// ForCopies is the Map for what makes copies, and waits for none.
func (m *Map) ForCopies() *Map {
	other := *m
	other.settles, other.missing = false, &missing{} // no client was refused
	return &other
}

// find looks keys up in memory and those that are not there, all at once, in the store. An id without a pair that a side has shown may be that of a
// copy which the side is just getting. To settle that, find waits until all copies that it finds under way have their pairs.
func (m *Map) find(ctx context.Context, side Side, keys []state.IDKey, settle bool) (found []remembered, err error) {
	found, now := make([]remembered, len(keys)), time.Now()
	var open []int
	var copying []int64
	unsettled := false
	for i, key := range keys {
		found[i], _ = m.memory.GetIfPresent(key)
		if key.Kind != "" && found[i].side == "" && now.After(found[i].until) {
			open = append(open, i)
			unsettled = unsettled || found[i].until.IsZero()
		}
	}
	if settle && unsettled && m.o.Copying != nil {
		copying, err = m.o.Copying(ctx, side)
	}
	for len(open) > 0 && err == nil {
		open, err = m.ask(ctx, keys, found, open)
		if len(open) == 0 || len(copying) == 0 {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(copyPoll):
		}
		if ctx.Err() != nil || time.Since(now) > copyWait {
			return nil, unavailable("the tracker has an object that may be a copy, whose id is not known yet", ctx.Err())
		}
		var still []int64
		still, err = m.o.Copying(ctx, side)
		copying = slices.DeleteFunc(copying, func(copy int64) bool { return !slices.Contains(still, copy) })
	}
	if err != nil {
		return nil, unavailable("the store of Portico does not respond", err)
	}
	for _, i := range open {
		if settle || !found[i].until.IsZero() {
			m.memory.Set(keys[i], remembered{until: time.Now().Add(absentFor)})
		}
	}
	return found, nil
}

// ask asks the store for the open ones of keys, notes what it has, and returns those of which it has nothing.
func (m *Map) ask(ctx context.Context, keys []state.IDKey, found []remembered, open []int) (absent []int, err error) {
	for some := range slices.Chunk(open, maxKeys) {
		asked := make([]state.IDKey, len(some))
		for n, i := range some {
			asked[n] = keys[i]
		}
		pairs, err := m.o.Store.IDs(ctx, asked)
		if err != nil {
			return nil, err
		}
		for _, i := range some {
			pair, ok := pairs[keys[i]]
			if !ok {
				absent = append(absent, i)
				continue
			}
			if found[i] = (remembered{side: Side(pair.Side), id: pair.Client}); keys[i].Side == "" {
				found[i].id = pair.Native
			}
			m.memory.Set(keys[i], found[i])
		}
	}
	return absent, nil
}
