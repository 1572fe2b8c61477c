package canary_test

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
	"portico/upstream/transport"
)

// flood answers without end.
func flood(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat(`"x":"`+strings.Repeat("y", 1000)+`",`, 64))
		_, err := w.Write([]byte(`{"attachments":{},"bugs":{},`))
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(chunk)
		}
	})
}

// TestSickCandidateIsNotNoticed: whatever is wrong with the candidate, the client
// gets its answers, Answered never waits, everything is counted and nothing is held.
func TestSickCandidateIsNotNoticed(t *testing.T) {
	t.Parallel() // it takes long, most of it waiting
	kind := func(kind tracker.FaultKind) worldOptions {
		return worldOptions{fresh: tracker.Options{Faults: []tracker.Fault{{Kind: kind}}}}
	}
	dead := worldOptions{}
	for name, special := range map[string]worldOptions{
		"hung": kind(tracker.FaultHangBefore), "hung inside": kind(tracker.FaultHangAfterHeaders),
		"resetting": kind(tracker.FaultResetBefore), "resetting inside": kind(tracker.FaultResetMidBody),
		"endless headers": kind(tracker.FaultEndlessHeaders), "flooding": {around: flood}, "dead": dead,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			special.transport = transport.Options{Break: transport.BreakOptions{OpenFor: time.Minute}}
			special.tune = func(o *canary.Options) { o.Timeout, o.MaxBody = 300*time.Millisecond, 4<<20 }
			w := newWorld(t, special)
			if name == "dead" {
				w.fresh.host.Close()
			}
			const calls = 20
			for range calls / 2 {
				w.make(flagTypes("TestProduct"))
				w.make(attachment("4"))
			}
			got := w.sum("")
			sum := got.Compared
			for _, n := range got.Dropped {
				sum += n
			}
			if sum != calls || got.Same+got.Noisy+got.Transient != 0 {
				t.Errorf("got %+v, want all %d counted and none the same", got, calls)
			}
			if load := w.canary.Load(); load != (canary.Load{}) {
				t.Errorf("got %+v at the end, want nothing", load)
			}
			for _, f := range w.findings() {
				if !strings.Contains(f, " failure ") && !strings.Contains(f, " digest ") {
					t.Errorf("found %q", f)
				}
			}
		})
	}
}

// TestFailuresAreConfirmed: a failed call is a finding, also when the next one succeeds.
func TestFailuresAreConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		fault tracker.Fault
		found bool
	}{
		"a page":      {tracker.Fault{Kind: tracker.FaultHTML200}, true},
		"truncated":   {tracker.Fault{Kind: tracker.FaultTruncateJSON}, true},
		"hung":        {tracker.Fault{Kind: tracker.FaultHangBefore}, true},
		"reset":       {tracker.Fault{Kind: tracker.FaultResetBefore}, true},
		"reset once":  {tracker.Fault{Kind: tracker.FaultResetBefore, Nth: 1}, false},
		"a page once": {tracker.Fault{Kind: tracker.FaultHTML200, Nth: 1}, false},
		"hung once":   {tracker.Fault{Kind: tracker.FaultHangBefore, Nth: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{
				fresh:     tracker.Options{Faults: []tracker.Fault{c.fault}},
				transport: transport.Options{Tries: 1, Break: transport.BreakOptions{Unanswered: 100}},
				tune:      func(o *canary.Options) { o.Timeout = 400 * time.Millisecond },
			})
			w.make(attachment("1"))
			got, sum := w.findings(), w.sum("")
			if c.found && (len(got) != 1 || got[0] != "attachment.get failure failure" || sum.Confirmed != 1) {
				t.Errorf("found %q and %+v, want a failure", got, sum)
			}
			if !c.found && (len(got) != 1 || sum.Confirmed != 1) || sum.Failed != 1 {
				t.Errorf("found %q and %+v, want one failure", got, sum)
			}
		})
	}
}

// TestFailedReferenceProvesNothing about the candidate that answers.
func TestFailedReferenceProvesNothing(t *testing.T) {
	w := newWorld(t, worldOptions{old: tracker.Options{Faults: []tracker.Fault{{Kind: tracker.FaultHTML200}}}})
	w.makeAs(attachment("1"), upstream.Sides{Serving: newName, Compared: oldName}, dial(t, w.fresh.url, transportOptions()))
	w.dropped(verdict.DropOtherFailed, 1)
}

// TestCloseEndsWhatHangs within a second.
func TestCloseEndsWhatHangs(t *testing.T) {
	entered, release := make(chan struct{}, 100), make(chan struct{})
	defer close(release)
	patient := func(o *canary.Options) { o.Timeout = time.Minute } // a slow machine must not open the breaker meanwhile
	w := newWorld(t, worldOptions{around: holding(entered, release), tune: patient})
	for range 20 {
		w.make(attachment("4"))
	}
	<-entered
	began := time.Now()
	if err := w.canary.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v to close", took)
	}
	w.dropped(verdict.DropClosed, 20)
}

// TestSickTrackerIsNotAsked whichever of the two it is.
func TestSickTrackerIsNotAsked(t *testing.T) {
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) { o.Refuses = func(name string) bool { return name == newName } }})
	for range 3 {
		w.make(attachment("1"))
	}
	w.dropped(verdict.DropBreaker, 3)
	w = newWorld(t, worldOptions{tune: func(o *canary.Options) { o.Refuses = func(name string) bool { return name == oldName } }})
	before := w.old.Requests()
	w.makeAs(attachment("1"), upstream.Sides{Serving: newName, Compared: oldName}, dial(t, w.fresh.url, transportOptions()))
	w.dropped(verdict.DropOtherFailed, 1)
	if now := w.old.Requests(); !maps.Equal(now, before) {
		t.Errorf("the old tracker was asked for %v, before for %v", now, before)
	}
}

// noting notes how much of its answer is going to be read.
type noting struct {
	upstream.Tracker
	most *atomic.Int64
}

func (n noting) Attachment(ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest) (mapping.Attachments, error) {
	n.most.Store(upstream.MaxResponse(ctx))
	return n.Tracker.Attachment(ctx, caller, request)
}

// TestHowMuchIsReadOfACandidate goes by the answer of the reference, so that one that never ends costs little.
func TestHowMuchIsReadOfACandidate(t *testing.T) {
	var most atomic.Int64
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) {
		o.Trackers[newName] = noting{o.Trackers[newName], &most}
	}})
	w.make(attachment("1"))
	w.settle()
	if got := most.Load(); got < 1<<20 || got > 2<<20 {
		t.Errorf("%d bytes are read at most", got)
	}
}
