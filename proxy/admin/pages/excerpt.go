package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// line is one line of one of two responses that are shown side by side.
type line struct {
	Indent, Text string
	// Differs says that the other response has no such line.
	Differs bool
}

// maxLines is the number of lines that are shown of one response.
const maxLines = 400

// sideBySide writes two JSON values as lines, and marks those that only one of them has. An empty value has no lines.
func sideBySide(answered, other []byte) (left, right []line) {
	a, b := linesOf(answered), linesOf(other)
	return marked(a, b), marked(b, a)
}

// marked compares the lines of a value with those of the other one. Their order does not count.
func marked(own, other []string) (lines []line) {
	for _, each := range own[:min(len(own), maxLines)] {
		text := strings.TrimLeft(each, " ")
		differs := !slices.ContainsFunc(other, func(o string) bool { return strings.TrimSuffix(o, ",") == strings.TrimSuffix(each, ",") })
		lines = append(lines, line{each[:len(each)-len(text)], text, differs})
	}
	if more := len(own) - maxLines; more > 0 {
		lines = append(lines, line{Text: fmt.Sprintf("… and %d more lines", more)})
	}
	return lines
}

func linesOf(text []byte) []string {
	value, found := decodeValue(text)
	if !found {
		return nil
	}
	return strings.Split(write(value, "  "), "\n")
}

// decodeValue decodes JSON for people: what is redacted becomes a text that says so, and what is not JSON a string. It reports whether there is
// any text.
func decodeValue(text []byte) (any, bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		value = string(text)
	}
	return readable(value), len(text) > 0
}

// readable replaces what is redacted within a value.
func readable(value any) any {
	switch x := value.(type) {
	case map[string]any:
		if text, redacted := redaction(x); redacted {
			return text
		}
		for name := range x {
			x[name] = readable(x[name])
		}
	case []any:
		for i := range x {
			x[i] = readable(x[i])
		}
	}
	return value
}

// write writes a value as JSON: on one line unless there is an indent.
func write(value any, indent string) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	_ = encoder.Encode(value) // it was decoded from JSON
	return strings.TrimSuffix(text.String(), "\n")
}

// redaction returns the text for an object that upstream/canary left in place of a redacted value, and whether it is one.
func redaction(object map[string]any) (string, bool) {
	if len(object) != 1 {
		return "", false
	}
	if object["content"] == "set aside" {
		return "‹content›", true
	}
	inner, _ := object["text"].(map[string]any)
	length, isNumber := inner["length"].(json.Number)
	digest, isText := inner["digest"].(string)
	text := "‹" + length.String() + " characters"
	if isText {
		text += ", #" + digest
	}
	return text + "›", isNumber
}
