package main

import (
	"encoding"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is one key of a section, read from a struct field and its tags.
type field struct {
	key   string
	index int
	tag   reflect.StructTag
}

// fieldsOf lists the keys of a section in the order of the struct.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("key"); key != "" {
			fields = append(fields, field{key: key, index: i, tag: t.Field(i).Tag})
		}
	}
	return fields
}

// isSection reports whether values of the type are mappings with known keys.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && len(fieldsOf(t)) > 0
}

// isText reports whether a plain text is a whole value of the type.
func isText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	case reflect.Slice:
		return isText(t.Elem())
	}
	return t == reflect.TypeFor[netip.Prefix]() ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// leafPaths lists every path that takes a plain text, with * for the name of a
// map entry. What stands in lists of sections has none, nor have entries whose
// names are not of the operator's choice: only a file can say such things.
func leafPaths(t reflect.Type, prefix string) []string {
	var paths []string
	if isText(t) {
		paths = append(paths, prefix)
	}
	switch {
	case isSection(t):
		for _, f := range fieldsOf(t) {
			paths = append(paths, leafPaths(t.Field(f.index).Type, join(prefix, f.key))...)
		}
	case t.Kind() == reflect.Map && t.Key() == reflect.TypeFor[string]():
		paths = append(paths, leafPaths(t.Elem(), join(prefix, "*"))...)
	}
	return paths
}

// join puts a key behind the path of its section.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// newEntry returns an addressable entry of a map of sections, with the defaults
// that hold for every entry.
func newEntry(t reflect.Type) reflect.Value {
	entry := reflect.New(t)
	if d, ok := reflect.TypeAssert[interface{ SetDefaults() }](entry); ok {
		d.SetDefaults()
	}
	return entry.Elem()
}

// setText sets a value from a plain text: a scalar of the file, an environment
// variable or a flag. One function for the three, so that they agree.
func setText(v reflect.Value, text string, tag reflect.StructTag) error {
	if err := parseText(v, text); err != nil {
		return err
	}
	return checkBounds(v, text, tag)
}

// parseText is setText without the bounds.
func parseText(v reflect.Value, text string) error {
	switch target := v.Addr().Interface().(type) {
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 500ms, 30s or 5m", text)
		}
		*target = d
		return nil
	case *netip.Prefix:
		return parseNetwork(target, text)
	case encoding.TextUnmarshaler:
		return target.UnmarshalText([]byte(text))
	}
	return parseKind(v, text)
}

// parseKind reads the types that have no syntax of their own.
func parseKind(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(n)
	case reflect.Slice:
		items := splitList(text)
		list := reflect.MakeSlice(v.Type(), len(items), len(items))
		for i, item := range items {
			if err := parseText(list.Index(i), item); err != nil {
				return err
			}
		}
		v.Set(list)
	default:
		return fmt.Errorf("cannot be set from a plain text")
	}
	return nil
}

// parseNetwork reads a network, or one address, which is a network of one.
func parseNetwork(target *netip.Prefix, text string) error {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		*target = netip.PrefixFrom(addr, addr.BitLen())
		return nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("%q is not an address or network such as 10.0.0.0/8", text)
	}
	*target = prefix.Masked()
	return nil
}

// checkBounds holds a value against the tags oneof, min and max of its field. A
// oneof that begins with | takes the empty text too.
func checkBounds(v reflect.Value, text string, tag reflect.StructTag) error {
	if allowed := tag.Get("oneof"); allowed != "" {
		choices := strings.Split(allowed, "|")
		if !slices.Contains(choices, v.String()) {
			choices = slices.DeleteFunc(choices, func(c string) bool { return c == "" })
			return fmt.Errorf("%q is not one of %s%s", text, strings.Join(choices, ", "), didYouMean(nearest(text, choices)))
		}
	}
	if bound := tag.Get("min"); bound != "" && number(v) < boundOf(v.Type(), bound) {
		return fmt.Errorf("%s is less than %s", text, bound)
	}
	if bound := tag.Get("max"); bound != "" && number(v) > boundOf(v.Type(), bound) {
		return fmt.Errorf("%s is more than %s", text, bound)
	}
	return nil
}

// boundOf reads a bound as a value of the type. That every bound can be read is
// checked by a test over the whole Config.
func boundOf(t reflect.Type, text string) float64 {
	v := reflect.New(t).Elem()
	if err := parseText(v, text); err != nil {
		panic("config: bad bound in a struct tag: " + err.Error())
	}
	return number(v)
}

// number is the value of a number of any kind; bounds are far from where whole
// numbers lose digits.
func number(v reflect.Value) float64 {
	if v.Kind() == reflect.Float64 {
		return v.Float()
	}
	return float64(v.Int())
}

// didYouMean is the suggestion at the end of a message, or nothing.
func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", word)
}
