package facade

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"portico/mapping"
	"portico/upstream/recording"
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

func TestOperationOf(t *testing.T) {
	for request, want := range map[string]mapping.Operation{
		"GET /rest/flag_type/P":                   mapping.OpFlagTypes,
		"GET /rest.cgi/flag_type/P/C?x=/y":        mapping.OpFlagTypes,
		"GET //rest//bug//5/attachment":           mapping.OpBugAttachments,
		"GET /rest/bug/attachment/attachment":     mapping.OpBugAttachments,
		"PUT /rest/bug/attachment/5":              mapping.OpUpdateAttachments,
		"POST /rest/bug/5/attachment?api_key=key": mapping.OpCreateAttachment,
		"PUT /rest/bug/attachment":                "",
		"GET /rest/bug/5/attachment/":             "",
		"HEAD /rest/flag_type/P":                  "",
		"POST /jsonrpc.cgi":                       "",
		"GET /rest/flag_type":                     "",
		"GET /":                                   "",
	} {
		method, target, _ := strings.Cut(request, " ")
		if got := recording.OperationOf(method, target); got != want {
			t.Errorf("%s is %q, want %q", request, got, want)
		}
	}
}
