package switchover

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"portico/mapping"
	"portico/test/process"
	"portico/upstream"
)

// split is a switchover in which P1 and attachments from 15 on have moved.
func split(t *testing.T) *bench {
	return openBench(t, moved(Rule{Bugs: []Range{{1, 1}, {3, 3}}}), always(PhaseOld, PhaseOld))
}

func TestReadsOfTwoTrackersAreMerged(t *testing.T) {
	b := split(t)
	reply, err := b.Do(t.Context(), caller("k"), upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{
		Bugs: []string{"4", "1", "2", "3"}, Attachments: []string{"31", "21"}, Include: []string{"id"}, IfNoneMatch: "tag",
	}})
	want := `{"bugs":{"4":[{"by":"old"}],"2":[{"by":"old"}],"1":[{"by":"new"}],"3":[{"by":"new"}]},` +
		`"attachments":{"21":{"by":"old"},"31":{"by":"new"}}}`
	if got := process.Text(t, reply.Document, err); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, tracker := range []*fake{b.old, b.new} {
		for _, call := range tracker.taken() {
			if got := call.Attachments; !slices.Equal(got.Include, []string{"id"}) || got.IfNoneMatch != "" {
				t.Errorf("the %s tracker was asked %+v", tracker.name, got)
			}
		}
	}
	if status := b.Status(); status.Split != 1 {
		t.Errorf("%d reads were split", status.Split)
	}
}

func TestPartsAreAskedByAnOperationThatFits(t *testing.T) {
	b := split(t)
	reply, err := b.Do(t.Context(), caller("k"), upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: []string{"11"}, Bugs: []string{"2"}}})
	if got := process.Text(t, reply.Document, err); got != `{"bugs":{"2":[{"by":"old"}]},"attachments":{"11":{"by":"new"}}}` {
		t.Errorf("got %s", got)
	}
	if calls := b.old.taken(); len(calls) != 1 || calls[0].Operation != mapping.OpBugAttachments {
		t.Errorf("the old tracker was asked %+v", calls)
	}
	if calls := b.new.taken(); len(calls) != 1 || calls[0].Operation != mapping.OpAttachment {
		t.Errorf("the new tracker was asked %+v", calls)
	}
}

func TestOnePartThatFailsFailsAll(t *testing.T) {
	first, second := &mapping.Error{Code: 1, Status: 400}, &mapping.Error{Code: 2, Status: 400}
	for _, c := range []struct{ old, new, want error }{{first, nil, first}, {nil, second, second}, {first, second, first}} {
		b := split(t)
		b.old.failing(c.old)
		b.new.failing(c.new)
		reply, err := b.Do(t.Context(), caller("k"), upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"1", "2"}}})
		if err != c.want || reply.Document != nil {
			t.Errorf("got %v, want %v, that of the old tracker first", err, c.want)
		}
	}
}

// garbled is a tracker whose replies are no JSON.
type garbled struct{ upstream.Tracker }

func (garbled) Do(context.Context, upstream.Caller, upstream.Call) (mapping.Reply, error) {
	return mapping.Reply{Document: mapping.NewDocument([]byte("{"))}, nil
}

func TestRepliesThatCannotBeMerged(t *testing.T) {
	b := split(t)
	b.set(t, func(s *Settings) { s.Trackers["new"] = garbled{b.new} })
	_, err := b.Do(t.Context(), caller("k"), upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"1", "2"}}})
	if _, ok := errors.AsType[*mapping.StreamError](err); !ok {
		t.Errorf("got %v, want a failure of the tracker's side", err)
	}
}

func TestWritesToTwoTrackersAreRefused(t *testing.T) {
	b := split(t)
	for _, c := range []struct {
		call  upstream.Call
		names []string
	}{
		{attachTo("2", "1", "bug-3"), []string{"old: bug 2", `new: bug 1, bug "bug-3"`}},
		{changing(31, 41), []string{"old: attachment 41", "new: attachment 31"}},
	} {
		answer := c.call.Make(t.Context(), b.Switchover, caller("k"))
		wantRefused(t, answer.Err, c.names...)
	}
	if len(b.old.taken())+len(b.new.taken()) > 0 {
		t.Error("a refused write was sent")
	}
	if status := b.Status(); status.Refused != 2 {
		t.Errorf("%d writes were refused", status.Refused)
	}
	for want, call := range map[string]upstream.Call{"new": attachTo("1", "3"), "old": attachTo("2", "4")} {
		b.wantBy(t, "k", call, want, "")
	}
}

func TestAWriteToAnUnknownPlace(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	refused := changing(771).Make(t.Context(), b.Switchover, caller("k"))
	wantRefused(t, refused.Err, "attachment 771")
	for bug, at := range map[string]*atlas{"77": b.atlas, "98": b.atlas, "99": b.beyond} {
		at.hides = bug // which the other tracker does not have, or hides too
		hidden := attachTo(bug).Make(t.Context(), b.Switchover, caller("k"))
		if said, ok := hidden.Err.(*mapping.Error); !ok || said.Code != 102 {
			t.Errorf("the hidden bug %s: got %v, want what the tracker says of it", bug, hidden.Err)
		}
		at.hides = ""
	}
	if len(b.old.taken())+len(b.new.taken()) > 0 {
		t.Error("a write went somewhere")
	}
	for _, call := range []upstream.Call{attachTo("99"), attachTo("none"), changing(5)} {
		b.wantBy(t, "k", call, "old", "of what does not exist")
	}
	b.wantBy(t, "k", attachTo("99", "1", "none"), "new", "what does not exist, along with bug 1")
}

func TestFlagTypeWrites(t *testing.T) {
	in := func(products ...string) *mapping.Scopes {
		scopes := mapping.Scopes{}
		for _, product := range products {
			scopes = append(scopes, mapping.Scope{Product: product})
		}
		return &scopes
	}
	single := &mapping.Scopes{{Product: "P1", Components: []string{"C"}}}
	other := &mapping.Scopes{{Product: "P1", Components: []string{"D"}}}
	narrowed := changingTypes(1)
	narrowed.UpdateFlagTypes.Inclusions = in("P2")
	product := moved(Rule{Products: []string{"P1"}})
	component := moved(Rule{Products: []string{"P1"}, Components: []string{"C"}})
	for _, c := range []struct {
		name string
		rule Rule
		call upstream.Call
		want string // empty for refused
	}{
		{"create in the moved product", product, makingType(in("p1")), "new"},
		{"create elsewhere", product, makingType(in("P2", "P3")), "old"},
		{"create in both", product, makingType(in("P1", "P2")), ""},
		{"create everywhere", product, makingType(nil), ""},
		{"create nowhere", product, makingType(in()), "old"},
		{"create in a component of it", product, makingType(single), "new"},
		{"create in the moved component", component, makingType(single), "new"},
		{"create in another component", component, makingType(other), "old"},
		{"create in the product of the moved component", component, makingType(in("P1")), ""},
		{"update in the moved product", product, changingTypes(1), "new"},
		{"update elsewhere", product, changingTypes(2, 7), "old"},
		{"update in both", product, changingTypes(3), ""},
		{"update of one everywhere", product, changingTypes(4), ""},
		{"update of two", product, changingTypes(1, 2), ""},
		{"update of one not seen", product, changingTypes(1, 99), ""},
		{"update in the moved component", component, changingTypes(5), "new"},
		{"update in another component", component, changingTypes(6), "old"},
		{"update of the product of the component", component, changingTypes(1), ""},
		{"update that moves the type", product, narrowed, ""},
		{"update beside a product not seen", moved(Rule{Products: []string{"Secret"}}), changingTypes(1), ""},
		{"update in a product beside one not seen", moved(Rule{Products: []string{"P1", "Secret"}}), changingTypes(1), "new"},
		{"every caller's", moved(Rule{Callers: []string{"ci"}}), changingTypes(4), "new"},
		{"by operation", moved(Rule{Operations: []mapping.Operation{mapping.OpUpdateFlagTypes}}), changingTypes(99), "new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openBench(t, c.rule, restBeside(c.rule))
			made, err := b.explain(t.Context(), caller("key-ci"), c.call)
			if c.want == "" {
				wantRefused(t, err)
			} else if err != nil || made.Tracker != c.want {
				t.Errorf("got %+v (%v), want %s", made, err, c.want)
			}
		})
	}
}

// shadow remembers what it was told, and gives a document of its own.
type shadow struct {
	mu   sync.Mutex
	told []upstream.Sides
	last upstream.Response
}

func (s *shadow) Wrote(upstream.Call) {}

func (s *shadow) Answered(
	_ context.Context, _ upstream.Caller, call upstream.Call, sides upstream.Sides, answer upstream.Response,
) *mapping.Document {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told, s.last = append(s.told, sides), answer
	if call.Operation == mapping.OpFlagTypes && answer.Document != nil {
		return mapping.NewDocument([]byte(`"seen"`))
	}
	return answer.Document
}

func (s *shadow) taken() []upstream.Sides {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = nil
	return told
}

func TestTheShadowIsToldInPhasesThatCompare(t *testing.T) {
	seen := &shadow{}
	b := openBench(t, always(PhaseOld, PhaseOld))
	oldFirst, newFirst := upstream.Sides{Serving: "old", Compared: "new"}, upstream.Sides{Serving: "new", Compared: "old"}
	for phase, want := range map[Phase][]upstream.Sides{PhaseOld: nil, PhaseOldCompare: {oldFirst}, PhaseNewCompare: {newFirst}, PhaseNew: nil} {
		b.set(t, func(s *Settings) { s.Table, s.Shadow, s.Follow = Table{Rules: []Rule{always(phase, phase)}}, seen, 0 })
		for _, call := range []upstream.Call{typesOf("P1", ""), ofBugs("1"), ofAttachments("11"), attachTo("1"), changing(11), makingType(nil), changingTypes(1)} {
			b.do(t, "k", call)
			if got := seen.taken(); !slices.Equal(got, want) {
				t.Errorf("%s in phase %s: told %v, want %v", call.Operation, phase, got, want)
			}
		}
	}
	b.configure(t, always(PhaseOldCompare, PhaseOld))
	reply, err := b.Do(t.Context(), caller("k"), upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}})
	if got := process.Text(t, reply.Document, err); got != `"seen"` || reply.Cache == nil || !reply.Cache.Hit || !seen.last.FromCache {
		t.Errorf("got %s with %+v, want the shadow's document and the cache's word", got, reply.Cache)
	}
	b.old.failing(errDown)
	if _, err := b.Do(t.Context(), caller("k"), upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}}); err != errDown || seen.last.Err != errDown {
		t.Errorf("the error %v was shown as %v", err, seen.last.Err)
	}
}

func TestWhatOneTrackerDoesNotKnowTheOtherMay(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	b.beyond.extra = map[string]mapping.Place{"50": {Bug: 50, Product: "P1", Component: "C"}}
	b.beyond.types[2] = mapping.Scopes{{Product: "P1"}}
	for _, call := range []upstream.Call{ofBugs("50"), attachTo("50")} {
		b.wantBy(t, "k", call, "new", "")
	}
	// A flag type that each tracker has elsewhere belongs to neither alone.
	wantRefused(t, changingTypes(2).Make(t.Context(), b.Switchover, caller("k")).Err)
}

// The path's bug wins over ids that do not name it, whether it is written as a number or as an alias: what loses is not
// written, so it is no reason to refuse.
func TestIDsThatLoseAgainstThePathDivideNothing(t *testing.T) {
	b := openBench(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	attach := func(path string, ids ...string) upstream.Call {
		call := attachTo(ids...)
		call.CreateAttachment.PathBug = path
		return call
	}
	for want, call := range map[string]upstream.Call{
		"new": attach("bug-1", "2", "bug-3"), "old": attach("2", "bug-1"),
	} {
		b.wantBy(t, "k", call, want, "")
		b.do(t, "k", call)
	}
	for _, sent := range append(b.old.taken(), b.new.taken()...) {
		if create := sent.CreateAttachment; create.PathBug != "" || len(create.Bugs) != 1 || !create.Conflict {
			t.Errorf("%v is sent with the bugs %q, and is not settled", line(sent), create.Bugs)
		}
	}
	b.wantBy(t, "k", ofBugs("2"), "old", "of the bug that lost")
	named := attach("bug-1", "2", "1").Make(t.Context(), b.Switchover, caller("k"))
	wantRefused(t, named.Err, "old: bug 2", `new: bug "bug-1", bug 1`)
	doubtful := attach("bug-1", "2", "none").Make(t.Context(), b.Switchover, caller("k"))
	wantRefused(t, doubtful.Err, "old: bug 2")
}

// lost is a locator that nobody hears of.
type lost struct{ *atlas }

func (l lost) FlagTypePlaces(context.Context, upstream.Caller, []int64, []string) ([]string, []mapping.Scopes, error) {
	l.ask("types")
	return nil, nil, errDown
}

// TestWhereOneTrackerWritesTheOtherIsNotAsked has rules that differ only in what is compared: what the caller does not see,
// and a tracker that is away, are no reasons to refuse a change of flag types.
func TestWhereOneTrackerWritesTheOtherIsNotAsked(t *testing.T) {
	seen := &shadow{}
	b := openBench(t, Rule{Name: "one", Products: []string{"P1"}, Reads: PhaseNew, Writes: PhaseOld}, always(PhaseOldCompare, PhaseOldCompare))
	b.set(t, func(s *Settings) { s.Shadow = seen })
	for _, c := range []struct {
		id       int64
		compared int
	}{{1, 0}, {2, 1}, {99, 0}} {
		b.soon(t, "k", changingTypes(c.id))
		if calls := b.old.taken(); len(calls) != 1 {
			t.Errorf("flag type %d is changed %d times in the old tracker", c.id, len(calls))
		}
		if told := seen.taken(); len(told) != c.compared {
			t.Errorf("the change of flag type %d is compared %d times, want %d", c.id, len(told), c.compared)
		}
	}
	if asked := b.beyond.taken(); len(asked) > 0 {
		t.Errorf("the new tracker, which writes nothing, was asked for %q", asked)
	}
	b.set(t, func(s *Settings) { s.Locate["old"] = lost{b.atlas} })
	b.soon(t, "other", changingTypes(1))
	if b.atlas.taken(); len(b.old.taken()) != 1 {
		t.Error("a change was not sent, because it could not be found out whether it is to be compared")
	}
}
