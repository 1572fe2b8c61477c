package arch

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/test/tracker"
	"portico/test/wire/facade"
)

// TestEveryDialectIsKnownEverywhere: a dialect has a value of the configuration, a reference tracker, recordings, and its place on the pages.
func TestEveryDialectIsKnownEverywhere(t *testing.T) {
	field, _ := reflect.TypeFor[config.Tracker]().FieldByName("Dialect")
	values := []string{"auto"}
	for _, dialect := range mapping.Dialects() {
		name := dialect.Name
		values = append(values, name)
		if found, ok := mapping.DialectNamed(name); !ok || found.Name != name {
			t.Errorf("DialectNamed does not find %s", name)
		}
		if !slices.Contains(tracker.Dialects(), name) {
			t.Errorf("the reference tracker cannot be one of %s", name)
		}
		if !slices.ContainsFunc(facade.Trackers(), func(recorded facade.Tracker) bool { return recorded.Dialect == name }) {
			t.Errorf("no recordings of %s are compared in test/wire/facade", name)
		}
		for _, page := range []string{"config.example.yaml", "docs/reference/glossary.md", "docs/divergences.md"} {
			text, err := os.ReadFile(filepath.Join("..", "..", page))
			if err != nil || !strings.Contains(string(text), name) {
				t.Errorf("%s does not name the dialect %s: %v", page, name, err)
			}
		}
	}
	if got := strings.Split(field.Tag.Get("oneof"), "|"); !slices.Equal(got, values) {
		t.Errorf("the configuration takes %q as dialect, want %q", got, values)
	}
}
