package canary_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
	"portico/upstream/transport"
)

// moody is a candidate that refuses everything while bad is set, and waits then
// until it is let go.
type moody struct {
	bad     atomic.Bool
	entered chan struct{}
	release chan struct{}
}

func (m *moody) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !m.bad.Load() {
			next.ServeHTTP(w, r)
			return
		}
		if m.release != nil {
			m.entered <- struct{}{}
			<-m.release
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

func (w *world) fixed(signature string) error {
	return w.canary.Fixed(w.t.Context(), signature, "ada", "a new build")
}

// TestFixedCountsAnew: neither what was seen before nor its comparisons count, and
// when it comes again only what is new does.
func TestFixedCountsAnew(t *testing.T) {
	var candidate moody
	w := newWorld(t, worldOptions{around: candidate.around, tune: func(o *canary.Options) { o.Target = 0.06 }})
	candidate.bad.Store(true)
	for range 10 {
		w.make(attachment("1"))
	}
	report := w.report()
	if v := report.Overall; report.Verdict != verdict.Fail || v.Compared != 10 || v.Confirmed != 10 || len(report.Findings) < 2 {
		t.Fatalf("before: %+v with %d findings", v, len(report.Findings))
	}
	candidate.bad.Store(false)
	w.judgeAll(w.fixed)
	if report := w.report(); report.Verdict != verdict.Inconclusive || report.Overall.Compared != 0 || report.Overall.Needed != 49 {
		t.Errorf("fixed: %s, %+v", report.Verdict, report.Overall)
	}
	for range 49 {
		w.make(attachment("1"))
	}
	if report := w.report(); report.Verdict != verdict.Pass || report.Overall.Compared != 49 {
		t.Errorf("fixed and compared: %s, %+v", report.Verdict, report.Overall)
	}
	candidate.bad.Store(true)
	w.make(attachment("1"))
	report = w.report()
	if v := report.Overall; report.Verdict == verdict.Pass || v.Compared != 50 || v.Confirmed != 1 || report.Findings[0].Count != 11 || report.Findings[0].Status != "open" {
		t.Errorf("seen again: %s, %+v, %+v", report.Verdict, v, report.Findings)
	}
}

// TestFixedLeavesOutWhatIsUnderWay: it was asked of the candidate that was there before.
func TestFixedLeavesOutWhatIsUnderWay(t *testing.T) {
	candidate := moody{entered: make(chan struct{}, 100), release: make(chan struct{})}
	w := newWorld(t, worldOptions{around: candidate.around})
	err := w.store.RecordFinding(t.Context(), state.Finding{Signature: "a", Operation: mapping.OpAttachment}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	candidate.bad.Store(true)
	w.make(attachment("1"))
	<-candidate.entered
	if err := w.fixed("a"); err != nil {
		t.Fatal(err)
	}
	close(candidate.release)
	if report := w.report(); report.Overall.Compared != 0 || len(report.Findings) != 1 || report.Findings[0].Status != "fixed" {
		t.Errorf("%+v with %+v", report.Overall, report.Findings)
	}
}

// another is a second process that compares the same trackers.
func (w *world) another() *canary.Canary {
	w.t.Helper()
	o := canary.Options{Trackers: map[string]upstream.Tracker{
		oldName: dial(w.t, w.old.url, transport.Options{}), newName: dial(w.t, w.fresh.url, transport.Options{}),
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
	waitFor(w.t, func() bool { load := w.canary.Load(); return load.Waiting == waiting && load.Pending == waiting })
}

// TestAnotherBeginsAnew: what this process has counted and not yet written, or still asks about, is of the time before, also
// when another one is told to begin anew.
func TestAnotherBeginsAnew(t *testing.T) {
	var candidate moody
	w := newWorld(t, worldOptions{around: candidate.around, tune: func(o *canary.Options) { o.ConfirmAfter = 300 * time.Millisecond }})
	other := w.another()
	for _, waiting := range []int{1, 0} {
		w.report() // the books are written now
		candidate.differ(w, waiting)
		if err := other.Reset(t.Context(), "somebody", "a better candidate"); err != nil {
			t.Fatal(err)
		}
		candidate.bad.Store(false)
		w.make(attachment("1")) // and this is of the time after
		if report := w.report(); report.Overall.Compared != 1 || len(report.Findings) != 0 {
			t.Errorf("with %d under way: %+v with %+v", waiting, report.Overall, report.Findings)
		}
	}
}

// TestAnotherCallsItFixed while this process still asks the candidate that was there before.
func TestAnotherCallsItFixed(t *testing.T) {
	var candidate moody
	w := newWorld(t, worldOptions{around: candidate.around, tune: func(o *canary.Options) { o.ConfirmAfter = 300 * time.Millisecond }})
	other := w.another()
	candidate.differ(w, 0)
	known := w.report().Findings
	candidate.differ(w, 1)
	for _, f := range known {
		if err := other.Fixed(t.Context(), f.Signature, "ada", "a new build"); err != nil {
			t.Fatal(err)
		}
	}
	report := w.report()
	if open := func(f verdict.FindingView) bool { return f.Status != "fixed" }; len(known) == 0 || slices.ContainsFunc(report.Findings, open) {
		t.Errorf("found %+v, and then %+v", known, report.Findings)
	}
}

// TestAcceptingReachesBack to comparisons that were made before, each counted once.
func TestAcceptingReachesBack(t *testing.T) {
	var candidate moody
	w := newWorld(t, worldOptions{around: candidate.around})
	candidate.bad.Store(true)
	for range 5 {
		w.make(attachment("1"))
	}
	accept := func(signature string) error {
		return w.canary.Accept(t.Context(), signature, "ada", "harmless", time.Time{})
	}
	first := w.report().Findings[0].Signature
	if err := accept(first); err != nil {
		t.Fatal(err)
	}
	if v := w.report().Overall; v.Confirmed != 5 || v.Accepted != 0 {
		t.Errorf("with one accepted: %+v", v)
	}
	w.judgeAll(accept)
	if v := w.report().Overall; v.Confirmed != 0 || v.Accepted != 5 || v.Compared != 5 {
		t.Errorf("with all accepted: %+v", v)
	}
}

// TestFindingsThatAreNotKeptCount: there may be so many that no other one is kept.
func TestFindingsThatAreNotKeptCount(t *testing.T) {
	t.Parallel() // it takes long
	var candidate moody
	w := newWorld(t, worldOptions{around: candidate.around})
	for i := range 10_000 {
		f := state.Finding{Signature: fmt.Sprint("other", i), Operation: mapping.OpFlagTypes}
		if err := w.store.RecordFinding(t.Context(), f, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	candidate.bad.Store(true)
	w.make(attachment("1"))
	report := w.report()
	var told strings.Builder
	if err := report.Text(&told); err != nil {
		t.Fatal(err)
	}
	if report.Overall.Confirmed != 1 || report.Overall.Unlisted != 1 || !strings.Contains(told.String(), "1 comparison had differences that are not listed") {
		t.Errorf("%+v for\n%s", report.Overall, report.Overall.Reasons)
	}
}

// TestFixedOfNothingIsRefused, and changes nothing.
func TestFixedOfNothingIsRefused(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.make(attachment("1"))
	if err := w.fixed("none"); err == nil {
		t.Error("a finding that nobody has heard of was fixed")
	}
	if report := w.report(); report.Overall.Compared != 1 {
		t.Errorf("got %+v, want that nothing has changed", report.Overall)
	}
}
