package canary_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
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

func TestObserverSeesEverythingOnce(t *testing.T) {
	seen := &counts{compared: map[canary.Outcome]int64{}, dropped: map[verdict.DropReason]int64{}}
	w := newWorld(t, worldOptions{
		fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}},
		tune:  func(o *canary.Options) { o.Observer = seen },
	})
	w.make(flagTypes("NoSuchProduct"))
	w.make(attachment("1"))
	w.canary.Answered(t.Context(), w.caller, flagTypes("P"), sides, upstream.Response{Document: &mapping.Document{NotModified: true}})
	w.settle()
	w.settle()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.compared[canary.OutcomeSame] != 1 || seen.compared[canary.OutcomeConfirmed] != 1 || seen.dropped[verdict.DropNotModified] != 1 {
		t.Errorf("the observer saw %v and %v", seen.compared, seen.dropped)
	}
}

// TestFlushHappensByItself, about once in a second.
func TestFlushHappensByItself(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.make(flagTypes("TestProduct"))
	waitFor(t, func() bool {
		list, err := w.store.Tallies(t.Context(), time.Time{})
		return err == nil && len(list) == 1 && list[0].Same == 1
	})
}

// TestStoreThatFailsLosesNothing: what could not be written is written later.
func TestStoreThatFailsLosesNothing(t *testing.T) {
	file := "sqlite:" + t.TempDir() + "/state.db"
	store, err := state.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	_ = store.Close()
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) { o.Store = store }})
	w.make(flagTypes("TestProduct"))
	waitFor(t, func() bool { return w.canary.Load().Pending == 0 })
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
	seen := &counts{compared: map[canary.Outcome]int64{}, dropped: map[verdict.DropReason]int64{}}
	w := newWorld(t, worldOptions{
		fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}},
		tune:  func(o *canary.Options) { o.Observer = seen },
	})
	w.make(attachment("1"))
	waitFor(t, func() bool { return w.canary.Load().Pending == 0 })
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 3 {
		w.make(flagTypes("NoSuchProduct"))
		waitFor(t, func() bool { return w.canary.Load().Pending == 0 })
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
	if seen.compared[canary.OutcomeSame] != 3 || seen.compared[canary.OutcomeConfirmed] != 1 {
		t.Errorf("the observer saw %v, want each once", seen.compared)
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
	for range 5 {
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
	if err != nil || report.Verdict != verdict.Fail || report.Overall.Compared != 24 || report.Pair != sides {
		t.Errorf("the report is %+v (%v), want FAIL", report.Overall, err)
	}
}

// TestVerdicts of differences, of none, and of too few comparisons.
func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		quirks []tracker.Quirk
		calls  int
		want   verdict.Verdict
	}{
		"planted":  {[]tracker.Quirk{tracker.QuirkWrongValues}, 20, verdict.Fail},
		"equal":    {nil, 60, verdict.Pass},
		"too few":  {nil, 10, verdict.Inconclusive},
		"volatile": {[]tracker.Quirk{tracker.QuirkVolatile}, 1, verdict.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{fresh: tracker.Options{Quirks: c.quirks}, tune: func(o *canary.Options) { o.Target = 0.06 }})
			for range c.calls {
				w.make(attachment("1"))
				waitFor(t, func() bool { return w.canary.Load().Queued < 100 })
			}
			w.settle()
			report, err := w.canary.Report(t.Context())
			if err != nil || report.Verdict != c.want {
				t.Errorf("the verdict is %s (%v), want %s: %+v", report.Verdict, err, c.want, report.Overall)
			}
		})
	}
}

// TestBusyMachineIsNoSlowCandidate: where both trackers keep the comparison waiting and clients not, the candidate is as
// fast as the reference.
func TestBusyMachineIsNoSlowCandidate(t *testing.T) {
	waiting := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Portico-Role") != "" {
				time.Sleep(80 * time.Millisecond)
			}
			next.ServeHTTP(w, r)
		})
	}
	w := newWorld(t, worldOptions{aroundOld: waiting, around: waiting, tune: func(o *canary.Options) {
		o.Latency, o.Workers = verdict.LatencyTarget{Ratio: 2, Slack: 50 * time.Millisecond, Least: 20}, 8
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
