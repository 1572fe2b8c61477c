package switchover

import (
	"context"
	"database/sql" //nolint:depguard // only to be in the way of the store, as another process may be
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"portico/upstream/state"
)

// locked takes SQLite's lock of those who write, as another process would. The
// store can be read all the while.
func locked(t *testing.T, file string) (unlock func()) {
	t.Helper()
	other, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	holder, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := holder.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
	}
}

// killedOnlyHere throws the kill switch of which the store cannot be told.
func (b *bench) killedOnlyHere(t *testing.T) {
	t.Helper()
	err := b.Kill(t.Context(), "ann", "it burns")
	if _, ok := errors.AsType[*UndeliveredError](err); !ok {
		t.Fatalf("got %v, want that the store does not know", err)
	}
	if got := b.by(t, "k", ofBugs("1")); got != "old" {
		t.Errorf("after the kill a read goes to the %s tracker", got)
	}
	if status := b.Status(t.Context()); status.Killed == nil || status.Undelivered == "" {
		t.Errorf("the status is %+v, want a kill that only this process knows of", status)
	}
}

// wantStored waits until a kill is in the store, and no longer only here.
func (b *bench) wantStored(t *testing.T) {
	t.Helper()
	eventually(t, "the kill in the store", func() bool {
		stored, _, err := b.ledger.CurrentRevision(t.Context())
		status := b.Status(t.Context())
		return err == nil && killedIn(stored) != nil && status.Killed != nil && status.Undelivered == ""
	})
}

func TestAKillDoesNotWaitForAChangeThatIsStuck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	b := replica(t, file, always(PhaseNew, PhaseNew))
	unlock := locked(t, file)
	changed := make(chan error, 1)
	go func() {
		next := Table{Rules: []Rule{always(PhaseNewCompare, PhaseNew)}}
		changed <- b.Change(context.WithoutCancel(t.Context()), 1, next, "bob", "a change")
	}()
	eventually(t, "the change's turn", func() bool { return len(b.memory.storing) > 0 })
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

func TestAKillThatIsNotStoredOutlivesAReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	b := replica(t, file, always(PhaseNew, PhaseNew))
	unlock := locked(t, file)
	b.killedOnlyHere(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.reopen(t, Options{Table: Table{Rules: []Rule{always(PhaseNew, PhaseNew)}}, Store: b.options.Store, Poll: 5 * time.Millisecond})
	if status := b.Status(t.Context()); status.Killed == nil || status.Undelivered == "" || b.by(t, "k", ofBugs("1")) != "old" {
		t.Errorf("after a reload the status is %+v", status)
	}
	unlock()
	b.wantStored(t)
	if err := b.Revive(t.Context(), "ann", "over"); err != nil || b.Status(t.Context()).Killed != nil {
		t.Errorf("the kill does not end: %v", err)
	}
}

func TestAKillDuringAReloadCountsInTheNextSwitchover(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	former := b.Switchover
	store := &weak{ledger: former.ledger}
	store.down.Store(true)
	former.ledger = store
	b.reopen(t, Options{Table: Table{Rules: []Rule{always(PhaseNew, PhaseNew)}}, Poll: time.Hour})
	b.ledger = store
	if err := former.Kill(t.Context(), "ann", "it burns"); err == nil {
		t.Fatal("the store was told")
	}
	if b.Status(t.Context()).Killed == nil {
		t.Error("the kill does not count")
	}
	store.down.Store(false)
	if err := b.deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantStored(t)
}

func TestAKillOnlyHereIsTakenBackWithoutTheStore(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	store := &weak{ledger: b.ledger}
	b.ledger = store
	store.down.Store(true)
	b.killedOnlyHere(t)
	if err := b.Revive(t.Context(), "ann", "a slip"); err != nil {
		t.Fatal(err)
	}
	store.down.Store(false)
	if err := b.deliver(t.Context()); err != nil || b.Status(t.Context()).Killed != nil || b.by(t, "k", ofBugs("1")) != "new" {
		t.Errorf("the kill counts again: %+v (%v)", b.Status(t.Context()), err)
	}
}

// TestAKillThatComesBackLate has a process come back with a kill that the store
// does not know, after another one has killed and revived.
func TestAKillThatComesBackLate(t *testing.T) {
	for name, c := range map[string]struct {
		thrown time.Duration // after the revival elsewhere
		killed bool
	}{
		"thrown before the revival": {-time.Minute, false},
		"thrown after it":           {time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "s.db")
			away, other := replica(t, file, always(PhaseNew, PhaseNew)), replica(t, file, always(PhaseNew, PhaseNew))
			if err := away.Close(); err != nil { // it asks only when told to
				t.Fatal(err)
			}
			store := &weak{ledger: away.ledger}
			away.ledger = store
			store.down.Store(true)
			away.clock.pass(time.Hour + c.thrown)
			away.killedOnlyHere(t)
			other.clock.pass(time.Hour)
			if err := errors.Join(other.Kill(t.Context(), "bob", "it burns"), other.Revive(t.Context(), "bob", "it is out")); err != nil {
				t.Fatal(err)
			}
			store.down.Store(false)
			if err := errors.Join(away.refresh(t.Context()), away.deliver(t.Context())); err != nil {
				t.Fatal(err)
			}
			stored, _, err := store.CurrentRevision(t.Context())
			if here := away.Status(t.Context()).Killed != nil; err != nil || here != c.killed || (killedIn(stored) != nil) != c.killed {
				t.Errorf("killed here: %v, in the store: %s (%v)", here, stored.Table, err)
			}
		})
	}
}

// gated is a ledger whose first change waits until it is let through.
type gated struct {
	ledger
	once    sync.Once
	in, out chan struct{}
}

func (g *gated) Revise(ctx context.Context, expected int64, next state.Revision) (state.Revision, error) {
	g.once.Do(func() {
		close(g.in)
		<-g.out
	})
	return g.ledger.Revise(ctx, expected, next)
}

func TestAKillIsNotStoredAgainAfterARevival(t *testing.T) {
	b := openBench(t, always(PhaseNew, PhaseNew))
	store := &gated{ledger: b.ledger, in: make(chan struct{}), out: make(chan struct{})}
	b.ledger = store
	killed, again := make(chan error, 1), make(chan error, 1)
	go func() { killed <- b.Kill(context.WithoutCancel(t.Context()), "ann", "it burns") }()
	<-store.in
	// This is what is done every second.
	go func() { again <- b.deliver(context.WithoutCancel(t.Context())) }()
	close(store.out)
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	if err := b.Revive(t.Context(), "ann", "it is out"); err != nil {
		t.Fatal(err)
	}
	if err := <-again; err != nil || b.Status(t.Context()).Killed != nil {
		t.Errorf("killed again: %+v (%v)", b.Status(t.Context()).Killed, err)
	}
	if history, err := b.History(t.Context(), 10); err != nil || len(history) != 3 {
		t.Errorf("the history is %+v (%v), want one kill and one revival", history, err)
	}
}

func TestTheStartDoesNotWaitForTheStoreForEver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	b := replica(t, file, always(PhaseOld, PhaseOld))
	unlock := locked(t, file)
	options := b.options
	options.Table, options.StoreTimeout = Table{Rules: []Rule{always(PhaseNew, PhaseNew)}}, 50*time.Millisecond
	opened, err := New(context.WithoutCancel(t.Context()), options)
	if err == nil {
		_ = opened.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that the store took too long", err)
	}
	unlock()
}
