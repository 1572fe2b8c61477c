package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"portico"
	"portico/mapping"
	"portico/upstream/switchover"
)

var update = flag.Bool("update", false, "write docs/reference/config.schema.json")

// TestSchemaIsMadeOfTheTypes: the JSON Schema that the program prints has the keys, types, bounds and defaults of the tags, and the
// descriptions of the example. Run the test with -update after a change of them.
func TestSchemaIsMadeOfTheTypes(t *testing.T) {
	var example yaml.Node
	if err := yaml.Unmarshal([]byte(portico.ConfigExample), &example); err != nil {
		t.Fatal(err)
	}
	schema := schemaOf(reflect.ValueOf(Default()), "", example.Content[0], "")
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "Configuration of Portico"
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("../../../docs/reference/config.schema.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want.String() != portico.ConfigSchema {
		t.Error("docs/reference/config.schema.json is not that of the types and of config.example.yaml: run this test with -update")
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
		if t.Key() == reflect.TypeFor[mapping.Operation]() {
			s["propertyNames"] = map[string]any{"enum": mapping.Operations()}
		} else if t.Key().Kind() == reflect.String {
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
		kinds = []string{map[reflect.Kind]string{reflect.Bool: "boolean", reflect.Int: "integer", reflect.Float64: "number"}[t.Kind()]}
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
