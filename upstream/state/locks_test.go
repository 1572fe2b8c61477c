package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// lock takes what keeps everybody else from writing until it is given up.
func lock(t *testing.T, s *Store, dsn string) (giveUp func()) {
	t.Helper()
	other := open(t, dsn)
	tx, err := other.writer.BeginTx(t.Context(), nil)
	must(t, err)
	if s.dialect == &postgresDialect {
		_, err = tx.Exec("LOCK TABLE portico_audit IN SHARE MODE")
		must(t, err)
	}
	return sync.OnceFunc(func() {
		if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			t.Error(err)
		}
	})
}

func TestLockedDatabase(t *testing.T) {
	onShared(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		must(t, s.Append(t.Context(), Record{Actor: "before"}))
		giveUp := lock(t, s, dsn)
		defer giveUp()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := s.Append(ctx, Record{Actor: "too early"})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
			t.Errorf("got %v after %v, want that the deadline is over", err, time.Since(began))
		}
		if records, err := s.Audit(t.Context(), 9); err != nil || len(records) != 1 {
			t.Errorf("reading while somebody writes: %v, %v", records, err)
		}
		waited := make(chan error)
		go func() { waited <- s.Append(context.Background(), Record{Actor: "after"}) }()
		giveUp()
		must(t, <-waited)
		if records, err := s.Audit(t.Context(), 9); err != nil || len(records) != 2 || records[0].Actor != "after" {
			t.Errorf("got %v, %v, want two records", records, err)
		}
	})
}

// TestAProcessThatIsCutOffKeepsNoLock: it was stopped within a transaction, or its machine is gone.
func TestAProcessThatIsCutOffKeepsNoLock(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	s, gone := open(t, dsn), open(t, dsn)
	tx, err := gone.writer.BeginTx(t.Context(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.Exec("UPDATE portico_journal_pause SET paused = paused")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, s.KillJournal(ctx, "old", Record{Actor: "me", Action: "kill"}))
}

func TestAdditionsWaitForReset(t *testing.T) {
	onShared(t, func(t *testing.T, dsn string) {
		s, other := open(t, dsn), open(t, dsn)
		briefly := func(do func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			return do(ctx)
		}
		additions := []func(context.Context) error{
			func(ctx context.Context) error { return s.AddTallies(ctx, []Tally{someTally()}) },
			func(ctx context.Context) error { return s.AddRuleUses(ctx, []RuleUse{{"a", 1, future}}) },
			func(ctx context.Context) error { return s.RecordFinding(ctx, Finding{Signature: "a"}, nil, 0) },
		}
		must(t, additions[0](t.Context())) // and what is old is gone
		must(t, other.transact(t.Context(), func(tx *session) {
			tx.lockCampaign(tx.forUpdate)
			for i, add := range additions {
				if err := briefly(add); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("addition %d during a reset: got %v, want that it waits", i, err)
				}
			}
		}))
		must(t, other.transact(t.Context(), func(tx *session) {
			tx.lockCampaign(tx.forShare)
			if err := briefly(func(ctx context.Context) error { return s.StartCampaign(ctx, "ada", "again") }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a reset during an addition: got %v, want that it waits", err)
			}
		}))
	})
}

// TestResetsAmongAdditions has everybody change the same rows in the order of his
// own table. PostgreSQL ends one of two that wait for each other.
func TestResetsAmongAdditions(t *testing.T) {
	onShared(t, func(t *testing.T, dsn string) {
		stores := []*Store{open(t, dsn), open(t, dsn)}
		var all sync.WaitGroup
		for i := range jobs {
			all.Go(func() {
				for range 4 * perJob {
					if err := addAll(stores[i%2], i == 0); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// addAll adds to all that belongs to a campaign, and may start another one.
func addAll(s *Store, reset bool) error {
	ctx := context.Background()
	if reset {
		return s.StartCampaign(ctx, "ada", "again")
	}
	var tallies []Tally
	for minute := range 6 {
		tally := someTally()
		tally.At = tally.At.Add(-time.Duration(minute) * time.Minute)
		tallies = append(tallies, tally)
	}
	var seen []*Sighting
	for _, n := range rand.Perm(6) {
		seen = append(seen, &Sighting{Finding{Signature: fmt.Sprint(n), Kind: "reply", Count: 1, First: noon, Last: noon}, []byte("{}")})
	}
	refused, err := s.RecordFindings(ctx, seen, 2)
	if err == nil && len(refused) > 0 {
		err = errFull
	}
	return errors.Join(
		err,
		// The last of them lies first in the table, where it was just begun anew.
		s.AddTallies(ctx, tallies[:1]),
		s.AddTallies(ctx, tallies),
		s.AddRuleUses(ctx, []RuleUse{{"b", 1, future}, {"a", 1, future}, {"c", 1, future}}),
		s.RecordFinding(ctx, Finding{Signature: "a"}, []byte("{}"), 2),
	)
}
