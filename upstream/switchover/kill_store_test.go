package switchover

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// TestTheStoreIsToldOfAKillAlthoughItsCallerHangsUp, as soon as it has time.
func TestTheStoreIsToldOfAKillAlthoughItsCallerHangsUp(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	b.reopen(t, Options{Table: b.Status(t.Context()).Table, Poll: time.Hour})
	if err := b.memory.storing.enter(t.Context()); err != nil { // as another change does
		t.Fatal(err)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, ok := errors.AsType[*UndeliveredError](b.Kill(gone, "ann", "it burns")); !ok {
		t.Error("nothing was said of the store")
	}
	b.memory.storing.leave()
	b.wantStored(t)
}

// TestAKillMadeOnFormerRules: other rules that the store has got meanwhile are no reason not to take it.
func TestAKillMadeOnFormerRules(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	b.reopen(t, Options{Table: b.Status(t.Context()).Table, Poll: time.Hour})
	revision, _, _ := b.ledger.CurrentRevision(t.Context())
	if _, err := b.ledger.Revise(t.Context(), revision.Version, revision); err != nil {
		t.Fatal(err)
	}
	if err := b.Kill(t.Context(), "ann", "it burns"); err != nil {
		t.Fatal(err)
	}
	b.wantStored(t)
}

// TestAKillIsToldToTheStoreOfTheNextConfiguration where the former one never answered.
func TestAKillIsToldToTheStoreOfTheNextConfiguration(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "former.db")
	b := replica(t, file, always(PhaseNew, PhaseNew))
	unlock := locked(t, file)
	defer unlock()
	b.killedOnlyHere(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.reopen(t, Options{
		Table: Table{Rules: []Rule{always(PhaseNew, PhaseNew)}}, Store: openStore(t, filepath.Join(folder, "next.db")), Poll: 5 * time.Millisecond,
	})
	b.wantStored(t)
}

// TestAKillDuringAReloadIsHeededByItself, though the store that it is to be told to does not answer.
func TestAKillDuringAReloadIsHeededByItself(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	b.reopen(t, Options{Table: b.Status(t.Context()).Table, Poll: time.Hour})
	former := b.Switchover
	store := &weak{ledger: former.ledger}
	store.down.Store(true)
	former.ledger = store
	b.reopen(t, Options{Table: former.Status(t.Context()).Table, Poll: 5 * time.Millisecond})
	if err := former.Kill(t.Context(), "ann", "it burns"); err == nil {
		t.Fatal("the store was told")
	}
	eventually(t, "the kill", func() bool { return b.Status(t.Context()).Killed != nil })
}

// TestWhenAKillIsKnown: what the store has stands for it only if it is the same or a later one.
func TestWhenAKillIsKnown(t *testing.T) {
	at := time.Unix(100, 0)
	here, elsewhere := &localLedger{}, &localLedger{}
	pending := &undelivered{kill: &Kill{At: at}, at: here}
	for name, c := range map[string]struct {
		at     ledger
		stored *Kill
		known  bool
	}{
		"none":          {here, nil, false},
		"an older one":  {here, &Kill{At: at.Add(-time.Second)}, false},
		"the same":      {here, &Kill{At: at}, true},
		"a later one":   {here, &Kill{At: at.Add(time.Second)}, true},
		"another store": {elsewhere, &Kill{At: at}, false},
	} {
		if got := pending.known(c.at, c.stored); got != c.known {
			t.Errorf("%s: known is %t", name, got)
		}
	}
}

// TestAKillThatIsStoredGoesToTheStoreOfTheNextConfiguration, too: that keeps nobody from being killed.
func TestAKillThatIsStoredGoesToTheStoreOfTheNextConfiguration(t *testing.T) {
	folder := t.TempDir()
	b := replica(t, filepath.Join(folder, "former.db"), always(PhaseNew, PhaseNew))
	if err := b.Kill(t.Context(), "ann", "it burns"); err != nil {
		t.Fatal(err)
	}
	next := Options{Table: Table{Rules: []Rule{always(PhaseNew, PhaseNew)}}, Store: openStore(t, filepath.Join(folder, "next.db")), Poll: 5 * time.Millisecond}
	b.reopen(t, next)
	if got := b.by(t, "k", ofBugs("1")); got != "old" {
		t.Errorf("a read goes to the %s tracker", got)
	}
	b.wantStored(t)
	if err := b.Revive(t.Context(), "ann", "over"); err != nil || b.Status(t.Context()).Killed != nil {
		t.Errorf("the kill does not end (%v)", err)
	}
	next.Store = openStore(t, filepath.Join(folder, "third.db"))
	if b.reopen(t, next); b.Status(t.Context()).Killed != nil {
		t.Error("a kill that has ended is back")
	}
}

// TestAKillIsNotTurnedRound by a configuration in which the trackers change places.
func TestAKillIsNotTurnedRound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	b := replica(t, file, always(PhaseNew, PhaseNew))
	if err := b.Kill(t.Context(), "ann", "it burns"); err != nil {
		t.Fatal(err)
	}
	turned := b.options
	turned.Old, turned.New, turned.Table = "new", "old", Table{Rules: []Rule{always(PhaseOld, PhaseOld)}}
	turned.Memory = NewMemory() // as in a process that starts
	for _, memory := range []*Memory{b.memory, NewMemory()} {
		turned.Memory = memory
		_, err := New(t.Context(), turned)
		if said, ok := errors.AsType[*TurnedError](err); !ok || said.Kill.Old != "old" || said.Old != "new" {
			t.Errorf("got %v", err)
		}
	}
	if err := b.Revive(t.Context(), "ann", "over"); err != nil {
		t.Fatal(err)
	}
	opened, err := New(t.Context(), turned)
	if err != nil {
		t.Fatal(err)
	}
	_ = opened.Close()
}

// TestRulesOfOtherTrackersAreNotTakenOver: of two processes on one store the one goes from old to new, the other one from new to old.
func TestRulesOfOtherTrackersAreNotTakenOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	b := replica(t, file, always(PhaseNew, PhaseNew))
	turned := b.options
	turned.Old, turned.New, turned.Table, turned.Memory = "new", "old", Table{Rules: []Rule{always(PhaseOldCompare, PhaseOld)}}, NewMemory()
	other, err := New(t.Context(), turned)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	eventually(t, "a word of the other process", func() bool { return b.Status(t.Context()).Stale != "" })
	if got := b.by(t, "k", ofBugs("1")); got != "new" {
		t.Errorf("a read goes to the %s tracker", got)
	}
	err = b.Change(t.Context(), b.Status(t.Context()).Version, Table{Rules: []Rule{always(PhaseOld, PhaseOld)}}, "ann", "back")
	if err == nil || b.Status(t.Context()).Table.Rules[0].Writes != PhaseNew {
		t.Errorf("it changed what another process goes by: %v", err)
	}
	if err := b.Kill(t.Context(), "ann", "it burns"); err == nil || b.by(t, "k", ofBugs("1")) != "old" {
		t.Errorf("a kill does not count here, or is told to the other one: %v", err)
	}
}
