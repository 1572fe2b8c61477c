package main

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// printConfig writes the whole configuration as it holds, in a form that can be
// read again, with a comment on each value that is not a default. Names and
// passwords in URLs are left out.
func printConfig(w io.Writer, cfg Config) error {
	root := cfg.node("", reflect.ValueOf(cfg))
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	return encoder.Close()
}

// node renders one value.
func (c *Config) node(path string, v reflect.Value) *yaml.Node {
	n := c.bareNode(path, v)
	if o, ok := c.origins[path]; ok && n.Kind == yaml.ScalarNode {
		n.LineComment = o.String()
	}
	return n
}

// bareNode is node without the comment.
func (c *Config) bareNode(path string, v reflect.Value) *yaml.Node {
	t := v.Type()
	if text, ok := shorthand(v); ok {
		return textNode(printable(text))
	}
	switch {
	case isSection(t):
		return c.sectionNode(path, v)
	case t.Kind() == reflect.Map:
		return c.mapNode(path, v)
	}
	switch value := v.Interface().(type) {
	case time.Duration:
		return plain(durationText(value))
	case encoding.TextMarshaler:
		// A text with commas is a list in one word, for variables only.
		text, err := value.MarshalText()
		if err == nil && len(text) == 0 {
			return textNode("")
		}
		if err == nil && !strings.Contains(string(text), ",") {
			return plain(string(text))
		}
	}
	switch {
	case t.Kind() == reflect.Slice:
		return c.listNode(path, v)
	case t.Kind() == reflect.String:
		return textNode(printable(v.String()))
	}
	// What is left prints as the text that it is read from.
	return plain(fmt.Sprint(v.Interface()))
}

// shorthand returns the plain text that stands for a whole section, where the
// section says no more than its first key does.
func shorthand(v reflect.Value) (string, bool) {
	t := v.Type()
	if !isSection(t) || !isText(t) {
		return "", false
	}
	text, again := v.Field(fieldsOf(t)[0].index).String(), reflect.New(t)
	err := parseText(again.Elem(), text)
	return text, err == nil && reflect.DeepEqual(again.Elem().Interface(), v.Interface())
}

// durationText is a duration without the zeros at its end.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// sectionNode renders the keys of a section in the order of the struct.
func (c *Config) sectionNode(path string, v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(v.Type()) {
		n.Content = append(n.Content, plain(f.key), c.node(join(path, f.key), v.Field(f.index)))
	}
	return n
}

// mapNode renders the entries of a map by name.
func (c *Config) mapNode(path string, v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	entries := map[string]reflect.Value{}
	for key, value := range v.Seq2() {
		entries[fmt.Sprint(key.Interface())] = value
	}
	for _, name := range sortedKeys(entries) {
		n.Content = append(n.Content, plain(name), c.node(join(path, name), entries[name]))
	}
	return n
}

// listNode renders a list in one line, and one of sections in several.
func (c *Config) listNode(path string, v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	if isSection(v.Type().Elem()) && v.Len() > 0 {
		n.Style = 0
	}
	for i := range v.Len() {
		n.Content = append(n.Content, c.bareNode(path+"["+strconv.Itoa(i)+"]", v.Index(i)))
	}
	return n
}

// plain is a scalar that YAML reads back as the same text without quotes.
func plain(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// textNode is a text, quoted where it would be read as something else.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	if text == "" {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// printable is a text without the secrets that URLs may carry. Other texts hold
// none: secrets are named by file or variable.
func printable(text string) string {
	if strings.Contains(text, "://") {
		return redactURL(text)
	}
	return text
}
