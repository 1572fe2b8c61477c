package mapping

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Text gives the text that a tracker makes of a JSON scalar: a string as
// it is, numbers in their shortest form, true as 1 and false as 0. Arrays and
// objects have no text; a tracker would store ARRAY(0x…) for them (tracker-behaviour.md
// section 6), so ok is false. Null is not a scalar either.
func Text(value jsontext.Value) (text string, ok bool) {
	switch value.Kind() {
	case '"':
		return unquote(value), true
	case '0':
		return numberText(string(value)), true
	case 't':
		return "1", true
	case 'f':
		return "0", true
	default:
		return "", false
	}
}

// wordText is Text for ids and names: true is neither, though a tracker may
// take it for the id 1.
func wordText(value jsontext.Value) (text string, ok bool) {
	if value.Kind() == 't' || value.Kind() == 'f' {
		return "", false
	}
	return Text(value)
}

// numberText writes a JSON number as the tracker would: 5.0 is 5, 1e3 is 1000.
func numberText(literal string) string {
	if !strings.ContainsAny(literal, ".eE") {
		return literal
	}
	number, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return literal
	}
	return strconv.FormatFloat(number, 'g', 15, 64)
}

// isNull reports whether a value is absent or null.
func isNull(value jsontext.Value) bool { return value == nil || value.Kind() == 'n' }

// isFalsy reports whether the tracker takes a text for "not set"
// (tracker-behaviour.md section 3, name).
func isFalsy(text string) bool { return text == "" || text == "0" }

// ParseBool reads a boolean in every form that clients send: true, false,
// numbers, and the strings 1, 0, true, false, yes, no, on, off, t, f, y, n in
// any case; an empty string is false. A raw tracker takes every other string,
// "false" among them, for true (tracker-behaviour.md section 3); see docs/divergences.md.
func ParseBool(value jsontext.Value) (is, ok bool) {
	switch value.Kind() {
	case 't':
		return true, true
	case 'f', 'n':
		return false, true
	case '0':
		number, err := strconv.ParseFloat(string(value), 64)
		return number != 0, err == nil
	case '"':
		return boolText(unquote(value))
	default:
		return false, false
	}
}

func boolText(text string) (is, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	switch text {
	case "true", "t", "yes", "y", "on":
		return true, true
	case "false", "f", "no", "n", "off", "":
		return false, true
	}
	number, err := strconv.ParseFloat(text, 64)
	return number != 0, err == nil
}

// isDigits reports whether a text is one or more ASCII digits, which is what the
// tracker takes for an id in a path (tracker-behaviour.md section 4, Selection).
func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// parseID reads an id of any number of leading zeros that fits 64 bits, with
// blanks around it.
func parseID(text string) (id int64, ok bool) { return parseDigits(strings.TrimSpace(text)) }

// parseDigits is parseID without the blanks.
func parseDigits(text string) (id int64, ok bool) {
	if !isDigits(text) {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}

// Int gives a JSON integer, also one written as a string.
func Int(value jsontext.Value) (number int64, ok bool) {
	text, ok := wordText(value)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return number, err == nil
}

// IsAPIKey reports whether text has the form of an API key: 40 ASCII letters and
// digits. Trackers make keys of no other form, so that a bearer value of another
// form is the token of an OAuth2 server or of a gateway.
func IsAPIKey(text string) bool {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	return len(text) == 40 && strings.Trim(text, alphabet) == ""
}
