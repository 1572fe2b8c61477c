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

// line is one line of one of two answers that stand side by side.
type line struct {
	// Indent and Label come before the value: spaces, and the member's name.
	Indent, Label string
	Value         string
	Comma         string
	// Sign tells how the line compares with the one beside it: "≠" other, "−" only in the first, "+" only in the second, "" the same.
	Sign string
	// Gap says that there is no such line here, only on the other side.
	Gap bool
	// Aside says that the line differs, but belongs to another finding.
	Aside bool
}

// Class is the line's class in the page.
func (l line) Class() string {
	switch {
	case l.Gap:
		return "l gap"
	case l.Sign != "" && !l.Aside:
		return "l differs"
	default:
		return "l"
	}
}

// mostLines bounds what is shown of one answer.
const mostLines = 400

// sideBySide writes two JSON values as lines, so that lines that belong together have the same place. Nil is nothing. What
// differs elsewhere than at path, a Difference's, is aside, unless the values have nothing there.
func sideBySide(answered, other []byte, path string) (left, right []line) {
	a, hasA := decodeValue(answered)
	b, hasB := decodeValue(other)
	d := duet{focus: focusOf(path, a, b)}
	d.pair("", "", item{a, hasA, false}, item{b, hasB, false})
	return cut(d.left), cut(d.right)
}

func cut(lines []line) []line {
	if len(lines) <= mostLines {
		return lines
	}
	return append(lines[:mostLines:mostLines], line{Value: fmt.Sprintf("… and %d more lines", len(lines)-mostLines)})
}

func decodeValue(text []byte) (any, bool) {
	if len(text) == 0 {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return string(text), true
	}
	return value, true
}

// item is a value of one side, if there is one, and whether a comma follows.
type item struct {
	value any
	here  bool
	comma bool
}

// duet writes both sides.
type duet struct {
	left, right []line
	// focus is the member that the reader looks for, empty for all. aside says that what is written is not of it.
	focus string
	aside bool
}

// names finds the members in the path of a Difference.
var names = regexp.MustCompile(`[^.\[\]]+`)

// focusOf gives the member of one of two objects that is the nearest to the end of a path.
func focusOf(path string, a, b any) string {
	objectA, _ := members(a)
	objectB, _ := members(b)
	for _, name := range slices.Backward(names.FindAllString(path, -1)) {
		_, inA := objectA[name]
		_, inB := objectB[name]
		if inA || inB {
			return name
		}
	}
	return ""
}

// pair writes what belongs together.
func (d *duet) pair(indent, label string, a, b item) {
	objectA, isA := members(a.value)
	objectB, isB := members(b.value)
	listA, areA := a.value.([]any)
	listB, areB := b.value.([]any)
	switch {
	case !b.here:
		d.apart(indent, label, a, b, "−")
	case !a.here:
		d.apart(indent, label, a, b, "+")
	case isA && isB && len(objectA)+len(objectB) > 0:
		d.both(indent, label+"{")
		d.objects(indent+"  ", objectA, objectB)
		d.close(indent, "}", a, b)
	case areA && areB && len(listA)+len(listB) > 0:
		d.both(indent, label+"[")
		d.lists(indent+"  ", listA, listB)
		d.close(indent, "]", a, b)
	case compact(a.value) == compact(b.value):
		d.apart(indent, label, a, b, "")
	default:
		d.apart(indent, label, a, b, "≠")
	}
}

func (d *duet) both(indent, text string) {
	d.left = append(d.left, line{Indent: indent, Label: text})
	d.right = append(d.right, line{Indent: indent, Label: text})
}

func (d *duet) close(indent, bracket string, a, b item) {
	d.left = append(d.left, line{Indent: indent, Label: bracket, Comma: a.ending()})
	d.right = append(d.right, line{Indent: indent, Label: bracket, Comma: b.ending()})
}

func (i item) ending() string {
	if i.comma {
		return ","
	}
	return ""
}

// apart writes each side for itself and fills the shorter one with gaps.
func (d *duet) apart(indent, label string, a, b item, sign string) {
	left, right := a.lines(indent, label, sign), b.lines(indent, label, sign)
	for len(left) < len(right) {
		left = append(left, line{Gap: true})
	}
	for len(right) < len(left) {
		right = append(right, line{Gap: true})
	}
	for i := range left {
		left[i].Aside, right[i].Aside = d.aside, d.aside
	}
	d.left, d.right = append(d.left, left...), append(d.right, right...)
}

// lines writes a value alone, over as many lines as it needs.
func (i item) lines(indent, label, sign string) []line {
	if !i.here {
		return nil
	}
	text := pretty(i.value, indent)
	var all []line
	for part := range strings.SplitSeq(text, "\n") {
		value := strings.TrimLeft(part, " ")
		deeper := strings.TrimPrefix(part[:len(part)-len(value)], indent)
		all = append(all, line{Indent: indent + deeper, Label: label, Value: value, Sign: sign})
		label = ""
	}
	all[len(all)-1].Comma = i.ending()
	return all
}

func (d *duet) objects(indent string, a, b map[string]any) {
	names := slices.Sorted(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var pairs []couple
	for _, name := range names {
		valueA, inA := a[name]
		valueB, inB := b[name]
		pairs = append(pairs, couple{name: name, label: quote(name) + ": ", a: item{value: valueA, here: inA}, b: item{value: valueB, here: inB}})
	}
	d.couples(indent, pairs)
}

func (d *duet) lists(indent string, a, b []any) { d.couples(indent, align(a, b)) }

// couple is a member or an element as both sides have it.
type couple struct {
	name, label string
	a, b        item
}

// couples writes members or elements, each with a comma unless it is the last of its side.
func (d *duet) couples(indent string, pairs []couple) {
	moreA, moreB := false, false
	for i, p := range slices.Backward(pairs) {
		pairs[i].a.comma, pairs[i].b.comma = moreA, moreB
		moreA, moreB = moreA || p.a.here, moreB || p.b.here
	}
	for _, p := range pairs {
		if outermost := len(indent) == 2; outermost {
			d.aside = d.focus != "" && p.name != d.focus
		}
		d.pair(indent, p.label, p.a, p.b)
	}
}

// members gives an object's members. What a redaction left behind is no object but one value.
func members(value any) (map[string]any, bool) {
	object, ok := value.(map[string]any)
	if _, redacted := redaction(object); redacted {
		return nil, false
	}
	return object, ok
}

// pretty writes a value over several lines.
func pretty(value any, indent string) string {
	switch x := value.(type) {
	case map[string]any:
		if text, redacted := redaction(x); redacted {
			return text
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(x)) {
			parts = append(parts, quote(name)+": "+pretty(x[name], indent+"  "))
		}
		return inBrackets("{", parts, "}", indent)
	case []any:
		var parts []string
		for _, element := range x {
			parts = append(parts, pretty(element, indent+"  "))
		}
		return inBrackets("[", parts, "]", indent)
	default:
		return compact(value)
	}
}

func inBrackets(open string, parts []string, shut, indent string) string {
	if len(parts) == 0 {
		return open + shut
	}
	return open + "\n" + indent + "  " + strings.Join(parts, ",\n"+indent+"  ") + "\n" + indent + shut
}

// compact writes a value on one line.
func compact(value any) string {
	if object, ok := value.(map[string]any); ok {
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

func quote(text string) string { return compact(text) }
