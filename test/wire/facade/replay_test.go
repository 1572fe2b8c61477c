package facade

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

const testdata = "../testdata"

// TestReplay holds every response of Portico against the recorded one, and docs/evidence/COMPATIBILITY.md against all of them.
func TestReplay(t *testing.T) {
	var all []Replayed
	for _, tracker := range Trackers() {
		replayed, err := tracker.Replay(t.Context(), testdata)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, replayed)
		t.Run(tracker.Title, func(t *testing.T) { testResults(t, replayed) })
	}
	var want bytes.Buffer
	if err := WritePassport(&want, all); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/evidence/COMPATIBILITY.md")
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("docs/evidence/COMPATIBILITY.md is out of date (%v); run: go run ./test/wire/passport", err)
	}
}

// testResults wants a reason for each response that differs from the recorded one, and a difference for each reason.
func testResults(t *testing.T, replayed Replayed) {
	kinds := map[Kind]int{}
	differing := map[string]bool{}
	for _, result := range replayed.Results {
		kinds[result.Kind()]++
		differing[result.Name] = result.Kind() != Same
		if result.Kind() == Different {
			t.Errorf("%s differs without a reason: %s", result.Name, strings.Join(result.Diff, " | "))
		}
	}
	for _, account := range replayed.Accounts {
		for _, name := range account.Names {
			if !differing[name] && !account.May {
				t.Errorf("%s is accounted for (%s) and does not differ any more", name, account.Reason)
			}
		}
	}
	t.Logf("%d exchanges: %d %s, %d %s, %d %s, %d %s", len(replayed.Results), kinds[Same], Same, kinds[Better], Better,
		kinds[Unplayable], Unplayable, kinds[Different], Different)
}
