package canary_test

import (
	"bytes"
	"context"
	"database/sql" //nolint:depguard // only to fill the store, which takes long otherwise
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
	"portico/upstream/transport"
)

// counts is an Observer.
type counts struct {
	mu       sync.Mutex
	compared map[canary.Outcome]int64
	dropped  map[verdict.DropReason]int64
}

func (c *counts) Compared(_ mapping.Operation, outcome canary.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compared[outcome]++
}

func (c *counts) Dropped(_ mapping.Operation, reason verdict.DropReason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped[reason]++
}

// TestFlushHappensByItself, about once in a second.
func TestFlushHappensByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	w.make(flagTypes("TestProduct"))
	process.Eventually(t, "the comparison is that far", func() bool {
		list, err := w.store.Tallies(t.Context(), time.Time{})
		return err == nil && len(list) == 1 && list[0].Same == 1
	})
}

// TestStoreThatFailsLosesNothing: what could not be written is written later.
func TestStoreThatFailsLosesNothing(t *testing.T) {
	t.Parallel()
	file := "sqlite:" + t.TempDir() + "/state.db"
	store, err := state.Open(t.Context(), file)
	must(t, err)
	_ = store.Close()
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) { o.Store = store }})
	w.make(flagTypes("TestProduct"))
	process.Eventually(t, "nothing is under way", func() bool { return w.canary.Load().Pending == 0 })
	if err := w.canary.Settle(t.Context()); err == nil {
		t.Error("writing to a closed store went well")
	}
	w.make(flagTypes("TestProduct")) // the client does not notice
	if _, err := w.canary.Report(t.Context()); err == nil {
		t.Error("there is a report without a store")
	}
	if err := w.canary.Close(); err == nil {
		t.Error("closing says nothing of what is lost")
	}
}

// TestWhatCouldNotBeWrittenIsWrittenLater, each thing once.
func TestWhatCouldNotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()
	seen := &counts{compared: map[canary.Outcome]int64{}, dropped: map[verdict.DropReason]int64{}}
	w := newWorld(t, worldOptions{
		fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}},
		tune:  func(o *canary.Options) { o.Observer = seen },
	})
	w.make(attachment("1"))
	w.canary.Answered(t.Context(), w.caller, flagTypes("P"), sides, upstream.Response{Document: &mapping.Document{NotModified: true}})
	process.Eventually(t, "nothing is under way", func() bool { return w.canary.Load().Pending == 0 })
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 3 {
		w.make(flagTypes("NoSuchProduct"))
		process.Eventually(t, "nothing is under way", func() bool { return w.canary.Load().Pending == 0 })
		_ = w.canary.Settle(gone) // it fails where there is something to write
	}
	if got := w.sum(""); got.Same != 3 || got.Confirmed != 1 || got.Compared != 4 {
		t.Errorf("got %+v, want 3 the same and 1 confirmed", got)
	}
	if list, err := w.store.Findings(t.Context()); err != nil || len(list) != 1 || list[0].Count != 1 {
		t.Errorf("the findings are %+v (%v)", list, err)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.compared[canary.OutcomeSame] != 3 || seen.compared[canary.OutcomeConfirmed] != 1 || seen.dropped[verdict.DropNotModified] != 1 {
		t.Errorf("the observer saw %v and %v, want each once", seen.compared, seen.dropped)
	}
}

// TestSlowCandidateIsAFinding once there are enough answers of both.
func TestSlowCandidateIsAFinding(t *testing.T) {
	w := newWorld(t, worldOptions{
		fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkSlow}},
		tune: func(o *canary.Options) {
			o.Latency, o.Workers = verdict.LatencyTarget{Ratio: 2, Slack: 50 * time.Millisecond, Least: 20}, 8
		},
	})
	for range 19 {
		w.make(attachment("1"))
	}
	if got := w.findings(); len(got) != 0 {
		t.Errorf("found %q from 19 answers", got)
	}
	for range 31 { // the first one more makes it seem slow, and twenty pairs prove it; noise brings some of them
		w.make(attachment("1"))
	}
	if got := w.findings(); len(got) != 1 || got[0] != "attachment.get latency latency.p50" {
		t.Errorf("found %q, want slowness", got)
	}
	list, _ := w.store.Findings(t.Context())
	if list[0].Kind != "latency" || list[0].Count != 1 || list[0].Samples != 1 {
		t.Errorf("the finding is %+v", list[0])
	}
	report, err := w.canary.Report(t.Context())
	if err != nil || report.Verdict != verdict.Fail || report.Overall.Compared != 50 || report.Pair != sides {
		t.Errorf("the report is %+v (%v), want FAIL", report.Overall, err)
	}
	must(t, w.canary.Judge(t.Context(), list[0].Signature, state.StatusFixed, "ada", "a new build", time.Time{}))
	for range 50 {
		w.make(attachment("1"))
	}
	w.settle()
	if list, _ = w.store.Findings(t.Context()); list[0].Status != state.StatusOpen {
		t.Errorf("what is as slow afterwards is %+v", list[0])
	}
}

// TestBusyMachineIsNoSlowCandidate: where both trackers keep the comparison waiting and clients not, the candidate is as
// fast as the reference.
func TestBusyMachineIsNoSlowCandidate(t *testing.T) {
	waiting := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Portico-Role") != "" {
				time.Sleep(200 * time.Millisecond) // far more than a busy machine adds to one tracker only
			}
			next.ServeHTTP(w, r)
		})
	}
	w := newWorld(t, worldOptions{aroundOld: waiting, around: waiting, tune: func(o *canary.Options) {
		o.Latency, o.Workers = verdict.LatencyTarget{Ratio: 4, Slack: 100 * time.Millisecond, Least: 20}, 8
	}})
	for range 60 {
		w.make(attachment("1"))
	}
	if got := w.findings(); len(got) != 0 {
		t.Errorf("found %q, want nothing", got)
	}
	if n := w.old.Requests()["attachment.get"]; n < 70 {
		t.Errorf("the old tracker was asked %d times: nothing was made sure of", n)
	}
}

// moody is a candidate that refuses everything while bad is set.
type moody struct{ bad atomic.Bool }

func (m *moody) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !m.bad.Load() {
			next.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":true,"code":102,"message":"not for you"}`))
	})
}

func (w *world) report() verdict.Report {
	w.t.Helper()
	w.settle()
	report, err := w.canary.Report(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// judgeAll says the same of all findings.
func (w *world) judgeAll(judge func(signature string) error) {
	w.t.Helper()
	for _, f := range w.report().Findings {
		if err := judge(f.Signature); err != nil {
			w.t.Fatal(err)
		}
	}
}

// another is a second process that compares the same trackers.
func (w *world) another() *canary.Canary {
	w.t.Helper()
	o := canary.Options{Trackers: map[string]canary.Tracker{
		oldName: {Tracker: dial(w.t, w.old.url, transport.Options{})}, newName: {Tracker: dial(w.t, w.fresh.url, transport.Options{})},
	}, Store: w.store, Candidate: newName}
	other := canary.New(canary.Complete(o))
	w.t.Cleanup(func() { _ = other.Close() })
	return other
}

// differ makes a call whose answers differ, and waits until as many as given still wait for being asked again.
func (m *moody) differ(w *world, waiting int) {
	w.t.Helper()
	m.bad.Store(true)
	w.make(attachment("1"))
	process.Eventually(w.t, "the comparison is that far", func() bool { load := w.canary.Load(); return load.Waiting == waiting && load.Pending == waiting })
}

// TestWhatBeganBeforeDoesNotCount: when the comparison is reset or a finding is marked as fixed, here or in another process, what this one
// has counted and not yet written, or still asks about, is of the time before. What is made afterwards counts.
func TestWhatBeganBeforeDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		elsewhere, fixed bool
		waiting          int
	}{
		"reset": {false, false, 1}, "reset elsewhere": {true, false, 1}, "reset elsewhere, all is counted": {true, false, 0},
		"fixed": {false, true, 1}, "fixed elsewhere": {true, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var candidate moody
			w := newWorld(t, worldOptions{around: candidate.around, tune: func(o *canary.Options) { o.ConfirmAfter = 300 * time.Millisecond }})
			at := w.canary
			if c.elsewhere {
				at = w.another()
			}
			if c.fixed {
				candidate.differ(w, 0)
			}
			known := w.report().Findings // and the batch is written
			candidate.differ(w, c.waiting)
			w.canary.Answered(t.Context(), w.caller, flagTypes("P"), sides, upstream.Response{Document: &mapping.Document{NotModified: true}})
			if !c.fixed {
				must(t, at.Reset(t.Context(), "ada", "a better candidate"))
			}
			for _, f := range known {
				must(t, at.Judge(t.Context(), f.Signature, state.StatusFixed, "ada", "a new build", time.Time{}))
			}
			candidate.bad.Store(false)
			w.make(attachment("1"))
			report := w.report()
			if !c.fixed && len(report.Dropped) > 0 {
				t.Errorf("%v were dropped before the reset, and count", report.Dropped)
			}
			isOpen := func(f state.Finding) bool { return f.Status != state.StatusFixed }
			if report.Overall.Compared != 1 || len(report.Findings) != len(known) || slices.ContainsFunc(report.Findings, isOpen) || (len(known) > 0) != c.fixed {
				t.Errorf("%+v with %+v, before %+v", report.Overall, report.Findings, known)
			}
		})
	}
}

// TestAcceptingReachesBack to comparisons that were made before, each counted once.
func TestAcceptingReachesBack(t *testing.T) {
	t.Parallel()
	var candidate moody
	w := newWorld(t, worldOptions{around: candidate.around})
	candidate.bad.Store(true)
	for range 5 {
		w.make(attachment("1"))
	}
	accept := func(signature string) error {
		return w.canary.Judge(t.Context(), signature, state.StatusAccepted, "ada", "harmless", time.Time{})
	}
	first := w.report().Findings[0].Signature
	must(t, accept(first))
	if v := w.report().Overall; v.Confirmed != 5 || v.Accepted != 0 {
		t.Errorf("with one accepted: %+v", v)
	}
	w.judgeAll(accept)
	if v := w.report().Overall; v.Confirmed != 0 || v.Accepted != 5 || v.Compared != 5 {
		t.Errorf("with all accepted: %+v", v)
	}
	w.make(attachment("1"))
	if got := w.sum(""); got.Confirmed != 5 || got.Accepted != 1 {
		t.Errorf("got %+v, want the sixth counted as accepted", got)
	}
	must(t, w.canary.Judge(t.Context(), first, state.StatusOpen, "ada", "not so", time.Time{}))
	if v := w.report().Overall; v.Confirmed != 6 || v.Accepted != 0 {
		t.Errorf("with one open again: %+v", v)
	}
}

// manyMembers adds so many members to the attachments that a tracker returns.
func manyMembers(n int) func(http.Handler) http.Handler {
	var more strings.Builder
	for i := range n {
		fmt.Fprintf(&more, `"member_%d":1,`, i)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			next.ServeHTTP(recorded, r)
			maps.Copy(w.Header(), recorded.Header())
			w.Header().Del("Content-Length")
			w.WriteHeader(recorded.Code)
			_, _ = w.Write(bytes.ReplaceAll(recorded.Body.Bytes(), []byte(`"summary":`), []byte(more.String()+`"summary":`)))
		})
	}
}

// TestManyKindsOfOneComparison: all are listed, or else the comparison counts even when all that are listed are accepted.
func TestManyKindsOfOneComparison(t *testing.T) {
	t.Parallel()
	const kinds = 1500
	for _, kept := range []int{kinds, 700} { // how many of these the store can keep
		file := filepath.Join(t.TempDir(), "state.db")
		w := newWorld(t, worldOptions{around: manyMembers(kinds), state: "sqlite:" + file})
		database, err := sql.Open("sqlite", file)
		must(t, err)
		defer database.Close()
		if _, err := database.ExecContext(t.Context(), `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000 - ?)
			INSERT INTO portico_findings (signature, operation, class, path, kind, seen, first_at, last_at, note, status, changed_at)
			SELECT 'other' || n, '', '', '', 'reply', 1, 1, 1, '', 'fixed', 1 FROM numbers`, kept); err != nil {
			t.Fatal(err)
		}
		w.make(attachment("1"))
		if open := len(w.report().Findings) - (10_000 - kept); open != kept {
			t.Errorf("%d are listed, want %d", open, kept)
		}
		if _, err := database.ExecContext(t.Context(), "UPDATE portico_findings SET status = 'accepted'"); err != nil {
			t.Fatal(err)
		}
		got := w.report()
		if hidden := int64(min(kinds-kept, 1)); got.Overall.Unlisted != hidden || got.Overall.Confirmed != hidden || got.Overall.Accepted != 1-hidden {
			t.Errorf("with %d of %d accepted: %+v", kept, kinds, got.Overall)
		}
	}
}
