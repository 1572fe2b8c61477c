package canary_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReplayedWritesHappenLater: an isolated candidate has written what the reference has, a moment later.
func TestReplayedWritesHappenLater(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for later, want := range map[time.Duration][]string{
		time.Second: nil,
		time.Hour: {
			"attachment.get time $.attachments[*].last_change_time", "attachment.update time $.attachments[id].last_change_time",
		},
	} {
		w := isolatedWorld(t, true, noon, noon.Add(later))
		waitFor(t, func() bool { // the proof takes a moment
			w.make(updateSummary(1, time.Now().String()))
			w.settle()
			return len(w.fresh.Journal()) > 0
		})
		w.make(updateSummary(3, "y"))
		w.settle()
		w.make(attachment("3"))
		early := func(finding string) bool { return strings.Contains(finding, ".changes.") } // from before the proof
		if found := slices.DeleteFunc(w.findings(), early); !slices.Equal(found, want) {
			t.Errorf("%v later found %q, want %q", later, found, want)
		}
	}
}
