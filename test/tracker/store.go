package tracker

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// table holds the rows of one kind. Rows are never changed in place: a transaction puts a changed copy.
// Identifiers are counted here and not in the transaction, so that a rolled-back one leaves a gap.
type table[T any] struct {
	rows map[int]*T
	last int
}

func (t *table[T]) add(id int, row *T) {
	if t.rows == nil {
		t.rows = map[int]*T{}
	}
	t.rows[id] = row
	t.last = max(t.last, id)
}

// view is a table as one transaction sees it.
type view[T any] struct {
	base *table[T]
	over map[int]*T
}

func (v *view[T]) get(id int) *T {
	if row, ok := v.over[id]; ok {
		return row
	}
	return v.base.rows[id]
}

// edit gives a copy of the row that the transaction may change.
func (v *view[T]) edit(id int) *T {
	if row, ok := v.over[id]; ok {
		return row
	}
	row := *v.base.rows[id]
	v.put(id, &row)
	return &row
}

func (v *view[T]) put(id int, row *T) {
	if v.over == nil {
		v.over = map[int]*T{}
	}
	v.over[id] = row
}

func (v *view[T]) next() int {
	v.base.last++
	return v.base.last
}

// all lists the rows in the order of their identifiers.
func (v *view[T]) all() []*T {
	rows := map[int]*T{}
	maps.Copy(rows, v.base.rows)
	maps.Copy(rows, v.over)
	list := make([]*T, 0, len(rows))
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, rows[id])
	}
	return list
}

func (v *view[T]) commit() {
	for id, row := range v.over {
		v.base.add(id, row)
	}
}

// data is everything that the tracker stores.
type data struct {
	users       table[user]
	groups      table[group]
	products    table[product]
	components  table[component]
	flagTypes   table[flagType]
	bugs        table[bug]
	attachments table[attachment]
	lastFlag    int
	lastComment int
	tokens      map[string]int
	firstToken  string
	// offset is what the ids of the seed are higher by than those in its source.
	offset int
}

// snapshot copies the tables that writes change, but not their rows, which never change.
func (d *data) snapshot() *data {
	c := *d
	c.flagTypes.rows = maps.Clone(d.flagTypes.rows)
	c.bugs.rows = maps.Clone(d.bugs.rows)
	c.attachments.rows = maps.Clone(d.attachments.rows)
	return &c
}

// tx is one transaction, or one read.
type tx struct {
	data        *data
	users       view[user]
	groups      view[group]
	products    view[product]
	components  view[component]
	flagTypes   view[flagType]
	bugs        view[bug]
	attachments view[attachment]
	now         time.Time
}

func newTx(d *data, now time.Time) *tx {
	return &tx{data: d, now: now.UTC().Truncate(time.Second),
		users: view[user]{base: &d.users}, groups: view[group]{base: &d.groups},
		products: view[product]{base: &d.products}, components: view[component]{base: &d.components},
		flagTypes: view[flagType]{base: &d.flagTypes}, bugs: view[bug]{base: &d.bugs},
		attachments: view[attachment]{base: &d.attachments}}
}

func (t *tx) commit() {
	t.flagTypes.commit()
	t.bugs.commit()
	t.attachments.commit()
}

// store keeps the data under one lock: reads run together, a write runs alone.
type store struct {
	mu   sync.RWMutex
	data *data
	now  func() time.Time
	// keeps tells that some reader lags behind, so that the past has to be kept.
	keeps bool
	past  []version
}

// sight is how a reader sees the data: as it was lag ago, but not older than since.
type sight struct {
	lag   time.Duration
	since time.Time
}

// version is the data as it was until a moment; only kept when some reads lag behind.
type version struct {
	until time.Time
	data  *data
}

// read runs a function that changes nothing.
func (s *store) read(from sight, do func(*tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return do(newTx(s.seen(from), s.now()))
}

// seen is the data that a read sees.
func (s *store) seen(from sight) *data {
	if from.lag == 0 {
		return s.data
	}
	horizon := time.Now().Add(-from.lag)
	if from.since.After(horizon) {
		horizon = from.since
	}
	for _, v := range s.past {
		if v.until.After(horizon) {
			return v.data
		}
	}
	return s.data
}

// remember keeps the past from now on.
func (s *store) remember() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeps = true
}

// write runs one transaction; an error rolls it back.
func (s *store) write(do func(*tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := newTx(s.data, s.now())
	if err := do(t); err != nil {
		return err
	}
	if s.keeps {
		s.keep()
	}
	t.commit()
	return nil
}

func (s *store) keep() {
	now := time.Now()
	s.past = slices.DeleteFunc(s.past, func(v version) bool { return now.Sub(v.until) > 2*lagTime })
	s.past = append(s.past, version{until: now, data: s.data.snapshot()})
}

// replace puts other data in place of all.
func (s *store) replace(d *data) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data, s.past = d, nil
}
