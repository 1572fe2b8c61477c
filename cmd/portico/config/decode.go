package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder maps the nodes of a YAML document to a section. It goes on after a mistake, so that one run reports them all, each at
// its line and column.
type decoder struct {
	problems
	// source is the file, or the variable or flag that is being read.
	source string
	// paths are those of textPaths, for suggestions across sections and for the names of variables.
	paths []string
}

// syntaxError finds the line and the message in an error of the YAML library, which has them in its text only.
var syntaxError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)`)

// document reads a YAML document into v and reports whether it is YAML. A file without content sets nothing.
func (d *decoder) document(content []byte, v reflect.Value) bool {
	d.origins[""] = origin{d.source, 1, 1}
	documents := yaml.NewDecoder(bytes.NewReader(content))
	var first, second yaml.Node
	err := documents.Decode(&first)
	if err == nil {
		d.value("", first.Content[0], v, "")
		if err = documents.Decode(&second); err == nil {
			d.at(d.place(&second), "", "a second document begins here: one file is one configuration")
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return true
	}
	found := syntaxError.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(found[1]) // the parser may be off by one
	d.at(origin{d.source, max(line, 1), 1}, "", "not valid YAML: %s", found[2])
	return false
}

// place is where a node stands.
func (d *decoder) place(n *yaml.Node) origin { return origin{d.source, n.Line, n.Column} }

// kinds are the words for what a node can be.
var kinds = map[yaml.Kind]string{yaml.ScalarNode: "a plain value", yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}

// variable matches a text that a shell would replace.
var variable = regexp.MustCompile(`\$\{\w+\}`)

// value maps one node to one value. A node without a line stands for a variable or a flag.
func (d *decoder) value(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	scalar, text, list := n.Kind == yaml.ScalarNode, isText(v.Type()), v.Kind() == reflect.Slice
	mapping := v.Kind() == reflect.Map || isSection(v.Type())
	if n.Line > 0 || scalar {
		d.origins[path] = d.place(n)
	}
	switch {
	case scalar && n.ShortTag() == "!!null" && (mapping || !text):
		// This is what remains of a section when all its lines are commented out.
	case scalar && n.ShortTag() == "!!null":
		d.at(d.place(n), path, "has no value")
	case scalar && text && n.Line > 0 && variable.MatchString(n.Value):
		d.at(d.place(n), path, "variables in the file are not expanded: give the value, or set a variable that begins with PORTICO_ in the environment")
	case scalar && text:
		if err := parse(v, n.Value, tag); err != nil {
			d.at(d.place(n), path, "%s", err)
		}
	case n.Kind == yaml.MappingNode && mapping:
		if text && n.Line > 0 {
			v.SetZero() // the mapping replaces the text of the default
		}
		d.mapping(path, n, v, tag)
	case n.Kind == yaml.SequenceNode && list:
		v.SetZero()
		for i, item := range n.Content {
			value := newValue(v.Type().Elem())
			d.value(fmt.Sprintf("%s[%d]", path, i), item, value, tag)
			v.Set(reflect.Append(v, value))
		}
	default:
		d.at(d.place(n), path, "cannot be %s", kinds[n.Kind])
	}
}

// mapping maps the keys of a section, or the entries of a map. Each key may come once.
func (d *decoder) mapping(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	seen := map[string]int{}
	for pair := range slices.Chunk(n.Content, 2) {
		word, value, name := pair[0], pair[1], pair[0].Value
		line, twice := seen[name]
		seen[name] = word.Line
		switch {
		case twice:
			d.at(d.place(word), join(path, name), "is set twice, first in line %d", line)
		case name == "" && v.Kind() == reflect.Map:
			d.at(d.place(word), path, "an entry has no name")
		case v.Kind() == reflect.Map:
			d.entry(path, word, value, v, tag)
		default:
			var known []string
			for _, k := range members(v) {
				if known = append(known, k.path); k.path == name {
					d.value(join(path, name), value, k.value, k.tag)
				}
			}
			if !slices.Contains(known, name) {
				hint := cmp.Or(DidYouMean(name, known), strings.ReplaceAll(DidYouMean(name, d.paths), "*", "NAME"))
				d.at(d.place(word), "", "unknown key %q%s%s", name, strings.TrimSuffix(" in "+path, " in "), hint)
			}
		}
	}
}

// entry maps one entry of a map, whose key is a name of the operator's choice, an operation or an id.
func (d *decoder) entry(path string, word, value *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	name, entry := newValue(v.Type().Key()), newValue(v.Type().Elem())
	var format reflect.StructTag
	if name.Type() == reflect.TypeFor[string]() {
		format = `is:"name"`
	}
	if err := parse(name, word.Value, format); err != nil {
		d.at(d.place(word), path, "%s", err)
		return
	}
	path = join(path, word.Value)
	if former := v.MapIndex(name); former.IsValid() {
		entry.Set(former)
	} else {
		d.origins[path] = d.place(word) // of what the entry lacks, where a variable makes it
	}
	d.value(path, value, entry, tag)
	v.SetMapIndex(name, entry)
}
