package switchover

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"portico/test/process"
	"portico/upstream/state"
)

// replica opens another switchover over the same store.
func replica(t *testing.T, file string, rules ...Rule) *bench {
	t.Helper()
	return openBenchOver(t, openStore(t, file), 5*time.Millisecond, rules...)
}

func TestChangesAreCompareAndSet(t *testing.T) {
	b := openBench(t, always(PhaseOld, PhaseOld))
	version := b.Status().Version
	next := Table{Rules: []Rule{always(PhaseNew, PhaseOld)}}
	must(t, b.Change(t.Context(), version, next, "ann", "to see"))
	status := b.Status()
	if status.Version != version+1 || status.Actor != "ann" || status.Reason != "to see" || status.Source != state.SourceAdmin {
		t.Errorf("got %+v", status)
	}
	b.wantBy(t, "k", ofBugs("1"), "new", "")
	b.checkChangesRefused(t, version, next)
	if history, err := b.History(t.Context(), 10); err != nil || len(history) != 2 || history[0].Actor != "ann" || history[1].Source != state.SourceConfig {
		t.Errorf("the history is %+v (%v)", history, err)
	}
}

func (b *bench) checkChangesRefused(t *testing.T, former int64, next Table) {
	t.Helper()
	err := b.Change(t.Context(), former, next, "bob", "too late")
	if conflict, ok := errors.AsType[*state.ConflictError](err); !ok || conflict.Present.Version != former+1 || conflict.Present.Actor != "ann" {
		t.Errorf("a change of a former version: %v", err)
	}
	_, ok := errors.AsType[*InvalidError](b.Change(t.Context(), former+1, Table{Rules: []Rule{always(PhaseOld, PhaseNew)}}, "bob", "behind"))
	if !ok {
		t.Error("rules with reads behind writes were taken")
	}
	if got := b.Status().Version; got != former+1 {
		t.Errorf("refused changes made version %d", got)
	}
}

func TestReplicasFollowEachOther(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	one, two := replica(t, file, always(PhaseOld, PhaseOld)), replica(t, file, always(PhaseOld, PhaseOld))
	goes := func(to string) func() bool {
		return func() bool { return two.by(t, "k", ofBugs("1")) == to }
	}
	one.change(t, always(PhaseNew, PhaseNew))
	process.Eventually(t, "the other replica's change", goes("new"))
	must(t, one.Kill(t.Context(), "ann", "all burns"))
	one.wantBy(t, "k", ofBugs("1"), "old", "after the kill")
	process.Eventually(t, "the other replica's kill", goes("old"))
	if killed := two.Status().Killed; killed == nil || killed.Actor != "ann" || killed.Reason != "all burns" {
		t.Errorf("the other replica tells %+v of the kill", killed)
	}
	if two.Passthrough(false) != "old" {
		t.Error("the passthrough is not killed")
	}
	// Other rules neither release the kill switch nor begin to count.
	two.change(t, always(PhaseNew, PhaseOld))
	if got := two.by(t, "k", ofBugs("1")); got != "old" || two.Status().Killed == nil {
		t.Errorf("changed rules released the kill switch: %s", got)
	}
	again := replica(t, file, always(PhaseNew, PhaseNew))
	if again.Status().Killed == nil {
		t.Error("another configuration released the kill switch")
	}
	must(t, two.Revive(t.Context(), "bob", "it is out"))
	process.Eventually(t, "the end of the kill", func() bool { return one.Status().Killed == nil })
	two.wantBy(t, "k", ofBugs("1"), "new", "after the revival")
	checkAudit(t, two.store, actionRevive, actionChange, actionKill, actionChange)
}

func checkAudit(t *testing.T, store *state.Store, actions ...string) {
	t.Helper()
	records, err := store.Audit(t.Context(), 10)
	if err != nil || len(records) != len(actions) {
		t.Fatalf("the audit trail is %+v (%v)", records, err)
	}
	for i, record := range records {
		if record.Action != actions[i] || record.Actor == "" || record.Reason == "" || len(record.Detail) == 0 {
			t.Errorf("record %d is %+v, want %s", i, record, actions[i])
		}
	}
}

// TestAChangeThroughAReplicaWithAnotherConfiguration lets operators reach the one
// that has not read today's configuration yet.
func TestAChangeThroughAReplicaWithAnotherConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	yesterday := replica(t, file, always(PhaseOld, PhaseOld))
	today := replica(t, file, always(PhaseOldCompare, PhaseOld))
	next := Table{Rules: []Rule{always(PhaseNew, PhaseNew)}}
	must(t, yesterday.Change(t.Context(), today.Status().Version, next, "ann", "to move"))
	must(t, errors.Join(yesterday.Kill(t.Context(), "ann", "it burns"), yesterday.Revive(t.Context(), "ann", "it is out")))
	again := replica(t, file, always(PhaseOldCompare, PhaseOld))
	if status := again.Status(); status.Source != state.SourceAdmin || status.Version != 7 || status.Table.Rules[0].Reads != PhaseNew {
		t.Errorf("what an operator changed is gone though the configuration is the same: %+v", status)
	}
}

// killedIn is the kill of a stored revision.
func killedIn(revision state.Revision) *Kill {
	var stored Table
	_ = json.Unmarshal(revision.Table, &stored)
	return stored.Killed
}

func TestNoOlderRulesAreTakenOver(t *testing.T) {
	b := openBench(t, always(PhaseOld, PhaseOld))
	former := b.rules.Load().revision
	b.change(t, always(PhaseNew, PhaseNew))
	if err := b.take(former); err != nil || b.Status().Version != former.Version+2 {
		t.Errorf("version %d was taken over again (%v)", former.Version, err)
	}
}
