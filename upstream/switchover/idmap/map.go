package idmap

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	// refreshTime bounds a question about ids that are known to have had no pair, and awayFor is added to absentFor when it fails.
	refreshTime = time.Second
	awayFor     = 5 * time.Second
	// copyWait bounds how long a reply waits for copies under way, about which it asks every copyPoll.
	copyWait = 2 * time.Second
	copyPoll = 20 * time.Millisecond
)

// Options are what a Map needs. Store and Settings are required.
type Options struct {
	// Old and New name the two trackers, of which only one may be in use.
	Old, New string
	Store    *state.Store
	Settings Settings
	// Split bounds what a reply may cost in memory while it is translated.
	Split jsonblob.SplitOptions
	// Copying numbers the copies that a tracker is getting now, whose ids are not known yet. Nil where nothing is copied.
	Copying func(ctx context.Context, tracker string) ([]int64, error)
}

// Map translates between the ids and names that clients know and those of two trackers. A nil Map translates nothing. It is safe for concurrent use.
type Map struct {
	o      Options
	rules  map[Kind]Rule
	names  names
	digest string
	memory *otter.Cache[state.IDKey, remembered]
	// scanners are used again, since each has buffers for a whole reply.
	scanners *sync.Pool
	// near is a problem that IDProblem returns.
	near    *atomic.Pointer[string]
	missing *missing
	// settles says that ids may have to wait for the pairs of copies.
	settles bool
}

// remembered is the pair that the store has under a key. Without a side it has none: the object is certainly no copy, and the store is asked again
// after a time.
type remembered struct {
	state.IDPair
	until time.Time
}

// New makes a Map. The settings must have no problems.
func New(options Options) *Map {
	m := &Map{
		o: options, rules: map[Kind]Rule{}, names: newNames(options.Settings.Names.tables()), near: &atomic.Pointer[string]{}, missing: &missing{}, settles: true, scanners: &sync.Pool{},
		memory: otter.Must(&otter.Options[state.IDKey, remembered]{MaximumSize: maxRemembered}),
	}
	for _, kind := range Kinds() {
		m.rules[kind] = options.Settings.rule(kind)
	}
	m.digest = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, m.rules, options.Settings.Names)))[:8] // fmt sorts maps
	return m
}

// sideOf returns the side of a tracker.
func (m *Map) sideOf(tracker string) Side {
	if tracker == m.o.New {
		return NewSide
	}
	return OldSide
}

// Pair implements journal.Pairs. A tracker shows a copy as if that were an object of its own. The error is that of CheckPair.
func (m *Map) Pair(kind string, client int64, tracker string, shown int64) (state.IDPair, error) {
	side := m.sideOf(tracker)
	native, born := m.born(side, ref{Kind(kind), shown})
	if !born {
		native = 0 // which no object has
	}
	pair := state.IDPair{Kind: kind, Client: client, Side: string(side), Native: native}
	return pair, m.CheckPair(pair)
}

// Born implements journal.Pairs.
func (m *Map) Born(kind, tracker string, shown int64) bool {
	_, born := m.born(m.sideOf(tracker), ref{Kind(kind), shown})
	return born
}

// Added implements journal.Pairs. It forgets what was known before the store got pairs.
func (m *Map) Added(pairs []state.IDPair) {
	for _, pair := range pairs {
		for _, key := range pair.Keys() {
			m.memory.Invalidate(key)
		}
	}
}

// IDProblem returns a problem if the settings do not fit where both trackers get writes, or if the old tracker has shown an id that is too near to an
// offset: one that is not below it is no longer shown to clients.
func (m *Map) IDProblem(bothWrite bool) string {
	if found := m.o.Settings.Problems(bothWrite); len(found) > 0 {
		return "switchover." + found[0].Key + ": " + found[0].Message
	}
	if near := m.near.Load(); near != nil {
		return *near
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

// absent is the native id of what a side does not have.
const absent = -1

// natives returns the ids at one side of objects that clients name. One that the side does not have under any known id is absent, and the error is
// that of unmapped. After another error there are no ids.
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
		switch isPaired := found[i].Side == string(side); {
		case isPaired == born:
			m.missing.add(side, r)
			natives[i], err = absent, unmapped(side, r)
		case isPaired:
			natives[i] = found[i].Native
		}
	}
	if err == nil {
		m.missing.served(clients)
	}
	return natives, err
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
		rule, end := m.rules[r.kind], int64(maxID+1)
		switch clients[i] = r.id; {
		case found[i].Side != "":
			clients[i] = found[i].Client
		case rule.Mode == Identity:
		case side == NewSide:
			clients[i] += rule.Offset
		default:
			if end = rule.Offset; r.id >= end*9/10 {
				m.near.Store(new(fmt.Sprintf("the old tracker has %s %d, and the offset is %d", r.kind.words(), r.id, end)))
			}
		}
		if clients[i] >= end {
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

// find looks keys up in memory and those that are not there, all at once, in the store. To settle what has no pair, it waits for copies under way.
func (m *Map) find(ctx context.Context, side Side, keys []state.IDKey, settle bool) ([]remembered, error) {
	found, now := make([]remembered, len(keys)), time.Now()
	isOpen := func(i int) bool { return keys[i].Kind != "" && found[i].Side == "" && now.After(found[i].until) }
	var open []state.IDKey
	unsettled := false
	for i, key := range keys {
		if key.Kind != "" {
			found[i], _ = m.memory.GetIfPresent(key)
		}
		if isOpen(i) {
			open, unsettled = append(open, key), unsettled || found[i].until.IsZero()
		}
	}
	if len(open) == 0 {
		return found, nil
	}
	asking, cancel := ctx, context.CancelFunc(func() {})
	if !unsettled {
		asking, cancel = context.WithTimeout(ctx, refreshTime)
	}
	defer cancel()
	pairs, err := m.ask(asking, side, open, settle && unsettled && m.o.Copying != nil)
	if err != nil {
		if unsettled || ctx.Err() != nil { // a request that has ended says nothing of the store
			return nil, err
		}
		now = time.Now().Add(awayFor) // reads go on without the store: none of these was a copy, and none becomes one
	}
	for i, key := range keys {
		if pair, paired := pairs[key]; isOpen(i) && (paired || settle || !found[i].until.IsZero()) {
			found[i] = remembered{pair, now.Add(absentFor)}
			m.memory.Set(key, found[i])
		}
	}
	return found, nil
}

// ask asks the store for pairs. An id without one may be that of a copy which a side is just getting, so ask may wait until all copies that it finds
// under way have their pairs.
func (m *Map) ask(ctx context.Context, side Side, keys []state.IDKey, wait bool) (map[state.IDKey]state.IDPair, error) {
	const away = "the store of Portico does not respond"
	var before []int64
	for begun, all := time.Now(), map[state.IDKey]state.IDPair{}; ; time.Sleep(copyPoll) {
		if wait {
			copying, err := m.o.Copying(ctx, map[Side]string{OldSide: m.o.Old, NewSide: m.o.New}[side])
			if err != nil {
				return nil, unavailable(away, err)
			}
			if before == nil {
				before = copying
			}
			before = slices.DeleteFunc(before, func(copy int64) bool { return !slices.Contains(copying, copy) })
		}
		pairs, err := m.o.Store.IDs(ctx, keys)
		if err != nil {
			return nil, unavailable(away, err)
		}
		maps.Copy(all, pairs)
		keys = slices.DeleteFunc(keys, func(key state.IDKey) bool { return all[key].Side != "" })
		switch {
		case len(before) == 0, len(keys) == 0:
			return all, nil
		case time.Since(begun) > copyWait:
			return nil, unavailable("the tracker has an object that may be a copy, whose id is not known yet", nil)
		}
	}
}
