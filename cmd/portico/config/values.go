package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"portico/mapping"
	"portico/upstream/switchover"
)

// parse reads a plain text of the file, the environment or a flag into a value, and holds it against the tags of its key. After
// an error the value is as it was.
func parse(v reflect.Value, text string, tag reflect.StructTag) error {
	if unset, optional := tag.Lookup("unset"); optional && text == unset {
		v.SetZero()
		return nil
	}
	value := reflect.New(v.Type()).Elem()
	value.Set(v)
	what, err := parseType(value, text, tag)
	if what != "" && err != nil {
		return fmt.Errorf("%q is not %s", text, what)
	}
	if err == nil {
		err = checkBounds(value, text, tag)
	}
	if err == nil {
		v.Set(value)
	}
	return err
}

// parseType is parse without the bounds of the value itself. what describes the values of the type; it is empty where the error
// says so.
func parseType(v reflect.Value, text string, tag reflect.StructTag) (what string, err error) {
	if tag.Get("is") == "size" {
		size, err := parseSize(text)
		v.SetInt(size)
		return "a size such as 64MiB, 10MB or 512", err
	}
	switch target := v.Addr().Interface().(type) {
	case *time.Duration:
		*target, err = time.ParseDuration(text)
		return "a duration such as 500ms, 30s or 5m", err
	case *time.Time: // a day begins in UTC
		return "a date such as 2026-12-31", yaml.Unmarshal([]byte(text), target)
	case *netip.Prefix:
		if address, bad := netip.ParseAddr(text); bad == nil {
			text = fmt.Sprintf("%s/%d", text, address.BitLen()) // a network of one
		}
		*target, err = netip.ParsePrefix(text)
		*target = target.Masked()
		return "an address or network such as 10.0.0.0/8", err
	case *switchover.Range:
		*target, err = switchover.ParseRange(text)
		return "a range of ids such as 1-100, 7 or 500-", err
	case *mapping.Operation:
		*target = mapping.Operation(text)
		return "", checkOperation(text)
	case encoding.TextUnmarshaler:
		return "", target.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return "", nil
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return "", parse(v.Elem(), text, tag)
	case reflect.Slice:
		items := []string{text}
		if tag.Get("comma") != "no" {
			items = splitList(text)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			err = errors.Join(err, parse(v.Index(i), item, tag))
		}
		return "", err
	case reflect.Int, reflect.Int64: // YAML would cut off a fraction
		n, err := strconv.ParseInt(text, 0, 64)
		v.SetInt(n)
		return "a whole number", err
	case reflect.Bool:
		what = "true or false"
	case reflect.Float64:
		what = "a number"
	}
	if err = yaml.Unmarshal([]byte(text), v.Addr().Interface()); text == "" {
		err = strconv.ErrSyntax
	}
	return what, err
}

// The parts of formats.
const (
	hostPattern = `([\w.-]+|\[[\w.:%-]+\])`
	portPattern = `:(6553[0-5]|655[0-2]\d|65[0-4]\d{2}|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3})`
)

// formats are the values of the tag is, as a regular expression for the whole text.
var formats = map[string]struct{ pattern, what string }{
	"address": {hostPattern + `?(:0|` + portPattern + `)`, "an address such as 127.0.0.1:8080 or :8080"},
	"server":  {hostPattern + portPattern, "host:port"},
	"host":    {`((https?://)?` + hostPattern + `(` + portPattern + `)?)?`, "a host such as bugs.example.org or https://bugs.example.org"},
	"link":    {`https?://.*`, "an http or https URL"},
	"path":    {`(/+(([^/.]|\.[^/.]|\.\.[^/])[^/]*)?)+`, "a path that begins with / and has no dot segments"},
	// There is no underscore in a name, so that it can be told from the key behind it in the name of an environment variable.
	"name":   {`[a-z][a-z0-9-]{0,31}`, "a name of lower-case letters, digits and hyphens"},
	"header": {"[!#-'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*", "Name: value"},
	"secret": {`[^\pZ\pC]([^\pC]*[^\pZ\pC])?`, "one line of text without a byte order mark or spaces around it"},
	"store":  {`sqlite:.+|postgres(ql)?://([^/?].*|.*[?&]host=.+)`, "sqlite:FILE or a postgres://HOST/DATABASE URL"},
}

// is reports whether a text has a format.
func is(text, format string) bool {
	return regexp.MustCompile("^(?:" + formats[format].pattern + ")$").MatchString(text)
}

// checkBounds holds a value against the tags oneof, is, min and max, which for a list or a pointer are those of what is in it.
func checkBounds(v reflect.Value, text string, tag reflect.StructTag) error {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Pointer {
		return nil
	}
	if format, known := formats[tag.Get("is")]; known && !is(text, tag.Get("is")) {
		shown := Printable(text)
		if shown == text && strings.ContainsAny(text, "@=") { // it may have a password, as connection strings of PostgreSQL do
			shown = Redacted
		}
		return fmt.Errorf("%q is not %s", shown, format.what)
	}
	if oneof := tag.Get("oneof"); oneof != "" {
		if choices := strings.Split(oneof, "|"); !slices.Contains(choices, text) {
			return fmt.Errorf("%q is not one of %s%s", text, strings.Join(choices, ", "), DidYouMean(text, choices))
		}
	}
	against := func(bound string) int {
		if bound == "" {
			return 0
		}
		limit := reflect.New(v.Type()).Elem()
		_, _ = parseType(limit, bound, tag)          // a test reads all tags
		return cmp.Compare(number(v), number(limit)) // what is not a number is less than all
	}
	if bound := tag.Get("min"); against(bound) < 0 {
		return fmt.Errorf("%s is less than %s", text, bound)
	}
	if bound := tag.Get("max"); against(bound) > 0 {
		return fmt.Errorf("%s is more than %s", text, bound)
	}
	return nil
}

// number is the value of a number of any kind; bounds are far from where whole numbers lose digits.
func number(v reflect.Value) float64 { return v.Convert(reflect.TypeFor[float64]()).Float() }

// textOf is the text that parse reads as the value.
func textOf(v reflect.Value, tag reflect.StructTag) string {
	if unset, optional := tag.Lookup("unset"); optional && v.IsZero() {
		return unset
	}
	if tag.Get("is") == "size" {
		return sizeText(v.Int())
	}
	switch value := reflect.Indirect(v).Interface().(type) {
	case time.Duration:
		return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(value.String())
	case time.Time:
		return value.Format(time.RFC3339Nano)
	default:
		return Printable(fmt.Sprint(value))
	}
}

// checkOperation returns an error unless the text is empty or names an operation.
func checkOperation(name string) error {
	known := []string{""}
	for _, operation := range mapping.Operations() {
		known = append(known, string(operation))
	}
	if slices.Contains(known, name) {
		return nil
	}
	return fmt.Errorf("%q is not an operation (%s)%s", name, strings.Join(known[1:], ", "), DidYouMean(name, known))
}

// splitList splits a text at its commas and blanks.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// sizeUnits are the suffixes of a size. They are case-sensitive, since "mb" may as well mean bits.
var sizeUnits = map[string]int64{
	"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "GB": 1e9, "MB": 1e6, "KB": 1e3, "kB": 1e3, "B": 1, "": 1,
}

// parseSize reads a number of bytes.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "GMKkiB")
	unit, known := sizeUnits[text[len(digits):]]
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || !known || n*unit/unit != n {
		return 0, strconv.ErrSyntax
	}
	return n * unit, nil
}

// sizeText writes a size with the largest binary unit that divides it.
func sizeText(size int64) string {
	for _, unit := range []string{"GiB", "MiB", "KiB"} {
		if size != 0 && size%sizeUnits[unit] == 0 {
			return fmt.Sprint(size/sizeUnits[unit], unit)
		}
	}
	return fmt.Sprint(size)
}

// Prefixes is a list of path prefixes: all is the prefix "/", none is empty.
type Prefixes []string

// UnmarshalText reads all, none, or prefixes with commas between them, the form of an environment variable.
func (p *Prefixes) UnmarshalText(text []byte) error {
	switch string(text) {
	case "all":
		*p = Prefixes{"/"}
	case "none":
		*p = Prefixes{}
	default:
		*p = splitList(string(text))
		if len(*p) == 0 || slices.ContainsFunc(*p, func(item string) bool { return !is(item, "path") }) {
			return fmt.Errorf("%q is neither all nor none nor a list of path prefixes", text)
		}
	}
	return nil
}

// word returns all or none where that is the whole list, or else "".
func (p Prefixes) word() string {
	return map[string]string{"/": "all", "": "none"}[strings.Join(p, ",")]
}
