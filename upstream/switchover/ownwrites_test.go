package switchover

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/upstream"
)

// by names the tracker to which a call of a caller goes.
func (b *bench) by(t *testing.T, key string, call upstream.Call) string {
	t.Helper()
	made, err := b.explain(t.Context(), caller(key), call)
	must(t, err)
	return made.Tracker
}

// wantBy wants a call of a caller to go to a tracker.
func (b *bench) wantBy(t *testing.T, key string, call upstream.Call, want, when string) {
	t.Helper()
	if got := b.by(t, key, call); got != want {
		t.Errorf("%s %s goes to the %s tracker, want %s", line(call), when, got, want)
	}
}

// do makes a call that has to succeed.
func (b *bench) do(t *testing.T, key string, call upstream.Call) {
	t.Helper()
	process.Text(t, call.Make(t.Context(), b.Switchover, caller(key)).Document, nil)
}

func TestReadsFollowTheCallersOwnWrites(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseOld))
	one := mapping.Scopes{{Product: "P1", Components: []string{"C"}}}
	for _, c := range []struct {
		write        upstream.Call
		shows, apart []upstream.Call
	}{
		{attachTo("1"), []upstream.Call{ofBugs("1"), ofBugs("bug-1"), ofAttachments("1001")}, []upstream.Call{ofBugs("2"), ofAttachments("11"), typesOf("P1", "")}},
		{attachTo("bug-2"), []upstream.Call{ofBugs("2"), ofBugs("BUG-2"), ofAttachments("1001")}, []upstream.Call{ofBugs("1")}},
		{changing(31, 41), []upstream.Call{ofAttachments("31"), ofAttachments("041"), ofBugs("3"), ofBugs("bug-4")}, []upstream.Call{ofAttachments("32"), ofBugs("5")}},
		{makingType(&one), []upstream.Call{typesOf("p1", ""), typesOf("P1", "C"), typesOf("P1", "D")}, []upstream.Call{typesOf("P2", ""), ofBugs("1")}},
		{makingType(nil), []upstream.Call{typesOf("P2", ""), typesOf("Any", "C")}, []upstream.Call{ofBugs("1")}},
		{changingTypes(1), []upstream.Call{typesOf("P9", "")}, []upstream.Call{ofBugs("1")}},
	} {
		b.Switchover.memory = newMemory()
		b.old.next = 0
		b.do(t, "writer", c.write)
		for _, read := range c.shows {
			b.wantBy(t, "writer", read, "old", "after "+line(c.write))
			b.wantBy(t, "another", read, "new", "of another caller")
		}
		for _, read := range c.apart {
			b.wantBy(t, "writer", read, "new", "which is not concerned by "+line(c.write))
		}
		b.clock.pass(time.Minute)
		b.wantBy(t, "writer", c.shows[0], "new", "when the time is over")
	}
}

func line(call upstream.Call) string {
	method, target := call.Line()
	return method + " " + target
}

// TestReadsFollowAWriteWhoseBugHasMoved to a product that the other tracker writes, as long as that one has no copy.
func TestReadsFollowAWriteWhoseBugHasMoved(t *testing.T) {
	store := openDisturbed(t)
	moved, rest := Rule{Name: "p9", Products: []string{"P9"}, Reads: PhaseNew, Writes: PhaseNew, Replicate: true}, always(PhaseOld, PhaseOld)
	rest.Replicate = true
	b := openBenchOver(t, store.Store, time.Hour, moved, rest)
	b.set(t, func(s *Settings) { s.Journal = slowJournal{} })
	b.do(t, "k", changing(31))
	for _, atlas := range []*atlas{b.atlas, b.beyond} {
		atlas.extra = map[string]mapping.Place{"3": {Bug: 3, Product: "P9", Component: "C"}}
	}
	b.memory.places.InvalidateAll()
	reads := []upstream.Call{ofAttachments("31"), ofBugs("3")}
	for _, read := range reads {
		b.wantBy(t, "k", read, "new", "when the write is copied")
	}
	store.exec(addEntry + " VALUES ('attachment 31', 'attachment.update', 'old', 'new', 'rest', 'k', 'pending', 0)")
	for _, read := range reads {
		b.wantBy(t, "k", read, "old", "before the write is copied")
	}
	// A read of it together with another caller's new attachment, which the journal was asked for first.
	info := &callInfo{ruleSet: b.rules.Load(), caller: new(caller("k")), uncopied: []written{{object: attachmentNamed("9")}}}
	if !b.isUncopied(t.Context(), info, &written{object: attachmentNamed("31")}) || !b.isUncopied(t.Context(), info, &info.uncopied[0]) || b.isUncopied(t.Context(), info, &written{object: attachmentNamed("30")}) {
		t.Errorf("what waits of the caller is %+v", info.waiting)
	}
}

func TestTheLastWriteCounts(t *testing.T) {
	b := openBench(t, always(PhaseOld, PhaseOld))
	b.do(t, "k", attachTo("1"))
	b.change(t, always(PhaseNew, PhaseNew))
	b.wantBy(t, "k", ofBugs("1"), "old", "after the move")
	b.do(t, "k", attachTo("bug-1"))
	b.wantBy(t, "k", ofBugs("1"), "new", "after another write")
	b.change(t, always(PhaseOld, PhaseOld))
	b.wantBy(t, "k", ofBugs("1"), "new", "after the way back")
	must(t, b.Kill(t.Context(), "a", "r"))
	b.wantBy(t, "k", ofBugs("1"), "old", "with the kill switch thrown")
}

func TestOnlyRefusedWritesAreForgotten(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&mapping.Error{Code: 50, Status: 400}, "new"},
		{&mapping.Error{Code: 200503, Status: 503, Reason: mapping.ReasonBreakerOpen}, "new"},
		{&mapping.Error{Code: 200502, Status: 502, Reason: mapping.ReasonUnreachable}, "new"},
		{&mapping.Error{Code: 200501, Status: 501, Reason: mapping.ReasonInexpressive}, "new"},
		{&mapping.Error{Code: 200504, Status: 504, Reason: mapping.ReasonBreakerOpen, Unknown: true}, "old"},
		{&mapping.Error{Code: 200504, Status: 504, Reason: mapping.ReasonUnreachable, Unknown: true}, "old"},
		{&mapping.Error{Code: 200504, Status: 504, Reason: mapping.ReasonTimeout, Unknown: true}, "old"},
		{&mapping.Error{Code: 200503, Status: 503, Reason: mapping.ReasonOverload}, "new"},
		{&mapping.Error{Code: 200504, Status: 504, Reason: mapping.ReasonTimeout}, "old"},
		{&mapping.Error{Code: 100500, Status: 500}, "old"},
		{fmt.Errorf("who knows"), "old"},
	} {
		b := openBench(t, always(PhaseNew, PhaseOld))
		b.old.failing(c.err)
		if answer := attachTo("1").Make(t.Context(), b.Switchover, caller("k")); answer.Err != c.err {
			t.Fatalf("got %v, want %v", answer.Err, c.err)
		}
		b.wantBy(t, "k", ofBugs("1"), c.want, fmt.Sprint("after ", c.err))
	}
}

func TestMemoryIsBoundedAndHoldsNoCredential(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseOld))
	identify := func(key string) identity {
		who := caller(key)
		return (&callInfo{caller: &who}).identity()
	}
	before := heap()
	long := strings.Repeat("x", 1<<12)
	for i := range 30_000 {
		one := written{object: object{alias: fmt.Sprint(long, i)}, at: b.now()}
		b.memory.note(identify(fmt.Sprint("SECRET", i)), []written{one}, b.now())
	}
	if grown := heap() - before; grown > 3*maxMemory {
		t.Errorf("the writes of many callers take %d bytes", grown)
	}
	const objects = 3 * maxOwnWrites
	for i := range 2 * objects { // each object twice
		b.memory.note(identify("SECRET"), []written{{object: object{id: int64(i / 2)}, at: b.now()}}, b.now())
	}
	own, _ := b.memory.callers.GetIfPresent(identify("SECRET"))
	if n := len(own.writes); n < maxOwnWrites || n > 2*maxOwnWrites {
		t.Errorf("%d writes of one caller are remembered, want %d to twice as many", n, maxOwnWrites)
	}
	last := map[int64]bool{}
	for _, w := range own.writes {
		last[w.object.id] = true
	}
	for id := int64(objects - maxOwnWrites); id < objects; id++ {
		if !last[id] {
			t.Errorf("the write of object %d is forgotten", id)
		}
	}
	for who, own := range b.memory.callers.All() {
		if strings.Contains(fmt.Sprintf("%s %+v", who, own), "SECRET") {
			t.Fatal("a credential is remembered")
		}
	}
}

// TestReadsAfterOwnWritesAreNotCompared: what was just written on one side is not on the other.
func TestReadsAfterOwnWritesAreNotCompared(t *testing.T) {
	seen := &shadow{}
	b := openBench(t, always(PhaseNewCompare, PhaseOld))
	b.set(t, func(s *Settings) { s.Shadow = seen })
	b.do(t, "k", attachTo("1"))
	for _, c := range []struct {
		read upstream.Call
		by   *fake
		told int
	}{{ofBugs("1"), b.old, 0}, {ofBugs("2"), b.new, 1}} {
		b.old.taken()
		b.new.taken()
		b.do(t, "k", c.read)
		if calls, told := c.by.taken(), seen.taken(); len(calls) != 1 || len(told) != c.told {
			t.Errorf("%s: %s was asked %d times, and the shadow told %v", line(c.read), c.by.name, len(calls), told)
		}
	}
}
