package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"portico"
	"portico/mapping"
	"portico/upstream/canary/compare"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
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
	must(t, err)
	var doc yaml.Node
	must(t, yaml.Unmarshal(content, &doc))
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
		must(t, Print(&printed, cfg))
		again, problems := Load(nil, nil, writeFile(t, "again.yaml", printed.String()))
		if Fatal(problems) {
			t.Fatalf("what was printed is refused: %v\n%s", texts(problems), &printed)
		}
		var second bytes.Buffer
		must(t, Print(&second, again))
		if a, b := withoutComments(t, printed.Bytes()), withoutComments(t, second.Bytes()); !reflect.DeepEqual(a, b) {
			t.Errorf("printed\n%s\nread and printed again\n%s", &printed, &second)
		}
	})
}

// withoutComments reads YAML as plain values.
func withoutComments(t *testing.T, content []byte) (v any) {
	t.Helper()
	must(t, yaml.Unmarshal(content, &v))
	return v
}

var update = flag.Bool("update", false, "write docs/reference/config.schema.json")

// TestSchemaIsMadeOfTheTypes: the JSON Schema that the program prints has the keys, types, bounds and defaults of the tags, and the
// descriptions of the example. Run the test with -update after a change of them.
func TestSchemaIsMadeOfTheTypes(t *testing.T) {
	var example yaml.Node
	must(t, yaml.Unmarshal([]byte(portico.ConfigExample), &example))
	schema := schemaOf(reflect.ValueOf(Default()), "", example.Content[0], "")
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "Configuration of Portico"
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	must(t, encoder.Encode(schema))
	if *update {
		must(t, os.WriteFile("../../../docs/reference/config.schema.json", want.Bytes(), 0o644))
	} else if want.String() != portico.ConfigSchema {
		t.Error("docs/reference/config.schema.json is not that of the types and of config.example.yaml: run this test with -update")
	}
}

// TestSchemaTakesEntries: an editor marks nothing in entries that Portico takes.
func TestSchemaTakesEntries(t *testing.T) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(portico.ConfigSchema))
	must(t, err)
	compiler := jsonschema.NewCompiler()
	must(t, compiler.AddResource("config.json", document))
	schema, err := compiler.Compile("config.json")
	must(t, err)
	for _, entries := range []string{
		"switchover: {ids: {attachment: {mode: table, offset: 1000000000}}}\n",
		"switchover: {ids: {bug: {}}, names: {product: {Old Name: New Name}, user: {ann@old.example: ann@new.example}}}\n",
		"canary: {equivalences: [{name: a, type: idmap, path: $.bugs, offset: 100, table: {'17': 42}, owner: o, reason: r, expires: '2999-01-31'}]}\n",
	} {
		if _, problems := Load(nil, nil, writeFile(t, "c.yaml", withTwo+entries)); len(problems) > 0 {
			t.Errorf("%s: %v", entries, texts(problems))
		}
		var value any
		must(t, yaml.Unmarshal([]byte(withTwo+entries), &value))
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", entries, err)
		}
	}
}

// schemaOf is the schema of a value with its default. n is where the example has it, or nil, and comment is what stands before that.
func schemaOf(v reflect.Value, tag reflect.StructTag, n *yaml.Node, comment string) map[string]any {
	s := map[string]any{}
	switch t := v.Type(); {
	case isSection(t):
		properties := map[string]any{}
		for _, m := range members(v) {
			child, said := find(n, m.path, comment)
			properties[m.path] = schemaOf(m.value, m.tag, child, said)
		}
		s = map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
		if isText(t) { // Redis
			s["type"] = []string{"object", "string"}
		}
	case t.Kind() == reflect.Map:
		child, said := find(n, "", comment)
		s["type"], s["additionalProperties"] = []string{"object", "null"}, schemaOf(newValue(t.Elem()), tag, child, said)
		switch t.Key() {
		case reflect.TypeFor[mapping.Operation]():
			s["propertyNames"] = map[string]any{"enum": mapping.Operations()}
		case reflect.TypeFor[idmap.Kind]():
			s["propertyNames"] = map[string]any{"enum": idmap.Kinds()}
		case reflect.TypeFor[idmap.Name]():
			s["propertyNames"] = map[string]any{"minLength": 1}
		case reflect.TypeFor[string]():
			s["propertyNames"] = map[string]any{"pattern": "^" + formats["name"].pattern + "$"}
		}
	case t.Kind() == reflect.Slice:
		item := schemaOf(newValue(t.Elem()), tag, nil, comment)
		s["type"], s["items"] = []string{"array", "null"}, item
		if isText(t) {
			s = map[string]any{"anyOf": []any{map[string]any{"type": "array", "items": item}, map[string]any{"type": item["type"]}}}
		}
		delete(item, "description")
		delete(item, "default")
	default:
		scalarSchema(s, t, tag)
	}
	if text := strings.TrimSpace(regexp.MustCompile(`(?m)^ *# ?`).ReplaceAllString(comment, "")); text != "" {
		s["description"] = text
	}
	return s
}

// scalarSchema says what a plain text may be.
func scalarSchema(s map[string]any, t reflect.Type, tag reflect.StructTag) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, parses := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(t))
	unset, optional := tag.Lookup("unset")
	for _, bound := range []string{tag.Get("min"), tag.Get("max")} {
		if _, err := parseType(reflect.New(t).Elem(), bound, tag); bound != "" && err != nil {
			panic("bad bound " + bound)
		}
	}
	var kinds []string
	switch {
	case tag.Get("is") == "size", t == reflect.TypeFor[switchover.Range](), t == reflect.TypeFor[time.Time]():
		kinds = []string{"string", "integer"}
	case parses || t == reflect.TypeFor[time.Duration]():
		kinds = []string{"string"}
	case t.Kind() == reflect.String && tag.Get("is")+tag.Get("oneof") == "":
		kinds = []string{"string", "number", "boolean"} // a name may look like one
	default:
		kinds = []string{map[reflect.Kind]string{reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number"}[t.Kind()]}
		if kinds[0] == "" {
			kinds[0] = "string"
		}
		for bound, key := range map[string]string{"min": "minimum", "max": "maximum"} {
			if text := tag.Get(bound); text != "" && kinds[0] != "string" {
				s[key] = json.Number(text)
			}
		}
	}
	if text, ok := tag.Lookup("default"); ok {
		s["default"] = text
		if kinds[0] != "string" {
			s["default"] = json.RawMessage(text)
		}
	}
	if choices := tag.Get("oneof"); choices != "" {
		list := strings.Split(choices, "|")
		if optional {
			list = append(list, unset)
		}
		s["enum"] = list
	} else if optional && kinds[0] != "string" {
		kinds = append(kinds, "string")
	}
	if format, known := formats[tag.Get("is")]; known && kinds[0] == "string" {
		s["pattern"] = "^(?:" + format.pattern + ")$"
	}
	if t == reflect.TypeFor[mapping.Operation]() {
		s["enum"] = mapping.Operations()
	}
	s["type"] = kinds
}

// find returns where the example has a key of a section, or its only entry where key is empty, and what is said of it: before it, or
// behind it in the comment before the section.
func find(section *yaml.Node, key, comment string) (*yaml.Node, string) {
	if section != nil && section.Kind == yaml.MappingNode {
		for i := 0; i < len(section.Content); i += 2 {
			if word := section.Content[i]; key == "" || word.Value == key {
				return section.Content[i+1], word.HeadComment
			}
		}
	}
	if key == "" {
		return nil, comment
	}
	if m := regexp.MustCompile(`(?m)^#  .*\b` + key + `: [^#]*# (.*)$`).FindStringSubmatch(comment); m != nil {
		return nil, m[1]
	}
	return nil, ""
}

// TestEveryKeyIsRead finds keys that the program does not read. What checks the values does not count, nor do the tests.
func TestEveryKeyIsRead(t *testing.T) {
	read := selectedNames(t)
	// Types of other packages, and those that are converted to such types, or compared, as a whole.
	converted := []reflect.Type{
		reflect.TypeFor[switchover.Rule](), reflect.TypeFor[switchover.Passthrough](), reflect.TypeFor[compare.Equivalence](), reflect.TypeOf(Rate{}.Anonymous), reflect.TypeOf(Rate{}.Keyed),
		reflect.TypeFor[idmap.Rule](), reflect.TypeFor[idmap.Names](), reflect.TypeFor[TLS](),
	}
	var look func(reflect.Type)
	look = func(section reflect.Type) {
		for f := range section.Fields() {
			kind, name := f.Type, f.Name
			if section == reflect.TypeFor[Config]() {
				name = "cfg." + name
			}
			if f.Tag.Get("key") != "" && !read[name] {
				t.Errorf("nothing reads %s of %s", name, section)
			}
			if kind.Kind() == reflect.Map || kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			}
			if isSection(kind) && !slices.Contains(converted, kind) {
				look(kind)
			}
		}
	}
	look(reflect.TypeFor[Config]())
}

// selectedNames lists what the program selects from values, outside the files that
// describe and check the configuration; with cfg. before it where the value is
// called that.
func selectedNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	collect := func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			slices.Contains([]string{"config.go", "validate.go", "check.go"}, name) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				names[s.Sel.Name] = true
				names[strings.ToLower(lastName(s.X))+"."+s.Sel.Name] = true
			}
			return true
		})
		return nil
	}
	for _, folder := range []string{"..", "../../../cache", "../../../proxy/request.go", "../../../upstream/canary", "../../../upstream/journal"} { // they read their own settings
		must(t, filepath.WalkDir(folder, collect))
	}
	return names
}

// lastName is the last name of an expression such as b.cfg.
func lastName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
