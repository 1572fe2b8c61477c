package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// key is a key of the configuration, or a struct whose keys stand in the section around it.
type key struct {
	path  string
	value reflect.Value
	tag   reflect.StructTag
}

// walk visits a value and all structs and keys in it, sections before their keys. Items of lists are not visited. Where v can be set,
// visit may set the values.
func walk(path string, v reflect.Value, tag reflect.StructTag, visit func(key)) {
	visit(key{path, v, tag})
	switch {
	case v.Kind() == reflect.Map:
		for name, entry := range v.Seq2() {
			held := reflect.New(entry.Type()).Elem()
			held.Set(entry)
			walk(join(path, fmt.Sprint(name)), held, "", visit)
			if v.CanSet() {
				v.SetMapIndex(name, held)
			}
		}
	case isSection(v.Type()):
		for f, value := range v.Fields() {
			if f.Tag != "" {
				walk(join(path, f.Tag.Get("key")+f.Tag.Get("keys")), value, f.Tag, visit)
			}
		}
	}
}

// members lists the keys of a section itself in the order of the struct; their paths begin in it.
func members(section reflect.Value) (list []key) {
	walk("", section, "", func(k key) {
		if k.tag.Get("key") != "" && !strings.Contains(k.path, ".") {
			list = append(list, k)
		}
	})
	return list
}

// isSection reports whether values of the type are mappings with known keys.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.Contains(string(t.Field(0).Tag), "key")
}

// isText reports whether a plain text is a whole value of the type.
func isText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map:
		return false
	case reflect.Slice:
		return isText(t.Elem())
	default:
		return !isSection(t) || t == reflect.TypeFor[Redis]()
	}
}

// join puts a key behind the path of its section. Behind a path that ends in _ it is the rest of a name.
func join(path, key string) string {
	if path == "" || key == "" || strings.HasSuffix(path, "_") {
		return path + key
	}
	return path + "." + key
}

// Defaults returns a section, or an entry of Trackers or of a list, in which nothing is set.
func Defaults[T any]() T { return newValue(reflect.TypeFor[T]()).Interface().(T) }

// newValue is Defaults for a reflected type; the value is addressable.
func newValue(t reflect.Type) reflect.Value {
	value := reflect.New(t).Elem()
	walk("", value, "", func(k key) {
		if text := k.tag.Get("default"); text != "" {
			if err := parse(k.value, text, k.tag); err != nil {
				panic("config: bad struct tag: " + err.Error())
			}
		} else if k.value.Kind() == reflect.Map {
			k.value.Set(reflect.MakeMap(k.value.Type()))
		}
	})
	return value
}

// textPaths lists every path that takes a plain text, with * for the name of an entry. Sections in lists, and entries that are
// not named by the operator, have none: only a file can set them.
func textPaths() (paths []string) {
	cfg := Default()
	cfg.Trackers["*"], cfg.Callers["*"] = Tracker{}, Caller{}
	walk("", reflect.ValueOf(cfg), "", func(k key) {
		if isText(k.value.Type()) {
			paths = append(paths, k.path)
		}
	})
	return paths
}

// SortedKeys returns the names in a map in alphabetical order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
