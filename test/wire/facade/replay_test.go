package facade

import (
	"strings"
	"testing"
)

const testdata = "../testdata"

// replay runs the recordings of a tracker through an environment of its own.
func replay(t *testing.T, tracker Tracker) []Result {
	t.Helper()
	_, results, err := tracker.Replay(t.Context(), testdata)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestReplay holds every answer of Portico against the recorded one.
func TestReplay(t *testing.T) {
	for _, tracker := range Trackers() {
		t.Run(tracker.Title, func(t *testing.T) {
			t.Parallel()
			testReplay(t, tracker)
		})
	}
}

func testReplay(t *testing.T, tracker Tracker) {
	kinds := map[Kind]int{}
	differing := map[string]bool{}
	results := replay(t, tracker)
	for _, result := range results {
		kinds[result.Kind()]++
		differing[result.Name] = result.Kind() != Same
		if result.Kind() == Different {
			t.Errorf("%s differs without a reason: %s", result.Name, strings.Join(result.Diff, " | "))
		}
	}
	for _, account := range tracker.Accounts {
		for _, name := range account.Names {
			if !differing[name] && !account.May {
				t.Errorf("%s is accounted for (%s) and does not differ any more", name, account.Reason)
			}
		}
	}
	t.Logf("%d exchanges: %d %s, %d %s, %d %s, %d %s", len(results), kinds[Same], Same, kinds[Better], Better,
		kinds[Unplayable], Unplayable, kinds[Different], Different)
}
