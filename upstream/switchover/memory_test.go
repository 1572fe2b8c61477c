package switchover

import (
	"context"
	"testing"
	"time"

	"portico/upstream"
)

// TestAClientThatHangsUpSaysNothingOfATracker: its lookup failed, and the next client's is made all the same.
func TestAClientThatHangsUpSaysNothingOfATracker(t *testing.T) {
	b := openBench(t, ofAttachment(10), always(PhaseOld, PhaseOld))
	b.do(t, "k", changing(881)) // whose bug cannot be asked for
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	for _, c := range []struct {
		ctx   context.Context
		asked int
	}{{gone, 1}, {t.Context(), 1}, {t.Context(), 0}} {
		if _, err := b.Explain(c.ctx, caller("k"), ofBugs("1")); err != nil {
			t.Fatal(err)
		}
		if asked := b.beyond.taken(); len(asked) != c.asked {
			t.Errorf("asked for %q, want %d lookups", asked, c.asked)
		}
	}
}

// TestTheBugOfAWriteStaysKnown when the same attachment is written again.
func TestTheBugOfAWriteStaysKnown(t *testing.T) {
	b := openBench(t, ofAttachment(10), always(PhaseOld, PhaseOld))
	b.do(t, "k", changing(51))
	if got := b.by(t, "k", ofBugs("5")); got != "new" || len(b.beyond.taken()) != 1 {
		t.Fatalf("bug 5 is read in the %s tracker", got)
	}
	b.clock.pass(rememberPlaces)
	b.do(t, "k", changing(51))
	if got, asked := b.by(t, "k", ofBugs("5")), b.beyond.taken(); got != "new" || len(asked) != 0 {
		t.Errorf("bug 5 is read in the %s tracker, after asking for %q", got, asked)
	}
}

// TestWhatOneTrackerSaidIsNotTheOthers: a lookup ends when its attachment was written elsewhere already.
func TestWhatOneTrackerSaidIsNotTheOthers(t *testing.T) {
	m, who, now := NewMemory(), digest{1}, time.Unix(1, 0)
	there := written{object: object{kind: attachmentObject, id: 51}, tracker: "old", at: now}
	elsewhere := there
	elsewhere.tracker = "new"
	m.note(who, there)
	m.note(who, elsewhere)
	m.learn(who, &there, 5)
	if writes := m.since(who, now.Add(-time.Second)); len(writes) != 1 || writes[0] != elsewhere {
		t.Errorf("got %+v, want %+v", writes, elsewhere)
	}
}

// TestWhatIsFollowedIsNotCompared: what was just written on one side is not on the other.
func TestWhatIsFollowedIsNotCompared(t *testing.T) {
	seen := &shadow{}
	b := openBench(t, always(PhaseNewCompare, PhaseOld))
	b.reopen(t, Options{Table: b.Status(t.Context()).Table, Shadow: seen})
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

// TestSweepingUsesNothing: of more callers than are remembered the longest unused give way, however often the sweep was there.
func TestSweepingUsesNothing(t *testing.T) {
	const more = 100
	m, now := NewMemory(), time.Now()
	ago := now.Add(-time.Minute)
	who := func(i int) digest { return digest{byte(i), byte(i >> 8)} }
	for i := range mostCallers + more {
		if i == mostCallers {
			m.sweep(ago, now)
		}
		m.note(who(i), written{object: object{id: 1}, tracker: "old", at: now})
	}
	for i := range more {
		if m.since(who(i), ago) != nil || m.since(who(mostCallers-1-i), ago) == nil {
			t.Fatalf("caller %d is remembered, or caller %d is not, who wrote later", i, mostCallers-1-i)
		}
	}
	if m.sweep(now, now); m.written.Load() != 0 || len(m.writers.entries) != 0 {
		t.Errorf("%d writes of %d callers are left", m.written.Load(), len(m.writers.entries))
	}
}
