package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"portico/mapping"
)

// walker maps the nodes of a YAML document to a Config. It goes on after a
// mistake, so that one run reports them all, each at its line and column.
type walker struct {
	problemList
	file string
	// paths are all known leaf paths, for suggestions across sections.
	paths []string
}

// entryName is what a name of the operator's choice looks like. There is no
// underscore in it, so that it can be told from the key behind it in the name of
// an environment variable.
var entryName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// document reads one YAML document into v and reports whether it is YAML. A
// file without content is one where everything is as the defaults say.
func (w *walker) document(r io.Reader, v reflect.Value) bool {
	var docs [2]yaml.Node
	var read bytes.Buffer
	decoder := yaml.NewDecoder(io.TeeReader(r, &read))
	for i := range docs {
		switch err := decoder.Decode(&docs[i]); {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			w.syntax(err, 1+bytes.Count(bytes.TrimRight(read.Bytes(), " \t\r\n"), []byte{'\n'}))
			return false
		case i > 0:
			w.at(w.place(&docs[i]), "", "a second document begins here: one file is one configuration")
		default:
			w.value("", docs[i].Content[0], v, "")
		}
	}
	return true
}

// syntaxLine finds the line in a YAML syntax error, which is the only place
// where the library keeps it.
var syntaxLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// grammar matches what the library's parser finds, as opposed to its scanner: only the
// scanner counts lines from 1.
var grammar = regexp.MustCompile(`^(did not find expected (node content|'-' indicator|key$|',' or |<)|found (undefined tag|duplicate %|incompatible YAML))`)

// syntax records an error of the YAML parser, which knows the line only. What is missing at
// the end is missing in the last line.
func (w *walker) syntax(err error, last int) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	o := origin{source: w.file, line: 1, column: 1}
	if m := syntaxLine.FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		// The pattern admits digits only; an absurd number keeps line 1.
		if line, err := strconv.Atoi(m[1]); err == nil {
			o.line = line
		}
		if grammar.MatchString(message) {
			o.line = min(o.line+1, last)
		}
	}
	w.at(o, "", "not valid YAML: %s", message)
}

// place is where a node stands.
func (w *walker) place(n *yaml.Node) origin {
	return origin{source: w.file, line: n.Line, column: n.Column}
}

// value maps one node to one value.
func (w *walker) value(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	w.origins[path] = w.place(n)
	switch {
	case n.Kind == yaml.ScalarNode:
		w.scalar(path, n, v, tag)
	case n.Kind == yaml.SequenceNode && v.Kind() == reflect.Slice:
		w.sequence(path, n, v, tag)
	case n.Kind == yaml.MappingNode && v.Kind() == reflect.Map:
		w.entries(path, n, v, tag)
	case n.Kind == yaml.MappingNode && isSection(v.Type()):
		if isText(v.Type()) {
			// The mapping replaces the text that the default is given as.
			v.SetZero()
		}
		w.section(path, n, v)
	default:
		w.at(w.place(n), path, "is %s, but must be %s", kindName(n.Kind), expected(v.Type()))
	}
}

// scalar maps a plain text. A section without content is what remains when all
// its lines are commented out, and means the defaults.
func (w *walker) scalar(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	null := n.ShortTag() == "!!null"
	switch {
	case null && (isSection(v.Type()) || v.Kind() == reflect.Map || v.Kind() == reflect.Slice && isSection(v.Type().Elem())):
	case null:
		w.at(w.place(n), path, "has no value")
	case !isText(v.Type()):
		w.at(w.place(n), path, "is a plain value, but must be %s", expected(v.Type()))
	default:
		if err := setText(v, n.Value, tag); err != nil {
			w.at(w.place(n), path, "%s", err)
		}
	}
}

// sequence maps a list, item by item.
func (w *walker) sequence(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		list.Index(i).Set(newEntry(v.Type().Elem()))
		w.value(path+"["+strconv.Itoa(i)+"]", item, list.Index(i), tag)
	}
	v.Set(list)
}

// entries maps a mapping whose keys are names of the operator's choice, or of
// operations, or ids.
func (w *walker) entries(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	w.pairs(path, n, func(name string, key, value *yaml.Node) {
		at, entry := reflect.New(v.Type().Key()).Elem(), newEntry(v.Type().Elem())
		if message := setName(at, name); message != "" {
			w.at(w.place(key), path, "%s", message)
			return
		}
		w.value(join(path, name), value, entry, tag)
		v.SetMapIndex(at, entry)
	})
}

// setName sets the key of an entry, or says why the name cannot stand there.
func setName(key reflect.Value, name string) (message string) {
	switch {
	case key.Type() == reflect.TypeFor[mapping.Operation]():
		message = unknownOperation(name)
	case key.Kind() == reflect.String && !entryName.MatchString(name):
		message = fmt.Sprintf("%q cannot be a name here: use lower-case letters, digits and hyphens", name)
	}
	if err := parseKind(key, name); err != nil {
		message = err.Error()
	}
	return message
}

// unknownOperation says that a name is that of no operation, or nothing.
func unknownOperation(name string) string {
	var known []string
	for _, operation := range mapping.Operations() {
		known = append(known, string(operation))
	}
	if slices.Contains(known, name) {
		return ""
	}
	return fmt.Sprintf("%q is none of the operations %s%s", name, strings.Join(known, ", "), didYouMean(nearest(name, known)))
}

// section maps a mapping whose keys are known.
func (w *walker) section(path string, n *yaml.Node, v reflect.Value) {
	fields := fieldsOf(v.Type())
	w.pairs(path, n, func(name string, key, value *yaml.Node) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == name })
		if i < 0 {
			w.at(w.place(key), "", "unknown key %q%s%s", name, in(path), didYouMean(w.suggest(name, fields)))
			return
		}
		w.value(join(path, name), value, v.Field(fields[i].index), fields[i].tag)
	})
}

// pairs calls do for each key of a mapping and refuses keys that come twice.
func (w *walker) pairs(path string, n *yaml.Node, do func(name string, key, value *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			w.at(w.place(key), path, "a key must be a plain word")
			continue
		}
		if line, ok := seen[key.Value]; ok {
			w.at(w.place(key), join(path, key.Value), "is set twice, first in line %d", line)
			continue
		}
		seen[key.Value] = key.Line
		do(key.Value, key, value)
	}
}

// suggest finds the key that an unknown one was meant to be: a neighbour with
// nearly the same name, or the same name in another section.
func (w *walker) suggest(name string, fields []field) string {
	siblings := make([]string, len(fields))
	for i, f := range fields {
		siblings[i] = f.key
	}
	if near := nearest(name, siblings); near != "" {
		return near
	}
	i := slices.IndexFunc(w.paths, func(p string) bool { return strings.HasSuffix(p, "."+name) })
	if i < 0 {
		return ""
	}
	return strings.ReplaceAll(w.paths[i], "*", "NAME")
}

// in names the section for a message.
func in(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// kindName is the operator's word for a kind of node.
func kindName(k yaml.Kind) string {
	switch k {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a plain value"
}

// expected is the operator's word for what a type takes.
func expected(t reflect.Type) string {
	switch {
	case isSection(t) && isText(t):
		return "a plain value or a mapping"
	case isSection(t), t.Kind() == reflect.Map:
		return "a mapping"
	case t.Kind() == reflect.Slice:
		return "a list"
	}
	return "a plain value"
}
