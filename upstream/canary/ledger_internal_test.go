package canary

import (
	"log/slog"
	"testing"
	"time"

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

// TestDropsAloneAreNotWrittenAtOnce, what was compared is, with all drops.
func TestDropsAloneAreNotWrittenAtOnce(t *testing.T) {
	ctx := t.Context()
	store, err := state.Open(ctx, "sqlite::memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := newLedger(Options{Store: store, Logger: slog.New(slog.DiscardHandler)}, func(time.Time) {})
	about := subject{reference: "old", candidate: "new", operation: "bug"}
	waiting := func() int { return len(l.book.tallies) + len(l.book.fresh) }
	for _, step := range []struct {
		name string
		do   func()
		due  bool
		want int
	}{
		{"a drop", func() { l.dropped(about, DropBreaker) }, false, 1},
		{"another one when they are due", func() { l.dropped(about, DropBreaker) }, true, 0},
		{"a drop and a comparison", func() {
			l.dropped(about, DropBreaker)
			l.compared(&job{subject: about, began: time.Now()}, nil, OutcomeSame)
		}, false, 0},
	} {
		step.do()
		if err := l.keep(ctx, step.due); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := waiting(); got != step.want {
			t.Errorf("after %s %d wait to be written, want %d", step.name, got, step.want)
		}
	}
}
