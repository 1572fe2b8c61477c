package config

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"portico/upstream/canary/compare"
	"portico/upstream/switchover"
)

// exampleFile is the documented configuration at the top of the project.
const exampleFile = "../../../config.example.yaml"

func TestExampleEqualsTheDefaults(t *testing.T) {
	got, problems := Load(nil, nil, exampleFile)
	if len(problems) > 0 {
		t.Fatal(texts(problems))
	}
	entry := Defaults[Tracker]()
	entry.URL = "http://tracker.example/"
	want := Default()
	want.Trackers = map[string]Tracker{"main": entry}
	want.Primary = "main"
	if got.origins = nil; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the example says\n%+v\nbut the defaults are\n%+v", got, want)
	}
}

func TestExampleHasEveryKeyWithAComment(t *testing.T) {
	content, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		t.Fatal(err)
	}
	commented := map[string]bool{}
	collect(doc.Content[0], "", commented)
	// The long form of redis stands in a comment, since the example shows the
	// short one; so do entries of what is empty by default.
	long := string(content[bytes.Index(content, []byte("#   redis:")):])
	for _, path := range textPaths() {
		if entry, key, ok := strings.Cut(path, ".*."); ok && entry != "trackers" {
			inComment(t, content, entry, key)
			continue
		}
		path = strings.ReplaceAll(path, "*", "main")
		if key, ok := strings.CutPrefix(path, "cache.redis."); ok {
			key = key[strings.LastIndexByte(key, '.')+1:]
			if !strings.Contains(long, " "+key+": ") {
				t.Errorf("%s is not in the example", path)
			}
			continue
		}
		if comment, ok := commented[path]; !ok {
			t.Errorf("%s is not in the example", path)
		} else if !comment {
			t.Errorf("%s has no comment in the example", path)
		}
	}
	for list, entry := range map[string]reflect.Type{
		"switchover.rules": reflect.TypeFor[switchover.Rule](), "canary.equivalences": reflect.TypeFor[compare.Equivalence](),
	} {
		for _, f := range members(reflect.Zero(entry)) {
			inComment(t, content, list, f.path)
		}
	}
}

// inComment looks for a key in the comment before the mapping or list that it
// could stand in.
func inComment(t *testing.T, content []byte, section, key string) {
	t.Helper()
	name := section[strings.LastIndexByte(section, '.')+1:]
	before, _, found := strings.Cut(string(content), "\n"+strings.Repeat("  ", strings.Count(section, "."))+name+":")
	comment := before[strings.LastIndex(before, "\n\n")+1:]
	if !found || !strings.Contains(comment, " "+key+": ") {
		t.Errorf("%s of an entry of %s is not in the example", key, section)
	}
}

// collect notes for each path of a mapping whether it has a comment.
func collect(n *yaml.Node, path string, commented map[string]bool) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, p := n.Content[i], join(path, n.Content[i].Value)
		commented[p] = key.HeadComment != "" || key.LineComment != ""
		collect(n.Content[i+1], p, commented)
	}
}

// TestTagsCanBeRead: a default is parsed and held against the bounds, and a value against bounds that can be read.
func TestTagsCanBeRead(t *testing.T) {
	for _, v := range []any{Default(), Defaults[Tracker](), Defaults[switchover.Rule](), Defaults[compare.Equivalence]()} {
		for _, m := range members(reflect.ValueOf(v)) {
			walk(m.path, m.value, m.tag, func(k key) {
				if k.value.Kind() == reflect.Map {
					k.value = newValue(k.value.Type().Elem())
				}
				if isSection(k.value.Type()) || k.value.IsZero() {
					return
				}
				if err := checkBounds(k.value, k.value.String(), k.tag); err != nil {
					t.Errorf("%s: %v", k.path, err)
				}
			})
		}
	}
}

func FuzzConfigFile(f *testing.F) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(withTracker + "cache: {redis: {addrs: [a:1, 'b:2']}}\npassthrough: [/a, /b]\n"))
	f.Add([]byte(withTwo + "switchover: {rules: [{name: x, bugs: [1-2, 3-], percent: 1.5}, {name: rest}]}\ncanary: {equivalences: [{name: n, table: {1: 2}}]}\n"))
	f.Add([]byte("a: &a [*a]\n? {b: c}\n: !!binary x\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		cfg, problems := Load(nil, nil, writeFile(t, "c.yaml", string(content)))
		if Fatal(problems) {
			return
		}
		var printed bytes.Buffer
		if err := Print(&printed, cfg); err != nil {
			t.Fatal(err)
		}
		again, problems := Load(nil, nil, writeFile(t, "again.yaml", printed.String()))
		if Fatal(problems) {
			t.Fatalf("what was printed is refused: %v\n%s", texts(problems), &printed)
		}
		var second bytes.Buffer
		if err := Print(&second, again); err != nil {
			t.Fatal(err)
		}
		if a, b := withoutComments(t, printed.Bytes()), withoutComments(t, second.Bytes()); !reflect.DeepEqual(a, b) {
			t.Errorf("printed\n%s\nread and printed again\n%s", &printed, &second)
		}
	})
}

// withoutComments reads YAML as plain values.
func withoutComments(t *testing.T, content []byte) (v any) {
	t.Helper()
	if err := yaml.Unmarshal(content, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
