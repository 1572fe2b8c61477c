package state

import (
	"slices"
	"testing"
	"time"
)

// TestHeartbeatsTellWhoIsBehind by the clock of the database, whatever those of the processes say.
func TestHeartbeatsTellWhoIsBehind(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		beat := func(process string, version int64, lasts time.Duration) {
			t.Helper()
			must(t, s.Beat(t.Context(), process, version, lasts))
		}
		check := func(version int64, want ...string) {
			t.Helper()
			if got, err := s.Behind(t.Context(), version); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q are behind version %d, want %q (%v)", got, version, want, err)
			}
		}
		beat("a:1", 3, time.Hour)
		beat("b:2", 9, time.Hour)
		beat("c:3", 3, time.Millisecond)
		time.Sleep(5 * time.Millisecond)
		begin(t, s, "a", "bug 1") // another lease
		check(3)
		check(4, "a:1")
		check(10, "a:1", "b:2")
		beat("a:1", 10, time.Hour)
		check(10, "b:2")
		beat("b:2", 9, 0) // it ends
		beat("c:3", 2, time.Hour)
		check(10, "c:3")
		beat("old", 1, -2*time.Hour)
		beat("a:1", 10, time.Hour)
		if got := count(t, s, "portico_leases"); got != 4 {
			t.Errorf("%d leases are kept, want 4", got)
		}
	})
}

// TestJournalToCopyCountsWhatAMoveWaitsFor and nothing that began later, goes elsewhere or waits for an operator.
func TestJournalToCopyCountsWhatAMoveWaitsFor(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		check := func(receiver string, upTo, want, wantLast int64) {
			t.Helper()
			if got, err := s.JournalToCopy(t.Context(), receiver, nil, upTo); err != nil || got.Open != want || got.Last != wantLast {
				t.Errorf("%+v up to %d, want %d and %d (%v)", got, upTo, want, wantLast, err)
			}
		}
		check("next", 1, 0, 0)
		begun := begin(t, s, "a", "bug 1", "bug 2", "bug 3")
		check("next", 100, 3, 3)
		check("next", 2, 2, 3)
		check("main", 100, 0, 3)
		end(t, s, "a", JournalPending, begun[:1])
		end(t, s, "a", JournalParked, begun[1:2])
		end(t, s, "a", JournalApplied, begun[2:])
		behind := begin(t, s, "a", "bug 2") // behind the parked one
		end(t, s, "a", JournalPending, behind)
		check("next", 100, 1, 4)
		must(t, s.StartJournal(t.Context(), Record{}))
		for staying, want := range map[string]ToCopy{"other": {1, 1, 4, true}, "all": {0, 0, 4, true}} {
			if got, err := s.JournalToCopy(t.Context(), "next", []string{"another", staying}, 100); err != nil || got != want {
				t.Errorf("where %q stays: %+v, want %+v (%v)", staying, got, want, err)
			}
		}
	})
}
