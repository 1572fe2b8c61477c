package switchover

import (
	"path/filepath"
	"testing"
)

// TestAFormerConfigurationGoesByTheRulesThatCount: a request that began before a reload is in the former house still, and
// decides when its body is there. No poll comes in between.
func TestAFormerConfigurationGoesByTheRulesThatCount(t *testing.T) {
	b := openBench(t, always(PhaseOld, PhaseOld))
	houses := []*Switchover{b.Switchover}
	want := func(tracker, why string) {
		t.Helper()
		for i, house := range houses {
			made, err := house.Explain(t.Context(), caller("k"), attachTo("1"))
			if err != nil || made.Tracker != tracker {
				t.Errorf("%s: the house %d writes at the %s tracker (%v)", why, i, made.Tracker, err)
			}
		}
	}
	b.reopen(t, Options{Table: Table{Rules: []Rule{always(PhaseNew, PhaseNew)}}})
	houses = append(houses, b.Switchover)
	want("new", "after a reload")
	b.change(t, always(PhaseNew, PhaseOld))
	want("old", "after a change")
	b.change(t, always(PhaseNew, PhaseNew))
	for _, house := range houses {
		if err := house.Kill(t.Context(), "ann", "it burns"); err != nil {
			t.Fatal(err)
		}
		want("old", "after a kill")
		if err := house.Revive(t.Context(), "ann", "over"); err != nil {
			t.Fatal(err)
		}
		want("new", "after a revival")
	}
	for _, house := range houses {
		_ = house.Close()
	}
	if left := len(b.memory.switchovers); left > 0 {
		t.Errorf("%d switchovers are remembered that are closed", left)
	}
}

// TestAKillCountsInAFormerConfiguration with a store of its own as long as it is in force, and does not where the trackers have
// changed places: its old tracker is the one that everything is taken from.
func TestAKillCountsInAFormerConfiguration(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	former := b.Switchover
	where := func(house *Switchover) string {
		t.Helper()
		made, err := house.Explain(t.Context(), caller("k"), attachTo("1"))
		if err != nil {
			t.Fatal(err)
		}
		return made.Tracker
	}
	b.reopen(t, Options{Table: former.options.Table, Store: openStore(t, filepath.Join(t.TempDir(), "next.db"))})
	if err := b.Kill(t.Context(), "ann", "it burns"); err != nil || where(former) != "old" {
		t.Errorf("the former house writes at the %s tracker (%v)", where(former), err)
	}
	if err := b.Revive(t.Context(), "ann", "over"); err != nil || where(former) != "new" {
		t.Errorf("the former house still writes at the %s tracker (%v)", where(former), err)
	}
	turned := b.options
	turned.Old, turned.New, turned.Table = "new", "old", Table{Rules: []Rule{always(PhaseOld, PhaseOld)}}
	next, err := New(t.Context(), turned)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if err := next.Kill(t.Context(), "ann", "it burns"); err != nil || where(next) != "new" || where(former) != "new" {
		t.Errorf("everything is to go to the new tracker, and a former house writes at the %s tracker (%v)", where(former), err)
	}
}
