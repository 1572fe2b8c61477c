package config

import (
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes the whole configuration in a form that can be read again, with a comment on each value that is not a default.
// Names and passwords in URLs are left out.
func Print(w io.Writer, cfg Config) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(cfg.node("", reflect.ValueOf(cfg), "")); err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	return encoder.Close()
}

// node renders one value: sections in the order of the struct, entries by name, and lists of plain values in one line.
func (c *Config) node(path string, v reflect.Value, tag reflect.StructTag) *yaml.Node {
	if short, ok := reflect.TypeAssert[interface{ word() string }](v); ok && short.word() != "" {
		v = reflect.ValueOf(short.word())
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	var entries []key
	switch t := v.Type(); {
	case isSection(t):
		entries = members(v)
	case t.Kind() == reflect.Map:
		for name, entry := range v.Seq2() {
			entries = append(entries, key{path: fmt.Sprint(name), value: entry})
		}
		slices.SortFunc(entries, func(a, b key) int { return strings.Compare(a.path, b.path) })
	case t.Kind() == reflect.Slice:
		n.Kind = yaml.SequenceNode
		if v.Len() == 0 || !isSection(t.Elem()) {
			n.Style = yaml.FlowStyle
		}
		for i := range v.Len() {
			n.Content = append(n.Content, c.node(fmt.Sprintf("%s[%d]", path, i), v.Index(i), tag))
		}
	default:
		n.SetString(textOf(v, tag)) // quoted where it would be read as something else
		if t.Kind() != reflect.String && n.Value != "" {
			n.Tag = ""
		}
	}
	for _, entry := range entries {
		path := join(path, entry.path)
		child := c.node(path, entry.value, entry.tag)
		if o, known := c.origins[path]; known && child.Kind == yaml.ScalarNode {
			child.LineComment = o.String()
		}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: entry.path}, child)
	}
	return n
}

// Redacted stands in place of a secret.
const Redacted = "REDACTED"

// Printable is a text without the secrets that URLs may carry. Other texts have none: secrets are named by file or variable.
func Printable(text string) string {
	if strings.Contains(text, "://") {
		return RedactURL(text)
	}
	return text
}

// RedactURL removes what may be secret from a URL before it is printed: name and password, and the values of the query. What is
// no URL, but could have a name and password in it, is not printed at all. Nor is a URL of a database with another @: a password with a / in
// it ends early.
func RedactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return Redacted
	}
	login := 0
	if u.User != nil && u.Scheme != "" {
		login = 1
	}
	if web := u.Opaque == "" && strings.HasPrefix(u.Scheme, "http"); !web && strings.Count(text, "@") > login {
		return Redacted
	}
	if u.User != nil {
		u.User = url.User(Redacted)
	}
	if u.RawQuery != "" {
		query := u.Query()
		for key := range query {
			query.Set(key, Redacted)
		}
		u.RawQuery = query.Encode()
	}
	return u.String()
}
