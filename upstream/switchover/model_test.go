package switchover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// book is a tracker that keeps what is attached: to which bug, and by which write.
type book struct {
	upstream.Tracker
	mu   sync.Mutex
	next *atomic.Int64
	// notes are the last writes of each attachment.
	notes map[int64]string
	bugs  map[int64]int64
	// wrote are all writes ever carried out.
	wrote []string
}

func newBook(next *atomic.Int64) *book {
	return &book{next: next, notes: map[int64]string{}, bugs: map[int64]int64{}}
}

func bugOf(ref string) int64 {
	o := bugNamed(ref)
	if o.alias != "" {
		id, _ := strconv.ParseInt(o.alias[len("bug-"):], 10, 64)
		return id
	}
	return o.id
}

// Do implements upstream.Tracker.
func (b *book) Do(_ context.Context, _ upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	switch {
	case call.CreateAttachment != nil:
		return b.create(call.CreateAttachment)
	case call.UpdateAttachments != nil:
		return b.update(call.UpdateAttachments)
	default:
		return b.read(call.Attachments)
	}
}

func (b *book) create(r *mapping.AttachmentCreate) (mapping.Reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrote = append(b.wrote, *r.Summary)
	var ids []int64
	for _, ref := range r.Bugs {
		id := b.next.Add(1)
		b.bugs[id], b.notes[id] = bugOf(ref), *r.Summary
		ids = append(ids, id)
	}
	text, err := json.Marshal(map[string]any{"ids": ids})
	return mapping.Reply{Document: mapping.NewDocument(text)}, err
}

func (b *book) update(r *mapping.AttachmentUpdate) (mapping.Reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrote = append(b.wrote, *r.Summary)
	for _, id := range r.IDs {
		b.notes[id] = *r.Summary
	}
	return mapping.Reply{Document: mapping.NewDocument([]byte(`{"attachments":[]}`))}, nil
}

type shown struct {
	Bugs        map[string]map[string]string `json:"bugs"`
	Attachments map[string]string            `json:"attachments"`
}

func (b *book) read(r *mapping.AttachmentsRequest) (mapping.Reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := shown{Bugs: map[string]map[string]string{}, Attachments: map[string]string{}}
	for _, ref := range r.Bugs {
		list := map[string]string{}
		for id, bug := range b.bugs {
			if bug == bugOf(ref) {
				list[fmt.Sprint(id)] = b.notes[id]
			}
		}
		all.Bugs[fmt.Sprint(bugOf(ref))] = list
	}
	for _, ref := range r.Attachments {
		all.Attachments[ref] = b.notes[objectsOf([]string{ref}, attachmentNamed)[0].id]
	}
	text, err := json.Marshal(all)
	return mapping.Reply{Document: mapping.NewDocument(text)}, err
}

// Bug and AttachmentBug make it a Locator, over bugs 1 to 4 in products P1 to P4.
func (b *book) Bug(_ context.Context, _ upstream.Caller, ref string) (mapping.Place, error) {
	id := bugOf(ref)
	return mapping.Place{Bug: id, Product: fmt.Sprint("P", id), Component: "C"}, nil
}

func (b *book) AttachmentBug(_ context.Context, _ upstream.Caller, id int64) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bugs[id], nil
}

func (b *book) FlagTypePlaces(context.Context, upstream.Caller, []int64, []string) ([]string, []mapping.Scopes, error) {
	return nil, nil, nil
}

// model is what a test knows: of each caller and attachment the last write.
type model struct {
	s        *Switchover
	clock    *clock
	old, new *book
	reload   func(Table)
	made     []string
	// all are the attachments there are, last what a caller wrote last, and when.
	all  map[int64]int64
	last map[string]map[int64]noted
	// lastIn is when a caller wrote last in a bug.
	lastIn map[string]time.Time
}

type noted struct {
	text string
	at   time.Time
}

func anyTable(t *rapid.T) Table {
	phases := func(name string) (reads, writes Phase) {
		pair := rapid.SampledFrom([][2]Phase{
			{PhaseOld, PhaseOld}, {PhaseNew, PhaseOld}, {PhaseNew, PhaseNew}, {PhaseOldCompare, PhaseOld}, {PhaseNewCompare, PhaseNew},
		}).Draw(t, name)
		return pair[0], pair[1]
	}
	var table Table
	for i := range rapid.IntRange(0, 3).Draw(t, "rules") {
		rule := Rule{Name: fmt.Sprint("r", i)}
		rule.Reads, rule.Writes = phases("phases")
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			rule.Products = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"P1", "P2", "P3"}), 1, 2, rapid.ID).Draw(t, "products")
		case 1:
			rule.Percent = new(rapid.SampledFrom([]float64{10, 50, 90}).Draw(t, "percent"))
		case 2:
			rule.Callers = []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "caller")}
		case 3:
			from := rapid.Int64Range(1, 4).Draw(t, "from")
			rule.Bugs = []Range{{from, from + rapid.Int64Range(0, 1).Draw(t, "more")}}
		default:
			rule.Attachments = []Range{{rapid.Int64Range(1, 20).Draw(t, "first"), 0}}
		}
		table.Rules = append(table.Rules, rule)
	}
	rest := Rule{Name: "rest"}
	rest.Reads, rest.Writes = phases("phases of the rest")
	table.Rules = append(table.Rules, rest)
	return table
}

func openModel(t *testing.T, rt *rapid.T) *model {
	next := new(atomic.Int64)
	m := &model{old: newBook(next), new: newBook(next), clock: &clock{at: time.Unix(1_800_000_000, 0)}, all: map[int64]int64{}, last: map[string]map[int64]noted{}, lastIn: map[string]time.Time{}}
	settings := settingsOver(m.old, m.new, m.old, m.new, always(PhaseOld, PhaseOld))
	settings.CallerNames = []string{"a", "b"}
	settings.Caller = func(c upstream.Caller) string { return c.Credentials.APIKey }
	m.s = openUntilEnd(t, Options{Old: "old", New: "new", Store: openStore(t, ":memory:"), Settings: settings}, m.clock.now, time.Hour)
	m.reload = func(table Table) {
		settings.Table = table
		err := m.s.Set(t.Context(), settings)
		if _, invalid := err.(*InvalidError); err != nil && !invalid {
			rt.Fatal(err)
		}
	}
	return m
}

func (m *model) close() {
	m.s.Close()
}

func (m *model) caller(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "caller")
}

func (m *model) bug(t *rapid.T) string {
	id := rapid.IntRange(1, 4).Draw(t, "bug")
	if rapid.Bool().Draw(t, "by alias") {
		return fmt.Sprint("Bug-", id)
	}
	return fmt.Sprint(id)
}

// wrote notes a write of some attachments, unless it was refused.
func (m *model) wrote(t *rapid.T, who, what string, ids []int64, err error) {
	if err != nil {
		if said, ok := err.(*mapping.Error); !ok || said.Reason != mapping.ReasonSwitchover {
			t.Fatal(err)
		}
		return
	}
	m.made = append(m.made, what)
	if m.last[who] == nil {
		m.last[who] = map[int64]noted{}
	}
	for _, id := range ids {
		m.last[who][id] = noted{what, m.clock.now()}
		m.lastIn[fmt.Sprint(who, m.all[id])] = m.clock.now()
		for other, seen := range m.last {
			if other != who {
				delete(seen, id) // whose write is the last one is not what this is about
			}
		}
	}
}

func (m *model) create(t *rapid.T) {
	who, what := m.caller(t), fmt.Sprint("write ", len(m.made), " ", m.clock.now().UnixNano())
	bugs := rapid.SliceOfN(rapid.Custom(m.bug), 1, 2).Draw(t, "bugs")
	reply, err := m.s.Do(t.Context(), caller(who), upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: bugs, Summary: &what}})
	var ids []int64
	if err == nil {
		call := upstream.Call{CreateAttachment: &mapping.AttachmentCreate{}}
		for i, o := range m.s.rules.Load().newAttachments(call, upstream.Response{Document: reply.Document}) {
			ids = append(ids, o.id)
			m.all[o.id] = bugOf(bugs[i])
		}
	}
	m.wrote(t, who, what, ids, err)
}

func (m *model) update(t *rapid.T) {
	if len(m.all) == 0 {
		return
	}
	who, what := m.caller(t), fmt.Sprint("change ", len(m.made), " ", m.clock.now().UnixNano())
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(m.all))), 1, 2, rapid.ID).Draw(t, "ids")
	// The trackers share what there is, so that any of them can be changed in both.
	m.share()
	_, err := m.s.Do(t.Context(), caller(who), upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: ids, Summary: &what}})
	m.wrote(t, who, what, ids, err)
}

// share has both trackers know of all attachments, but not of what was written.
func (m *model) share() {
	for id, bug := range m.all {
		m.old.bugs[id], m.new.bugs[id] = bug, bug
	}
}

// check reads as every caller what it wrote during the last minute.
func (m *model) check(t *rapid.T) {
	for who, writes := range m.last {
		for id, one := range writes {
			if m.clock.now().Sub(one.at) >= time.Minute {
				continue
			}
			text := fmt.Sprint(id)
			refs := []string{fmt.Sprint(m.all[id]), fmt.Sprint("bug-", m.all[id]), fmt.Sprint(m.all[id]%4 + 1)}
			reply, err := m.s.Do(t.Context(), caller(who), upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: []string{text}, Bugs: refs[2:]}})
			if got := m.shown(t, reply, err).Attachments[text]; got != one.text {
				t.Fatalf("%s reads %q of attachment %d, and wrote %q", who, got, id, one.text)
			}
			m.checkBug(t, who, id, one.text, refs[:2])
		}
	}
}

// checkBug reads the bug of an attachment that was the caller's last write there.
func (m *model) checkBug(t *rapid.T, who string, id int64, want string, refs []string) {
	if m.lastIn[fmt.Sprint(who, m.all[id])].After(m.last[who][id].at) {
		return
	}
	for _, ref := range refs {
		reply, err := m.s.Do(t.Context(), caller(who), upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{ref}}})
		if got := m.shown(t, reply, err).Bugs[fmt.Sprint(m.all[id])][fmt.Sprint(id)]; got != want {
			t.Fatalf("%s reads %q of attachment %d in bug %s, and wrote %q", who, got, id, ref, want)
		}
	}
}

func (m *model) shown(t *rapid.T, reply mapping.Reply, err error) (all shown) {
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Close() }()
	text, err := reply.Load(jsonblob.SplitOptions{})
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNobodyMissesAnOwnWriteAndEachGoesToOneTracker(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := openModel(t, rt)
		defer m.close()
		rt.Repeat(map[string]func(*rapid.T){
			"create": m.create,
			"update": m.update,
			"change": func(t *rapid.T) {
				err := m.s.Change(t.Context(), m.s.Status().Version, anyTable(t), nil, "a model", "a test")
				if _, invalid := err.(*InvalidError); err != nil && !invalid {
					t.Fatal(err)
				}
			},
			"reload": func(t *rapid.T) { m.reload(anyTable(t)) },
			"time": func(t *rapid.T) {
				m.clock.pass(time.Duration(rapid.IntRange(1, 25).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				m.clock.pass(time.Millisecond)
				m.check(t)
				both := slices.Sorted(slices.Values(slices.Concat(m.old.wrote, m.new.wrote)))
				if want := slices.Sorted(slices.Values(m.made)); !slices.Equal(both, want) {
					t.Fatalf("the trackers got %q, and %q were made", both, want)
				}
			},
		})
	})
}
