package compare

import (
	"bytes"
	"regexp"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// unquoted gives what a JSON string says, and any other value as it is written. A string with escapes that is not UTF-8 keeps them,
// after a byte that no valid text has.
func unquoted(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return raw
	}
	inside := raw[1 : len(raw)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return append([]byte{0xff}, inside...)
	}
	return text
}

// quote makes a JSON string. Invalid UTF-8 becomes U+FFFD.
func quote(text string) jsontext.Value {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return quoted
}

// address is how Perl writes a reference: the number is another one each time.
var address = regexp.MustCompile(`\b(ARRAY|CODE|GLOB|HASH|IO|REF|SCALAR)\(0x[0-9a-f]+\)`)

// withoutAddresses leaves of each address of memory what kind of thing is there.
func withoutAddresses(text []byte) []byte {
	if !bytes.Contains(text, []byte("(0x")) {
		return text
	}
	return address.ReplaceAll(text, []byte("$1(0x)"))
}

// isInteger reports whether a JSON number is written as an integer.
func isInteger(number []byte) bool { return !bytes.ContainsAny(number, ".eE") }

// decimal writes a JSON number in the one form that all numbers have which clients read alike. One beyond their range stays as it
// is written.
func decimal(number jsontext.Value) string {
	value, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return string(number)
	}
	return strconv.FormatFloat(value+0, 'g', -1, 64) // which makes -0 the same as 0
}

// canonical gives one text for all spellings of a value that is neither object nor array. Integers are told from other numbers.
func canonical(raw jsontext.Value) []byte {
	switch kind := raw.Kind(); {
	case kind == '"':
		return append([]byte{'"'}, withoutAddresses(unquoted(raw))...)
	case string(raw) == "-0":
		return raw[1:]
	case kind == '0' && !isInteger(raw):
		return []byte("." + decimal(raw))
	}
	return raw
}

// layouts are the notations of time that trackers use.
var layouts = []string{time.RFC3339, "2006-01-02 15:04:05", "20060102T15:04:05", "2006-01-02"}

// timeOf reads a time. notation is equal for times that are written alike.
func timeOf(text []byte) (at time.Time, notation string, ok bool) {
	for _, layout := range layouts {
		if at, err := time.Parse(layout, string(text)); err == nil {
			return at, digit.ReplaceAllString(string(text), "0"), true
		}
	}
	return at, "", false
}

var digit = regexp.MustCompile(`[0-9]`)

// timesApart gives the distance of two JSON strings that are times in one notation, and false for anything else.
func timesApart(want, have jsontext.Value) (time.Duration, bool) {
	first, notation, ok := timeOf(unquoted(want))
	second, other, also := timeOf(unquoted(have))
	return first.Sub(second).Abs(), ok && also && notation == other
}
