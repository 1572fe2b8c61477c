package canary

import (
	"testing"

	"portico/upstream/state"
)

// TestNotesOfSightings: what is only known later is told of a finding, and not forgotten again.
func TestNotesOfSightings(t *testing.T) {
	l := newLedger(Options{}, nil)
	for _, sighting := range []struct{ note, want string }{{"", ""}, {"known by now", "known by now"}, {"", "known by now"}, {"more", "more"}} {
		l.record(&found{Finding: state.Finding{Signature: "a", Count: 1, Note: sighting.note}})
		if got := l.book.findings["a"].Note; got != sighting.want {
			t.Errorf("after %q the note is %q, want %q", sighting.note, got, sighting.want)
		}
	}
	if got := l.book.findings["a"].Count; got != 4 {
		t.Errorf("%d sightings are counted, want 4", got)
	}
}
