package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// line is one line of one of two responses that are shown side by side.
type line struct {
	// Indent and Label precede the value: spaces, and the member's name.
	Indent, Label, Value, Comma string
	// Sign compares the line with the one beside it: "≠" different, "−" only in the first, "+" only in the second, "" equal.
	Sign string
	// Gap says that the other side has a line here and this one has none.
	Gap bool
	// Aside says that the line differs, but belongs to another finding.
	Aside bool

	// key is the place of the line in the response. Elements of a list have the same place, unless they have an id or a name.
	key string
	// member is the outermost member that the line belongs to.
	member string
}

// maxLines is the number of lines that are shown of one response.
const maxLines = 400

// memberNames finds the members in the path of a Difference.
var memberNames = regexp.MustCompile(`[^.\[\]]+`)

// sideBySide writes two JSON values as lines and puts lines of the same place side by side. An empty value has no lines. What
// differs outside of path, the path of a Difference, is aside, unless the values have nothing there.
func sideBySide(answered, other []byte, path string) (left, right []line) {
	a, b := linesOf(answered), linesOf(other)
	focus := ""
	for _, name := range memberNames.FindAllString(path, -1) {
		if slices.ContainsFunc(slices.Concat(a, b), func(l line) bool { return l.member == name }) {
			focus = name
		}
	}
	best := bestScores(a, b)
	for i, j := 0, 0; i < len(a) || j < len(b); {
		l, r := line{Gap: true}, line{Gap: true}
		switch {
		case i < len(a) && j < len(b) && similarity(a[i], b[j]) > 0 && best[i][j] == best[i+1][j+1]+similarity(a[i], b[j]):
			l, r = a[i], b[j]
			if l.Value != r.Value {
				l.Sign, r.Sign = "≠", "≠"
			}
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || best[i][j] == best[i+1][j]):
			l = a[i]
			l.Sign = "−"
			i++
		default:
			r = b[j]
			r.Sign = "+"
			j++
		}
		l.Aside, r.Aside = focus != "" && l.member != focus, focus != "" && r.member != focus
		left, right = append(left, l), append(right, r)
	}
	return left, right
}

// bestScores holds at [i][j] the maximum sum of similarities when the lines from a[i] and b[j] on are paired in order.
func bestScores(a, b []line) [][]int {
	best := make([][]int, len(a)+1)
	best[len(a)] = make([]int, len(b)+1)
	for i, lineA := range slices.Backward(a) {
		best[i] = make([]int, len(b)+1)
		for j, lineB := range slices.Backward(b) {
			best[i][j] = max(best[i+1][j], best[i][j+1], best[i+1][j+1]+similarity(lineA, lineB))
		}
	}
	return best
}

// similarity rates a pair of lines. Lines of different places are not paired.
func similarity(a, b line) int {
	switch {
	case a.key != b.key:
		return 0
	case a.Value != b.Value:
		return 1
	default:
		return 3
	}
}

func linesOf(text []byte) []line {
	value, found := decodeValue(text)
	if !found {
		return nil
	}
	lines := appendLines(nil, value, line{})
	if len(lines) <= maxLines {
		return lines
	}
	return append(lines[:maxLines:maxLines], line{Value: fmt.Sprintf("… and %d more lines", len(lines)-maxLines)})
}

// appendLines writes a value over as many lines as it needs. next is the first of them, without the value.
func appendLines(lines []line, value any, next line) []line {
	var parts []line
	var values []any
	brackets := "[]"
	switch x := value.(type) {
	case map[string]any:
		if _, redacted := redaction(x); redacted {
			break
		}
		brackets = "{}"
		for _, name := range slices.Sorted(maps.Keys(x)) {
			part := line{Label: compact(name) + ": ", member: next.member}
			if next.member == "" {
				part.member = name
			}
			part.key = next.key + "." + part.Label
			parts, values = append(parts, part), append(values, x[name])
		}
	case []any:
		for _, element := range x {
			parts = append(parts, line{key: next.key + "[" + identity(element) + "]", member: next.member})
		}
		values = x
	}
	if len(parts) == 0 {
		next.Value = compact(value)
		return append(lines, next)
	}
	end := next
	next.Value, end.Label = brackets[:1], brackets[1:]
	end.key += end.Label
	lines = append(lines, next)
	for i, part := range parts {
		part.Indent = next.Indent + "  "
		lines = appendLines(lines, values[i], part)
		if i < len(parts)-1 {
			lines[len(lines)-1].Comma = ","
		}
	}
	return append(lines, end)
}

// identity returns a text that is the same for elements with the same id or else the same name, and "" for others.
func identity(element any) string {
	object, _ := element.(map[string]any)
	for _, name := range []string{"id", "name"} {
		if id, found := object[name]; found {
			return fmt.Sprint(name, " ", id)
		}
	}
	return ""
}

// decodeValue decodes JSON; what is not JSON becomes a string. It reports whether there is any text.
func decodeValue(text []byte) (any, bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		value = string(text)
	}
	return value, len(text) > 0
}

// compact writes a value on one line.
func compact(value any) string {
	if object, isObject := value.(map[string]any); isObject {
		if text, redacted := redaction(object); redacted {
			return text
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return "?"
	}
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
