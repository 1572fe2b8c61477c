package main

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// exampleFile is the documented configuration at the top of the project.
const exampleFile = "../../config.example.yaml"

func TestExampleEqualsTheDefaults(t *testing.T) {
	got, problems := Load(nil, nil, exampleFile)
	if len(problems) > 0 {
		t.Fatal(texts(problems))
	}
	var entry TrackerConfig
	entry.SetDefaults()
	entry.URL = "http://tracker.example/"
	want := Default()
	want.Trackers = map[string]TrackerConfig{"main": entry}
	want.Primary = "main"
	got.origins = nil
	if got.TrustedProxies = slices.Clip(got.TrustedProxies); len(got.TrustedProxies) == 0 {
		got.TrustedProxies = nil
	}
	if !reflect.DeepEqual(got, want) {
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
	for _, path := range leafPaths(reflect.TypeFor[Config](), "") {
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

// TestExampleHasEveryKeyOfLists looks for the keys of sections in lists.
func TestExampleHasEveryKeyOfLists(t *testing.T) {
	content, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	for list, entry := range map[string]reflect.Type{
		"switchover.rules": reflect.TypeFor[RuleConfig](), "canary.equivalences": reflect.TypeFor[EquivalenceConfig](),
	} {
		for _, f := range fieldsOf(entry) {
			inComment(t, content, list, f.key)
		}
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

func TestBoundsCanBeReadAndDefaultsKeepThem(t *testing.T) {
	bounded := func(path string, v reflect.Value, tag reflect.StructTag) {
		if err := checkBounds(v, "the default", tag); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		for _, f := range fieldsOf(v.Type()) {
			value, path := v.Field(f.index), join(path, f.key)
			switch {
			case isSection(value.Type()):
				walk(path, value)
			case value.Kind() == reflect.Map && isSection(value.Type().Elem()), value.Kind() == reflect.Slice && isSection(value.Type().Elem()):
				walk(path, newEntry(value.Type().Elem()))
			case value.Kind() == reflect.Map:
				bounded(path, newEntry(value.Type().Elem()), f.tag)
			default:
				bounded(path, value, f.tag)
			}
		}
	}
	walk("", reflect.ValueOf(Default()))
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
		cfg, problems := load(nil, nil, "c.yaml", bytes.NewReader(content))
		if fatal(problems) {
			return
		}
		var printed bytes.Buffer
		if err := printConfig(&printed, cfg); err != nil {
			t.Fatal(err)
		}
		again, problems := load(nil, nil, "again.yaml", bytes.NewReader(printed.Bytes()))
		if fatal(problems) {
			t.Fatalf("what was printed is refused: %v\n%s", texts(problems), &printed)
		}
		var second bytes.Buffer
		if err := printConfig(&second, again); err != nil {
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
