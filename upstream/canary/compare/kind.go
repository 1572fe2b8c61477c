package compare

import (
	"cmp"
	"html"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxShort is the length in bytes up to which two texts are a kind of their own.
const maxShort = 2

// Kind names the kind of a difference among those of its class and path, in words; it is empty where there is only one kind. The
// kinds of status, code, type and the like are pairs of values. Other values differ in a way that is the same for all objects,
// such as letter case, or else each object is a kind of its own.
func (d Difference) Kind() string {
	if kind := classes[d.Class].kind; kind != nil && (d.Want != nil || d.Have != nil) {
		return kind(d)
	}
	return ""
}

func valuePair(d Difference) string { return shortText(d.Want) + " → " + shortText(d.Have) }

func typePair(d Difference) string { return typeName(d.Want) + " → " + typeName(d.Have) }

// objectKind is the kind of a difference that says nothing about other objects.
func objectKind(d Difference) string {
	if d.Object == "" {
		return ""
	}
	return "at " + d.Object
}

// oneSidedKind distinguishes whole objects, and short values such as those of a flag.
func oneSidedKind(d Difference) string {
	value := slices.Concat(d.Want, d.Have) // one of them is nil
	text := unquoted(value)
	switch {
	case d.Object == "" && value.Kind() == '{':
		return "at " + d.Pointer
	case value.Kind() == '"' && len(text) <= maxShort:
		return string(text)
	}
	return ""
}

func valueKind(d Difference) string {
	want, have := string(unquoted(d.Want)), string(unquoted(d.Have))
	truth := []string{"0", "1", "true", "false"}
	isText := d.Want.Kind() == '"'
	switch {
	case len(want) <= maxShort && len(have) <= maxShort && isText, slices.Contains(truth, want) && slices.Contains(truth, have):
		return want + " → " + have
	case strings.HasSuffix(d.Path, ".id") || strings.HasSuffix(d.Path, "_id"):
		return "" // each object has another one
	case !isText:
		return objectKind(d)
	case changeOf(want, have) != "":
		return textKind(d)
	}
	return strings.TrimSpace(objectKind(d) + " " + textKind(d))
}

// textKind names how a text was changed.
func textKind(d Difference) string {
	return cmp.Or(changeOf(string(unquoted(d.Want)), string(unquoted(d.Have))), "another text")
}

// changeOf names a change of a text that is the same for all texts, empty when there is none.
func changeOf(want, have string) string {
	withoutSpace := func(text string) string { return strings.Join(strings.Fields(text), "") }
	first, _, isTime := timeOf([]byte(want))
	second, _, also := timeOf([]byte(have))
	switch {
	case isTime && also && first.Equal(second):
		return "the same time"
	case have == "" || want == "":
		return "an empty text"
	case strings.EqualFold(want, have):
		return "letter case"
	case withoutSpace(want) == withoutSpace(have):
		return "white space"
	case html.UnescapeString(want) == html.UnescapeString(have):
		return "HTML escapes"
	case strings.HasPrefix(want, have):
		return "a shorter text"
	case strings.HasPrefix(have, want), strings.HasSuffix(have, want):
		if strings.ContainsAny(strings.Replace(have, want, "", 1), "<>&\"'`{}") { // a script is no suffix
			return "a longer text with markup"
		}
		return "a longer text"
	case sameBehindHost(want, have):
		return "another host"
	}
	return ""
}

// timeKind names the direction.
func timeKind(d Difference) string {
	want, _, _ := timeOf(unquoted(d.Want))
	have, _, _ := timeOf(unquoted(d.Have))
	if have.Before(want) {
		return "earlier"
	}
	return "later"
}

// shortText is a value in one line of bounded length.
func shortText(value jsontext.Value) string {
	if value == nil {
		return "nothing"
	}
	text := string(unquoted(value))
	return text[:min(len(text), 64)]
}

// typeName is the JSON type of a value in words; integers are distinguished from other numbers.
func typeName(value jsontext.Value) string {
	switch kind := value.Kind(); {
	case value == nil:
		return "nothing"
	case kind == 't' || kind == 'f':
		return "boolean"
	case kind == '0' && isInteger(value):
		return "integer"
	case kind == '{':
		return "object"
	case kind == '[':
		return "array"
	default:
		return kind.String() // null, string or number
	}
}
