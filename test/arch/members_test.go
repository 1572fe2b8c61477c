package arch

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"portico/upstream/canary/compare"
	"portico/upstream/recording"
)

// hidden are the members whose texts samples of differences never hold: what people have written, names and addresses. After them come those that
// have no text.
var hidden = []string{
	"comment", "data", "description", "file_name", "summary", "creator", "setter", "requestee", "cc_list", "grant_group", "request_group", "names", "added", "removed",
	"message", "documentation",
	"attachment", "bug", "changes", "code", "error", "flags", "flagtypes", "new", "obsoletes",
}

// TestEveryMemberIsKeptOrHidden: recordings keep what the members of the interface hold, as they could not be replayed without it. Samples of differences
// keep it unless it is hidden here, or nothing could be told from them.
func TestEveryMemberIsKeptOrHidden(t *testing.T) {
	var page map[string]any
	must(t, yaml.Unmarshal([]byte(read(t, "proxy/admin/openapi.yaml")), &page))
	names := map[string]bool{}
	members(names, page)
	if len(names) < 30 {
		t.Fatalf("the description of the interface has only %d members", len(names))
	}
	for name := range names {
		request := recording.Request{Method: "POST", Path: "/rest/x", Headers: map[string]string{"Content-Type": "application/json"}, Body: []byte(`{"` + name + `":"plain"}`)}
		recorded := recording.NewRedactor(100).Redact(recording.Exchange{Request: request})
		if !strings.Contains(string(recorded.Request.Body), `"plain"`) {
			t.Errorf("recordings do not keep the member %q: %s; add it to isKnownName in upstream/recording", name, recorded.Request.Body)
		}
		if kept := isKept(name, names); kept == slices.Contains(hidden, name) {
			t.Errorf("samples keep the member %q: %v; add it to keptFields in upstream/canary/compare, or to hidden here", name, kept)
		}
	}
}

// members collects the names of the members that a description has.
func members(names map[string]bool, value any) {
	switch x := value.(type) {
	case map[string]any:
		if properties, ok := x["properties"].(map[string]any); ok {
			for name := range properties {
				names[name] = true
			}
		}
		for _, each := range x {
			members(names, each)
		}
	case []any:
		for _, each := range x {
			members(names, each)
		}
	}
}

// isKept reports whether a sample shows some text of a member, whatever it is a member of.
func isKept(name string, parents map[string]bool) bool {
	redactor := compare.NewRedactor()
	for _, parent := range append(slices.Collect(maps.Keys(parents)), "") {
		path := strings.TrimSuffix("$."+parent, ".") + "." + name
		for _, value := range []string{`"2024-01-01T00:00:00Z"`, `"5"`, `"text/plain"`, `"bug"`, `"+"`} {
			if string(redactor.Redact(jsontext.Value(value), path)) == value {
				return true
			}
		}
	}
	return false
}
