package facade

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"portico/upstream/recording"
)

const testdata = "../testdata"

// TestReplay holds every response of Portico against the recorded one, some fates of fields against what their requests say, and
// docs/evidence/COMPATIBILITY.md against all of them.
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
	testFates(t, all[0].Results)
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

// testFates holds the account of some exchanges against what their requests say.
func testFates(t *testing.T, results []Result) {
	for _, c := range []struct {
		name  string
		field string
		want  Fate
	}{
		{"ft.create.minimal", "name", Passed},
		{"ft.create.minimal", "target_type", Defaulted},
		{"ft.create.is_active.false", "is_active", Translated},
		{"ft.create.cc_list.array", "cc_list", Translated},
		{"ft.create.inclusions.bare_object", "inclusions", Translated},
		{"ft.create.sortkey.0", "sortkey", RefusedHere},
		{"ft.create.sortkey.null", "sortkey", LeftOut},
		{"ft.create.inclusions.unknown", "inclusions", RefusedThere},
		{"ft.get.slash.encoded", "component", Translated},
		{"ft.create.unknown_field", others, Passed},
		{"att.get.3.anon", "attachment_id", Passed},
		{"att.update.ids.other", "ids", RefusedHere},
		{"att.update.flags.string", "flags", RefusedHere},
		{"ft.get.options", request, Answered},
		{"ft.create.json.trailing", request, RefusedHere},
	} {
		i := slices.IndexFunc(results, func(r Result) bool { return r.Name == c.name })
		if i < 0 {
			t.Errorf("%s has no known answer", c.name)
			continue
		}
		operation := recording.OperationOf(results[i].Request.Method, results[i].Request.Path)
		if got, there := fatesIn(operation, &results[i])[c.field]; !there || got != c.want {
			t.Errorf("%s: the fate of %s is %d (%v), want %d", c.name, c.field, got, there, c.want)
		}
	}
}
