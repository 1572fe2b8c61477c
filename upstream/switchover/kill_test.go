package switchover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"portico/test/process"
	"portico/upstream/journal"
)

// killedOnlyHere throws the kill switch of which the store cannot be told.
func (b *bench) killedOnlyHere(t *testing.T) {
	t.Helper()
	err := b.Kill(t.Context(), "ann", "it burns")
	if _, ok := errors.AsType[*UndeliveredError](err); !ok {
		t.Fatalf("got %v, want that the store does not know", err)
	}
	b.wantBy(t, "k", ofBugs("1"), "old", "after the kill")
	if status := b.Status(); status.Killed == nil || status.Undelivered == "" {
		t.Errorf("the status is %+v, want a kill that only this process knows of", status)
	}
}

// wantStored waits until a kill is in the store, and no longer only here.
func (b *bench) wantStored(t *testing.T) {
	t.Helper()
	process.Eventually(t, "the kill in the store", func() bool {
		stored, err := b.store.CurrentRevision(t.Context())
		status := b.Status()
		return err == nil && killedIn(stored) != nil && status.Killed != nil && status.Undelivered == ""
	})
}

// TestAfterAKillNothingIsSafeBeforeTheJournalWasRead: what it said before may lack writes that other processes have sent to the new tracker meanwhile.
func TestAfterAKillNothingIsSafeBeforeTheJournalWasRead(t *testing.T) {
	rule := always(PhaseNew, PhaseNew)
	rule.Replicate = true
	b := openBench(t, rule)
	b.set(t, func(s *Settings) { s.Journal = slowJournal{} })
	must(t, b.Kill(t.Context(), "ann", "it burns"))
	status := b.Status()
	for age, want := range map[time.Duration]journal.OutlookState{
		-time.Second: journal.OutlookUnknown, time.Second: journal.OutlookUnknown, 3 * time.Second: journal.OutlookSafe,
	} {
		recorded := &journal.Status{Read: status.Killed.At.Add(age)}
		if got := status.GoingBack(PhaseNew, rule, recorded).State; got != want {
			t.Errorf("%v after the kill: %q, want %q", age, got, want)
		}
	}
	if got := status.Rules[0].GoingBack.State; got != journal.OutlookUnknown || !status.CopyingPaused {
		t.Errorf("at once: %q, and copying is paused: %v", got, status.CopyingPaused)
	}
}

func TestAKillDoesNotWaitForAChangeThatIsStuck(t *testing.T) {
	store := openDisturbed(t)
	b := replica(t, store.file, always(PhaseNew, PhaseNew))
	unlock := store.lock()
	changed := beside(func() error { return b.try(context.WithoutCancel(t.Context()), always(PhaseNewCompare, PhaseNew)) })
	process.Eventually(t, "the change's turn", func() bool { return len(b.changing) > 0 })
	b.killedOnlyHere(t)
	if len(changed) > 0 {
		t.Error("the change was over before the kill counted")
	}
	unlock()
	b.wantStored(t)
	if err := <-changed; err != nil {
		t.Errorf("the change that was stuck: %v", err)
	}
}

func TestAKillThatIsNotStoredOutlivesNewSettings(t *testing.T) {
	store := openDisturbed(t)
	b := replica(t, store.file, always(PhaseNew, PhaseNew))
	unlock := store.lock()
	b.killedOnlyHere(t)
	b.set(t, func(s *Settings) { s.Follow = time.Second })
	if status := b.Status(); status.Killed == nil || status.Undelivered == "" || b.by(t, "k", ofBugs("1")) != "old" {
		t.Errorf("with new settings the status is %+v", status)
	}
	unlock()
	b.wantStored(t)
	b.configure(t, always(PhaseNew, PhaseOld))
	if b.Status().Killed == nil {
		t.Error("other rules in the configuration released the kill switch")
	}
	if err := b.Revive(t.Context(), "ann", "over"); err != nil || b.Status().Killed != nil {
		t.Errorf("the kill does not end: %v", err)
	}
}

func TestAKillOnlyHereIsTakenBackWithoutTheStore(t *testing.T) {
	store := openDisturbed(t)
	b := openBenchOver(t, store.Store, time.Hour, always(PhaseNew, PhaseNew))
	back := store.away()
	b.killedOnlyHere(t)
	must(t, b.Revive(t.Context(), "ann", "a slip"))
	back()
	if err := b.deliver(t.Context()); err != nil || b.Status().Killed != nil || b.by(t, "k", ofBugs("1")) != "new" {
		t.Errorf("the kill counts again: %+v (%v)", b.Status(), err)
	}
}

// TestAKillThatComesBackLate has a process come back with a kill that the store
// does not have, after another one has killed and revived.
func TestAKillThatComesBackLate(t *testing.T) {
	for name, c := range map[string]struct {
		thrown time.Duration // after the revival elsewhere
		killed bool
	}{
		"thrown before the revival": {-time.Minute, false},
		"thrown after it":           {time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			store := openDisturbed(t)
			away := openBenchOver(t, store.Store, time.Hour, always(PhaseNew, PhaseNew)) // it asks only when told to
			other := openBenchOver(t, store.Store, time.Hour, always(PhaseNew, PhaseNew))
			back := store.away()
			away.clock.pass(time.Hour + c.thrown)
			away.killedOnlyHere(t)
			back()
			store.exec("DELETE FROM portico_leases") // the heartbeat of the one that is away has ended
			other.clock.pass(time.Hour)
			must(t, errors.Join(other.Kill(t.Context(), "bob", "it burns"), other.Revive(t.Context(), "bob", "it is out")))
			must(t, errors.Join(away.refresh(t.Context()), away.deliver(t.Context())))
			stored, err := store.CurrentRevision(t.Context())
			if here := away.Status().Killed != nil; err != nil || here != c.killed || (killedIn(stored) != nil) != c.killed {
				t.Errorf("killed here: %v, in the store: %s (%v)", here, stored.Table, err)
			}
		})
	}
}

// TestAKillAfterARevivalCounts although the clock of the process that has revived the rules is ahead.
func TestAKillAfterARevivalCounts(t *testing.T) {
	store := openDisturbed(t)
	b := openBenchOver(t, store.Store, time.Hour, always(PhaseNew, PhaseNew))
	ahead := openBenchOver(t, store.Store, time.Hour, always(PhaseNew, PhaseNew))
	ahead.clock.pass(time.Minute)
	must(t, ahead.Kill(t.Context(), "bob", "it burns"))
	store.exec("DELETE FROM portico_leases") // the barrier does not wait for b
	must(t, errors.Join(ahead.Revive(t.Context(), "bob", "it is out"), b.refresh(t.Context())))
	if err := b.Kill(t.Context(), "ann", "it burns again"); err != nil || b.Status().Killed == nil {
		t.Errorf("the rules are %+v (%v)", b.Status().Killed, err)
	}
	b.wantStored(t)
}

func TestAKillIsNotStoredAgainAfterARevival(t *testing.T) {
	store := openDisturbed(t)
	b := openBenchOver(t, store.Store, time.Hour, always(PhaseNew, PhaseNew))
	b.timing.kill = patience
	unlock := store.lock()
	ctx := context.WithoutCancel(t.Context())
	killed := beside(func() error { return b.Kill(ctx, "ann", "it burns") })
	process.Eventually(t, "the turn of the kill", func() bool { return len(b.changing) > 0 })
	again := beside(func() error { return b.deliver(ctx) }) // as is done every second
	unlock()
	must(t, <-killed)
	must(t, b.Revive(t.Context(), "ann", "it is out"))
	if err := <-again; err != nil || b.Status().Killed != nil {
		t.Errorf("killed again: %+v (%v)", b.Status().Killed, err)
	}
	if history, err := b.History(t.Context(), 10); err != nil || len(history) != 4 {
		t.Errorf("the history is %+v (%v), want one kill and one revival", history, err)
	}
}

func TestTheStartDoesNotWaitForTheStoreForEver(t *testing.T) {
	store := openDisturbed(t)
	b := replica(t, store.file, always(PhaseOld, PhaseOld))
	unlock := store.lock()
	options := b.options
	options.Settings.Table = Table{Rules: []Rule{always(PhaseNew, PhaseNew)}}
	opened, err := open(context.WithoutCancel(t.Context()), options, timing{now: time.Now, poll: time.Hour, store: 50 * time.Millisecond, kill: time.Second, lease: time.Hour})
	if err == nil {
		opened.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that the store took too long", err)
	}
	unlock()
}

// TestTheStoreIsToldOfAKillAlthoughItsCallerHangsUp, as soon as it has time.
func TestTheStoreIsToldOfAKillAlthoughItsCallerHangsUp(t *testing.T) {
	b := openBenchOver(t, openStore(t, ":memory:"), 5*time.Millisecond, always(PhaseNew, PhaseNew))
	b.changing <- struct{}{} // as another change does
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, ok := errors.AsType[*UndeliveredError](b.Kill(gone, "ann", "it burns")); !ok {
		t.Error("nothing was said of the store")
	}
	<-b.changing
	b.wantStored(t)
}

// TestAKillIsNotTurnedRound by a start with a configuration in which the trackers have changed places.
func TestAKillIsNotTurnedRound(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	must(t, b.Kill(t.Context(), "ann", "it burns"))
	turned := b.options
	turned.Old, turned.New, turned.Settings.Table = "new", "old", Table{Rules: []Rule{always(PhaseOld, PhaseOld)}}
	_, err := New(t.Context(), turned)
	if err == nil || !strings.Contains(err.Error(), `takes everything to "old"`) || !strings.Contains(err.Error(), `not to "new"`) {
		t.Errorf("got %v", err)
	}
	must(t, b.Revive(t.Context(), "ann", "over"))
	opened, err := New(t.Context(), turned)
	must(t, err)
	opened.Close()
}

// TestRulesOfOtherTrackersAreNotTakenOver: of two processes on one store the one goes from old to new, the other one from new to old.
func TestRulesOfOtherTrackersAreNotTakenOver(t *testing.T) {
	b := openBenchOver(t, openStore(t, ":memory:"), 5*time.Millisecond, always(PhaseNew, PhaseNew))
	turned := b.options
	turned.Old, turned.New, turned.Settings.Table = "new", "old", Table{Rules: []Rule{always(PhaseOldCompare, PhaseOld)}}
	other, err := New(t.Context(), turned)
	must(t, err)
	defer other.Close()
	process.Eventually(t, "a word of the other process", func() bool { return b.Status().Stale != "" })
	b.wantBy(t, "k", ofBugs("1"), "new", "")
	err = b.try(t.Context(), always(PhaseOld, PhaseOld))
	if err == nil || b.Status().Table.Rules[0].Writes != PhaseNew {
		t.Errorf("it changed what another process goes by: %v", err)
	}
	if err := b.Kill(t.Context(), "ann", "it burns"); err == nil || b.by(t, "k", ofBugs("1")) != "old" {
		t.Errorf("a kill does not count here, or is told to the other one: %v", err)
	}
}
