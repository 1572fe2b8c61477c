package canary

import (
	"fmt"
	"testing"
	"time"

	"portico/upstream/state"
)

// TestNotesOfSightings: what is only known later is told of a finding, and not forgotten again.
func TestNotesOfSightings(t *testing.T) {
	b := newBatch()
	for _, sighting := range []struct{ note, want string }{{"", ""}, {"known by now", "known by now"}, {"", "known by now"}, {"more", "more"}} {
		b.find(&found{Finding: state.Finding{Signature: "a", Count: 1, Note: sighting.note}})
		if got := b.findings["a"].Note; got != sighting.want {
			t.Errorf("after %q the note is %q, want %q", sighting.note, got, sighting.want)
		}
	}
	if got := b.findings["a"].Count; got != 4 {
		t.Errorf("%d sightings are counted, want 4", got)
	}
}

// TestBatchIsBounded: what waits to be written is bounded, and nothing of it is lost but findings.
func TestBatchIsBounded(t *testing.T) {
	b, begin := newBatch(), time.Now()
	for i := range 3 * maxTallies {
		b.count(state.Tally{Compared: 1}, begin.Add(time.Duration(i)*time.Minute))
		f := &found{}
		f.Signature = fmt.Sprint(i)
		b.find(f)
	}
	sum := int64(0)
	for _, tally := range b.tallies {
		sum += tally.Compared
	}
	if len(b.tallies) > maxTallies+4 || sum != 3*maxTallies || len(b.findings) > maxFindings {
		t.Errorf("%d tallies of %d comparisons and %d findings wait", len(b.tallies), sum, len(b.findings))
	}
}
