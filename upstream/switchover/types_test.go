package switchover

import (
	"context"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

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
