package mapping

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// scalarText gives the text that a tracker makes of a JSON scalar: a string as
// it is, numbers in their shortest form, true as 1 and false as 0. Arrays and
// objects have no text; a tracker would store ARRAY(0x…) for them (wire-facts.md
// section 6), so ok is false. Null is not a scalar either.
func scalarText(value jsontext.Value) (text string, ok bool) {
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

// wordText is scalarText for ids and names: true is neither, though a tracker may
// take it for the id 1.
func wordText(value jsontext.Value) (text string, ok bool) {
	if value.Kind() == 't' || value.Kind() == 'f' {
		return "", false
	}
	return scalarText(value)
}

// numberText writes a JSON number as the tracker would: 5.0 is 5, 1e3 is 1000, -0 and -0.0 are 0.
func numberText(literal string) string {
	if literal != "-0" && !strings.ContainsAny(literal, ".eE") {
		return literal
	}
	number, err := strconv.ParseFloat(literal, 64)
	switch {
	case err != nil:
		return literal
	case number == 0:
		return "0" // of any sign: the tracker takes it for not set
	}
	return strconv.FormatFloat(number, 'g', 15, 64)
}

// isNull tells whether a value is absent or null.
func isNull(value jsontext.Value) bool { return value == nil || value.Kind() == 'n' }

// isFalsy tells whether the tracker takes a text for "not set"
// (wire-facts.md section 3, name).
func isFalsy(text string) bool { return text == "" || text == "0" }

// ParseBool reads a boolean in every form that clients send: true, false,
// numbers, and the strings 1, 0, true, false, yes, no, on, off, t, f, y, n in
// any case; an empty string is false. A raw tracker takes every other string,
// "false" among them, for true (wire-facts.md section 3); see docs/divergences.md.
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
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "1", "true", "t", "yes", "y", "on":
		return true, true
	case "0", "0.0", "false", "f", "no", "n", "off", "":
		return false, true
	default:
		return decimalText(strings.TrimSpace(text))
	}
}

// decimalText leaves out what else ParseFloat takes: NaN and Infinity by their names, hexadecimal digits, and underscores. To
// nobody who writes them into a boolean are they one.
func decimalText(text string) (is, ok bool) {
	number, err := strconv.ParseFloat(text, 64)
	return number != 0, err == nil && strings.Trim(text, "0123456789.eE+-") == ""
}

// isDigits tells whether a text is one or more ASCII digits, which is what the
// tracker takes for an id in a path (wire-facts.md section 4, Selection).
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

// Text gives a JSON scalar as the text that a tracker would make of it.
func Text(value jsontext.Value) (text string, ok bool) { return scalarText(value) }

// Int gives a JSON integer, also one written as a string.
func Int(value jsontext.Value) (number int64, ok bool) {
	text, ok := wordText(value)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return number, err == nil
}
