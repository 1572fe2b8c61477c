package switchover

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/upstream/state"
)

// TestSettingsAreReplacedInPlace: rules of operators stay until the configured ones are others, and settings with a mistake change nothing.
func TestSettingsAreReplacedInPlace(t *testing.T) {
	store := openDisturbed(t)
	b := openBenchOver(t, store.Store, time.Hour, always(PhaseOld, PhaseOld))
	b.change(t, always(PhaseNew, PhaseOld))
	next := &fake{name: "next"}
	b.set(t, func(s *Settings) { s.Trackers["new"] = next })
	b.do(t, "k", ofBugs("1"))
	if calls := next.taken(); len(calls) != 1 || b.Status().Version != 2 {
		t.Errorf("the new client of the new tracker got %v, the version is %d", calls, b.Status().Version)
	}
	settings := b.settings
	settings.Table = Table{Rules: []Rule{always(PhaseOld, PhaseNew)}}
	if _, invalid := errors.AsType[*InvalidError](b.Set(t.Context(), settings)); !invalid || b.by(t, "k", ofBugs("1")) != "new" {
		t.Error("rules with a mistake are in force")
	}
	back := store.away()
	settings.Table = Table{Rules: []Rule{always(PhaseOldCompare, PhaseOld)}}
	if err := b.Set(t.Context(), settings); err == nil || b.by(t, "k", ofBugs("1")) != "new" {
		t.Errorf("rules that could not be stored are in force (%v)", err)
	}
	back()
	b.configure(t, always(PhaseOldCompare, PhaseOld))
	if status := b.Status(); status.Version != 3 || status.Source != state.SourceConfig || b.by(t, "k", ofBugs("1")) != "old" {
		t.Errorf("other configured rules are not in force: %+v", status)
	}
}

// TestTheLogSaysThatTheStoreIsAwayAndBack, once each.
func TestTheLogSaysThatTheStoreIsAwayAndBack(t *testing.T) {
	store, log := openDisturbed(t), &process.Output{}
	b := openBenchOver(t, store.Store, time.Hour, always(PhaseOld, PhaseOld))
	b.set(t, func(s *Settings) { s.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	back := store.away()
	_, _ = b.refresh(t.Context()), b.refresh(t.Context())
	back()
	_, _ = b.refresh(t.Context()), b.refresh(t.Context())
	for _, line := range []string{`level=WARN msg="rules of other processes are unknown here;`, `level=INFO msg="rules of other processes are known again"`} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%d lines have %s:\n%s", n, line, log)
		}
	}
}

// TestAStoredTableThatIsUnreadableIsAnError, though it was made on the configured one.
func TestAStoredTableThatIsUnreadableIsAnError(t *testing.T) {
	b := openBench(t, always(PhaseOld, PhaseOld))
	for _, text := range []string{"", "{}", "[]"} {
		present, _ := b.store.CurrentRevision(t.Context())
		present.Table = []byte(text)
		if _, err := b.store.Revise(t.Context(), present.Version, present, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := New(t.Context(), b.options); err == nil {
			t.Errorf("%q is taken for a table", text)
		}
		if err := b.refresh(t.Context()); err == nil || b.Status().Stale == "" || b.by(t, "k", ofBugs("1")) != "old" {
			t.Errorf("%q is taken over (%v)", text, err)
		}
	}
}

// TestTheObserverIsTold of each call and lookup, of writes that are refused and of other rules.
func TestTheObserverIsTold(t *testing.T) {
	b := openBench(t, always(PhaseOld, PhaseOld))
	var told []string
	tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	b.set(t, func(s *Settings) {
		s.Observer = Observer{
			Routed: func(operation mapping.Operation, rule, tracker string) {
				tell("%s by %s to %s", operation, rule, tracker)
			},
			Refused:  func(operation mapping.Operation) { tell("%s refused", operation) },
			LookedUp: func(what, outcome string) { tell("%s %s", what, outcome) },
			Changed:  func(status Status) { tell("version %d", status.Version) },
		}
	})
	b.change(t, moved(Rule{Products: []string{"P1"}}), always(PhaseOld, PhaseOld))
	b.do(t, "k", ofBugs("1"))
	wantRefused(t, attachTo("1", "2").Make(t.Context(), b.Switchover, caller("k")).Err)
	slices.Sort(told)
	want := []string{"attachment.create refused", "attachment.list by moved to new", "bug found", "bug found", "version 1", "version 2", "version 3"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
