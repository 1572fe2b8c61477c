package state

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"portico/mapping"
)

// intent is an entry as a write begins it.
func intent(lane string) JournalEntry {
	return JournalEntry{
		Lane: lane, Operation: mapping.OpCreateAttachment, Target: "main", Receiver: "next", Rule: "all", Caller: "robot",
		Request: []byte{0, 1, 255}, Spool: "file",
	}
}

// begin begins a write of lanes, which must not be held.
func begin(t *testing.T, s *Store, holder string, lanes ...string) []JournalEntry {
	t.Helper()
	var entries []JournalEntry
	for _, lane := range lanes {
		entries = append(entries, intent(lane))
	}
	taken, err := s.BeginJournal(t.Context(), holder, time.Minute, entries)
	if must(t, err); !taken {
		t.Fatalf("%q are held", lanes)
	}
	return entries
}

// end gives entries a status and ends their write.
func end(t *testing.T, s *Store, holder string, status JournalStatus, entries []JournalEntry) {
	t.Helper()
	for i := range entries {
		entries[i].Status = status
	}
	must(t, s.EndJournal(t.Context(), holder, entries))
}

// dueSeqs are the numbers of what is due.
func dueSeqs(t *testing.T, s *Store) []int64 {
	t.Helper()
	due, err := s.DueJournal(t.Context(), 100)
	must(t, err)
	seqs := []int64{}
	for _, e := range due {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// overview reads an overview.
func overview(t *testing.T, s *Store) JournalOverview {
	t.Helper()
	all, err := s.JournalOverview(t.Context(), 10)
	must(t, err)
	return all
}

func TestJournalKeepsAnEntry(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		e := begin(t, s, "a", "bug 1")[0]
		want := intent("bug 1")
		want.Seq, want.Status, want.Begun = e.Seq, JournalBegun, noon
		got, err := s.JournalEntry(t.Context(), e.Seq)
		if must(t, err); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		e.Status, e.Made, e.Attempts, e.Next, e.Attempt = JournalPending, "attachment 7", 2, noon.Add(time.Hour), []byte("{}")
		must(t, s.EndJournal(t.Context(), "a", []JournalEntry{e}))
		if got, err = s.JournalEntry(t.Context(), e.Seq); !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v, %v, want %+v", got, err, e)
		}
		e.Status = JournalApplied
		must(t, s.PutJournal(t.Context(), e, JournalPending, Record{}))
		if got, _ = s.JournalEntry(t.Context(), e.Seq); got.Request != nil || got.Spool != "" || got.Attempt != nil || !got.Ended.Equal(noon) {
			t.Errorf("a finished entry keeps its content: %+v", got)
		}
		if err := s.PutJournal(t.Context(), e, JournalPending, Record{}); !errors.Is(err, ErrNotFound) {
			t.Errorf("an entry with another status was changed: %v", err)
		}
		if _, err := s.JournalEntry(t.Context(), e.Seq+1); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// TestTheEndOfALostEntryEndsNoOther: a store that has lost an entry may give its number to the next one.
func TestTheEndOfALostEntryEndsNoOther(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		for _, status := range []JournalStatus{JournalPending, JournalRefused} {
			present := begin(t, s, "b", "bug 1")
			lost := intent("bug 2")
			lost.Seq, lost.Status = present[0].Seq, status
			if err := s.EndJournal(t.Context(), "a", []JournalEntry{lost}); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: got %v", status, err)
			}
			if got, err := s.JournalEntry(t.Context(), present[0].Seq); err != nil || got.Status != JournalBegun {
				t.Errorf("%s: the other one is %+v, %v", status, got, err)
			}
			end(t, s, "b", JournalRefused, present)
		}
	})
}

func TestJournalHoldsALane(t *testing.T) {
	onShared(t, func(t *testing.T, dsn string) {
		one, other := open(t, dsn), open(t, dsn)
		clock := newClock(one, other)
		first := begin(t, one, "a", "bug 1", "bug 2")
		begin(t, other, "b", "bug 3")
		for _, lanes := range [][]JournalEntry{{intent("bug 2")}, {intent("bug 4"), intent("bug 1")}} {
			if taken, err := other.BeginJournal(t.Context(), "b", time.Minute, lanes); taken || err != nil {
				t.Fatalf("a lane has two holders: %v", err)
			}
		}
		if got := count(t, one, "portico_journal"); got != 3 {
			t.Errorf("%d entries, want 3: what could not begin leaves nothing", got)
		}
		end(t, one, "a", JournalPending, first)
		second := begin(t, other, "b", "bug 1", "bug 4")
		clock.pass(40 * time.Second)
		must(t, other.KeepLeases(t.Context(), []string{writeLease("bug 1"), writeLease("bug 4")}, "b", time.Minute))
		clock.pass(40 * time.Second)
		if taken, err := one.BeginJournal(t.Context(), "a", time.Minute, []JournalEntry{intent("bug 4")}); taken || err != nil {
			t.Fatalf("a lease that is kept was taken: %v", err)
		}
		clock.pass(20 * time.Second)
		begin(t, one, "a", "bug 4")
		end(t, other, "b", JournalPending, second) // it no longer has that lease
		if taken, err := other.BeginJournal(t.Context(), "b", time.Minute, []JournalEntry{intent("bug 4")}); taken || err != nil {
			t.Errorf("the lease of another holder was given back: %v", err)
		}
	})
}

// TestUnknownUpdateHoldsItsLane: the tracker may still carry out an update whose outcome is unknown, after whatever comes next.
func TestUnknownUpdateHoldsItsLane(t *testing.T) {
	onShared(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		clock := newClock(s)
		update := intent("attachment 1")
		update.Operation = mapping.OpUpdateAttachments
		unknown := append([]JournalEntry{update}, intent("bug 1"))
		taken, err := s.BeginJournal(t.Context(), "a", time.Minute, unknown)
		if must(t, err); !taken {
			t.Fatal("a lane is held")
		}
		for i := range unknown {
			unknown[i].Next = clock.now().Add(time.Hour)
		}
		end(t, s, "a", JournalBegun, unknown)
		begin(t, s, "a", "bug 1") // a create undoes nothing
		if stopped := overview(t, s).Stopped; len(stopped) != 1 || stopped[0].Seq != unknown[0].Seq {
			t.Errorf("the outcomes of %+v are unknown, want one update", stopped)
		}
		for _, holder := range []string{"a", "b"} {
			if taken, err := s.BeginJournal(t.Context(), holder, time.Minute, []JournalEntry{intent("attachment 1")}); taken || err != nil {
				t.Fatalf("%q writes an object whose last update may still be carried out (%v)", holder, err)
			}
		}
		clock.pass(time.Hour)
		begin(t, s, "b", "attachment 1")
	})
}

// TestAnUpdateWaitsForCopiesToItsTarget: the bug of an attachment may move to a product that the other tracker writes. It may not have the attachment
// yet, and the copy of an earlier update would overwrite a later one there.
func TestAnUpdateWaitsForCopiesToItsTarget(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) { updateWaits(t, s, "bug 1", "attachment 1") })
	onQuick(t, func(t *testing.T, s *Store, _ *clock) { updateWaits(t, s, "attachment 1", "") })
}

// updateWaits has an update of attachment 1 wait for the copy of a write in a lane that has made an object.
func updateWaits(t *testing.T, s *Store, lane, made string) {
	t.Helper()
	begins := func(target string, want bool) {
		t.Helper()
		update := intent("attachment 1")
		update.Operation, update.Target = mapping.OpUpdateAttachments, target
		entries := []JournalEntry{update}
		taken, err := s.BeginJournal(t.Context(), "b", time.Minute, entries)
		if must(t, err); taken != want {
			t.Errorf("an update of %s begins: %v, want %v", target, taken, want)
		}
		if taken {
			end(t, s, "b", JournalRefused, entries)
		}
	}
	first := begin(t, s, "a", lane)
	first[0].Made = made
	end(t, s, "a", JournalPending, first)
	begins("main", true)
	begins("next", false)
	must(t, s.KillJournal(t.Context(), "next", Record{Actor: "me"}))
	begins("next", true) // nothing waits for a kill
	must(t, s.ResumeJournal(t.Context(), Record{Actor: "me"}))
	begins("next", true) // an operator decides about the copy by now
}

func TestJournalGivesWhatIsDue(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, clock *clock) {
		check := func(what string, want ...int64) {
			t.Helper()
			if got := dueSeqs(t, s); !reflect.DeepEqual(got, append([]int64{}, want...)) {
				t.Errorf("%s: %v are due, want %v", what, got, want)
			}
		}
		create := begin(t, s, "a", "bug 1")
		check("under way")
		create[0].Made = "attachment 7"
		end(t, s, "a", JournalPending, create)
		update, later := begin(t, s, "a", "attachment 7"), begin(t, s, "b", "bug 2")
		end(t, s, "a", JournalPending, update)
		check("the object is not there yet", create[0].Seq)
		create[0].Status = JournalParked
		must(t, s.PutJournal(t.Context(), create[0], JournalPending, Record{}))
		check("parked")
		create[0].Status = JournalSkipped
		must(t, s.PutJournal(t.Context(), create[0], JournalParked, Record{Actor: "me", Action: "skip", Reason: "gone"}))
		check("skipped", update[0].Seq)
		clock.pass(time.Minute)
		check("its writer has died", update[0].Seq, later[0].Seq)
		second := begin(t, s, "c", "attachment 7")
		end(t, s, "c", JournalPending, second)
		check("the first of the lane", update[0].Seq, later[0].Seq)
		if due, err := s.DueJournal(t.Context(), 9, "bug 2"); err != nil || len(due) != 1 || due[0].Seq != later[0].Seq {
			t.Errorf("of one lane %+v is due (%v)", due, err)
		}
		must(t, s.StartJournal(t.Context(), Record{}))
		check("paused")
		must(t, s.ResumeJournal(t.Context(), Record{}))
		update[0].Next = clock.now().Add(time.Second)
		must(t, s.PutJournal(t.Context(), update[0], JournalPending, Record{}))
		check("not yet", later[0].Seq)
		audit, err := s.Audit(t.Context(), 10)
		if must(t, err); len(audit) != 3 || audit[0].Action != "resume the journal" || audit[1].Action != "start the journal" || audit[2].Actor != "me" || audit[2].Action != "skip" || audit[2].Reason != "gone" {
			t.Errorf("the audit trail is %+v", audit)
		}
	})
}

func TestJournalCountsAndPrunes(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, clock *clock) {
		end(t, s, "a", JournalPending, begin(t, s, "a", "bug 1", "bug 2"))
		end(t, s, "a", JournalRefused, begin(t, s, "a", "bug 3"))
		clock.pass(time.Hour)
		end(t, s, "a", JournalPending, begin(t, s, "a", "bug 1"))
		counts := overview(t, s).Counts
		want := []JournalCount{{Rule: "all", Receiver: "next", Status: JournalPending, Entries: 3, Lanes: 2, Oldest: noon}}
		if !reflect.DeepEqual(counts, want) {
			t.Errorf("got %+v, want %+v", counts, want)
		}
		must(t, s.PruneJournal(t.Context(), clock.now()))
		all, err := s.JournalOf(t.Context(), 100, true)
		if must(t, err); len(all) != 3 {
			t.Errorf("%d are left, want the 3 that are not finished", len(all))
		}
		end(t, s, "a", JournalRefused, begin(t, s, "a", "bug 3"))
		if open, err := s.JournalOf(t.Context(), 100, false); len(open) != 3 || err != nil {
			t.Errorf("%d are not finished, want 3 (%v)", len(open), err)
		}
	})
}

// TestJournalTellsWhatIsLost: a skipped entry and what was counted stay lost until the journal is started anew.
func TestJournalTellsWhatIsLost(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, clock *clock) {
		create := begin(t, s, "a", "bug 1")
		create[0].Made = "attachment 7"
		end(t, s, "a", JournalParked, create)
		end(t, s, "a", JournalPending, begin(t, s, "a", "bug 1", "attachment 7", "bug 2"))
		end(t, s, "a", JournalApplied, begin(t, s, "a", "bug 3"))
		begin(t, s, "a", "bug 4")
		clock.pass(30 * time.Second)
		if n := overview(t, s).Applied; n != 1 {
			t.Errorf("%d were applied in the last minute", n)
		}
		begin(t, s, "a", "bug 5")
		clock.pass(30 * time.Second) // the lease of bug 4 is over
		all := overview(t, s)
		one := JournalCount{Rule: "all", Receiver: "next", Entries: 1, Lanes: 1, Oldest: noon}
		open, parked, free, blocked := one, one, one, one
		open.Status, parked.Status, free.Status, blocked.Status = JournalBegun, JournalParked, JournalPending, JournalPending
		free.Entries, free.Lanes = 2, 2 // bug 2, and the write under way of bug 5
		blocked.Blocked, blocked.Entries, blocked.Lanes = true, 2, 2
		if want := []JournalCount{open, parked, free, blocked}; !reflect.DeepEqual(all.Counts, want) {
			t.Errorf("got %+v, want %+v", all.Counts, want)
		}
		if stopped := all.Stopped; len(stopped) != 2 || stopped[0].Lane != "bug 1" || stopped[1].Lane != "bug 4" {
			t.Errorf("stopped are %+v", stopped)
		}
		create[0].Status = JournalSkipped
		must(t, s.PutJournal(t.Context(), create[0], JournalParked, Record{Actor: "me", Action: "skip", Reason: "gone"}))
		for range 2 {
			must(t, s.AddJournalLosses(t.Context(), []JournalLoss{{Receiver: "next", Kind: LossPassed, What: "POST /rest/bug", Entries: 2, Last: s.now()}}))
		}
		losses := overview(t, s).Losses
		if len(losses) != 2 || losses[0].Entries != 4 || losses[1].Kind != LossSkipped || losses[1].Rule != "all" || losses[1].What != "entry 1: attachment.create of bug 1" {
			t.Errorf("losses are %+v", losses)
		}
		for range 20 { // skipped entries of one rule hide none of the other
			clock.pass(time.Second)
			create = begin(t, s, "a", "bug 9")
			end(t, s, "a", JournalParked, create)
			create[0].Status = JournalSkipped
			must(t, s.PutJournal(t.Context(), create[0], JournalParked, Record{Actor: "me", Action: "skip", Reason: "gone"}))
		}
		losses = overview(t, s).Losses
		if len(losses) != 11 || losses[10].What != "POST /rest/bug" {
			t.Errorf("%d losses are %+v", len(losses), losses)
		}
		before := s.now()
		must(t, s.StartJournal(t.Context(), Record{Actor: "me"}))
		// A process may have counted it, and not yet told the store.
		must(t, s.AddJournalLosses(t.Context(), []JournalLoss{{Receiver: "next", Kind: LossPassed, What: "POST /rest/bug", Entries: 1, Last: before}}))
		if all = overview(t, s); len(all.Losses) != 0 || !all.Paused {
			t.Errorf("after the start: %+v", all)
		}
	})
}

// TestCopyIsBegunByOne process, for the entry as it is, and its ids are kept with its outcome or not at all.
func TestCopyIsBegunByOne(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		end(t, s, "a", JournalPending, begin(t, s, "a", "bug 1"))
		all, err := s.DueJournal(t.Context(), 10)
		if must(t, err); len(all) != 1 {
			t.Fatalf("%d are due", len(all))
		}
		read := all[0]
		tried := func(holder string, attempt string, want bool) {
			t.Helper()
			e := read
			e.Attempt = []byte(attempt)
			if begun, err := s.BeginCopy(t.Context(), holder, time.Minute, e); begun != want || err != nil {
				t.Fatalf("%s has begun: %t (%v), want %t", holder, begun, err, want)
			}
		}
		tried("a", "first", true)
		tried("b", "second", false)
		done := read
		done.Status = JournalApplied
		must(t, s.AddIDs(t.Context(), []IDPair{pair(1, "new", 7)}))
		wrong := []IDPair{pair(2, "new", 8), pair(3, "new", 7)}
		var conflict *IDConflictError
		if err := s.EndCopy(t.Context(), "a", read, done, wrong); !errors.As(err, &conflict) {
			t.Fatalf("contradicting ids: %v", err)
		}
		if e, err := s.JournalEntry(t.Context(), read.Seq); err != nil || e.Status != JournalPending || string(e.Attempt) != "first" || count(t, s, "portico_ids") != 1 {
			t.Fatalf("something was kept of what failed: %v %q (%v)", e.Status, e.Attempt, err)
		}
		later := read
		later.Next = read.Begun.Add(time.Second)
		must(t, s.EndCopy(t.Context(), "a", read, later, nil))
		tried("b", "second", false) // it has read what is no more
		read = later
		tried("b", "second", true)
		must(t, s.EndCopy(t.Context(), "b", read, done, wrong[:1]))
		if got := count(t, s, "portico_ids"); got != 2 || count(t, s, "portico_leases") != 0 {
			t.Errorf("%d ids are kept, and %d leases", got, count(t, s, "portico_leases"))
		}
	})
}

// TestChangesThatShareACommit do not share a failure.
func TestChangesThatShareACommit(t *testing.T) {
	s := open(t, newFile(t))
	begin(t, s, "other", "bug 2")
	var all sync.WaitGroup
	s.turn.Lock() // until all of them wait
	for lane, want := range map[string]bool{"bug 1": true, "bug 2": false, "bug 3": true} {
		all.Go(func() {
			if taken, err := s.BeginJournal(context.Background(), "a", time.Minute, []JournalEntry{intent(lane)}); taken != want || err != nil {
				t.Errorf("%s is taken: %t (%v), want %t", lane, taken, err, want)
			}
		})
	}
	for waiting := 0; waiting < 3; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		waiting = len(s.together)
		s.mu.Unlock()
	}
	s.turn.Unlock()
	all.Wait()
	if got := count(t, s, "portico_journal"); got != 3 {
		t.Errorf("%d entries, want 3", got)
	}
}

// TestAParkedCreateStopsItsObject: what follows in the lane of the object waits with it, so a move that leaves it behind leaves that behind, too.
func TestAParkedCreateStopsItsObject(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		first, second := begin(t, s, "a", "bug 1"), []JournalEntry(nil)
		first[0].Made = "attachment 7"
		end(t, s, "a", JournalParked, first)
		second = begin(t, s, "a", "bug 1")
		second[0].Made = "attachment 8"
		end(t, s, "a", JournalPending, second)
		end(t, s, "a", JournalPending, begin(t, s, "a", "attachment 7", "attachment 8", "attachment 9"))
		if got, err := s.JournalToCopy(t.Context(), "next", nil, 100); got != (ToCopy{Open: 1, Parked: 1, Last: 5}) || err != nil {
			t.Errorf("%+v (%v), want that the entry of attachment 9 is still copied", got, err)
		}
		must(t, s.ParkBehind(t.Context(), "next", []string{"all"}))
		if due := dueSeqs(t, s); len(due) != 1 || len(overview(t, s).Stopped) != 1 {
			t.Errorf("a move of another rule has left %d due", len(due))
		}
		must(t, s.ParkBehind(t.Context(), "next", nil))
		all, err := s.JournalOf(t.Context(), 10, false)
		must(t, err)
		for _, e := range all {
			if parked := e.Status == JournalParked; parked == (e.Lane == "attachment 9") {
				t.Errorf("entry %d of %s is %s", e.Seq, e.Lane, e.Status)
			}
		}
		var lanes int64
		for _, count := range overview(t, s).Counts {
			if count.Status == JournalParked {
				lanes += count.Lanes
			}
		}
		if got, err := s.JournalToCopy(t.Context(), "next", nil, 100); lanes != got.Parked || err != nil {
			t.Errorf("%d lanes are parked, %+v (%v)", lanes, got, err)
		}
	})
}

// TestARetryOverwritesNothing: the receiver of a parked update has got a later one since, as where the bug has moved to another product and back.
func TestARetryOverwritesNothing(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		write := func(operation mapping.Operation, target, receiver string, status JournalStatus) JournalEntry {
			t.Helper()
			e := []JournalEntry{intent("attachment 1")}
			e[0].Operation, e[0].Target, e[0].Receiver = operation, target, receiver
			taken, err := s.BeginJournal(t.Context(), "a", time.Minute, e)
			if must(t, err); !taken {
				t.Fatal("the lane is held")
			}
			end(t, s, "a", status, e)
			return e[0]
		}
		retried := func(e JournalEntry, by int64) {
			t.Helper()
			e.Status = JournalPending
			err := s.PutJournal(t.Context(), e, JournalParked, Record{Actor: "me", Action: "retry"})
			if overtaken, ok := errors.AsType[*OvertakenError](err); ok != (by > 0) || ok && overtaken.By != by || !ok && err != nil {
				t.Errorf("a retry of entry %d: %v", e.Seq, err)
			}
		}
		create := write(mapping.OpCreateAttachment, "main", "next", JournalParked)
		update := write(mapping.OpUpdateAttachments, "main", "next", JournalParked)
		write(mapping.OpUpdateAttachments, "main", "next", JournalParked) // which overwrites as much
		retried(update, 0)
		must(t, s.PutJournal(t.Context(), update, JournalPending, Record{}))
		write(mapping.OpUpdateAttachments, "next", "main", JournalRefused)
		later := write(mapping.OpUpdateAttachments, "next", "main", JournalParked)
		retried(update, later.Seq)
		later.Status = JournalSkipped
		must(t, s.PutJournal(t.Context(), later, JournalParked, Record{Actor: "me", Action: "skip"}))
		retried(update, later.Seq)
		retried(create, 0) // it overwrites nothing
		last := write(mapping.OpUpdateAttachments, "main", "next", JournalParked)
		retried(last, 0)
		if e, err := s.JournalEntry(t.Context(), update.Seq); e.Status != JournalParked || err != nil {
			t.Errorf("entry %d is %s (%v)", e.Seq, e.Status, err)
		}
	})
}

// TestNoCopyBeginsInAPause, also of an entry that was read before, and nothing waits for the ids of one that has begun.
func TestNoCopyBeginsInAPause(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		end(t, s, "a", JournalPending, begin(t, s, "a", "bug 1", "bug 2"))
		due, err := s.DueJournal(t.Context(), 10)
		if must(t, err); len(due) != 2 {
			t.Fatalf("%d are due", len(due))
		}
		due[0].Attempt = []byte("tried")
		copying := func(want int) {
			t.Helper()
			if got, err := s.JournalCopying(t.Context(), "next"); len(got) != want || err != nil {
				t.Errorf("%v are being copied (%v), want %d", got, err, want)
			}
		}
		if begun, err := s.BeginCopy(t.Context(), "a", time.Minute, due[0]); !begun || err != nil {
			t.Fatal(err)
		}
		copying(1)
		must(t, s.KillJournal(t.Context(), "next", Record{Actor: "me"}))
		copying(0)
		if begun, err := s.BeginCopy(t.Context(), "a", time.Minute, due[1]); begun || err != nil {
			t.Errorf("a copy has begun after the kill (%v)", err)
		}
	})
}

// TestACopyEndsThatWasParkedUnderWay: what is carried out would be made twice by a retry.
func TestACopyEndsThatWasParkedUnderWay(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		for _, c := range []struct{ outcome, want JournalStatus }{{JournalApplied, JournalApplied}, {JournalPending, JournalParked}} {
			end(t, s, "a", JournalPending, begin(t, s, "a", "bug 1"))
			due, err := s.DueJournal(t.Context(), 10)
			if must(t, err); len(due) != 1 {
				t.Fatalf("%d are due", len(due))
			}
			parked, ended := due[0], due[0]
			if begun, err := s.BeginCopy(t.Context(), "a", time.Minute, due[0]); !begun || err != nil {
				t.Fatal(err)
			}
			parked.Status = JournalParked
			must(t, s.PutJournal(t.Context(), parked, JournalPending, Record{Actor: "me"}))
			ended.Status = c.outcome
			must(t, s.EndCopy(t.Context(), "a", due[0], ended, nil))
			if e, err := s.JournalEntry(t.Context(), ended.Seq); e.Status != c.want || err != nil {
				t.Errorf("an entry that was parked is %s after its copy ended as %s (%v)", e.Status, c.outcome, err)
			}
		}
	})
}

// TestACopyIsEndedByTheHolderOfItsLane: a process that was stopped for longer than its lease changes nothing of what the next one does.
func TestACopyIsEndedByTheHolderOfItsLane(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, clock *clock) {
		entries := begin(t, s, "w", "bug 1")
		end(t, s, "w", JournalPending, entries)
		copies := func(holder string, attempt string) JournalEntry {
			t.Helper()
			e, err := s.JournalEntry(t.Context(), entries[0].Seq)
			must(t, err)
			e.Attempt = []byte(attempt)
			begun, err := s.BeginCopy(t.Context(), holder, time.Minute, e)
			if must(t, err); !begun {
				t.Fatal("the copy is not begun")
			}
			return e
		}
		first := copies("a", "1")
		clock.pass(2 * time.Minute)
		second := copies("b", "1")
		stopped := first
		stopped.Attempt, stopped.Reason = nil, "not sent"
		err := s.EndCopy(t.Context(), "a", first, stopped, nil)
		if e, _ := s.JournalEntry(t.Context(), first.Seq); err == nil || e.Attempt == nil {
			t.Errorf("%v, the entry is %+v", err, e)
		}
		second.Status = JournalApplied
		must(t, s.EndCopy(t.Context(), "b", first, second, nil))
	})
}
