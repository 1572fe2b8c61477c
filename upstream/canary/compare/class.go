package compare

import (
	"cmp"
	"html"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Class names a kind of difference, which the comparison (values, Compare) picks. The names appear in findings, metrics and rules, so they
// never change. There is no scale of severity: Class.At says which classes are a FAIL at any mismatch rate.
type Class string

// The classes. Each has a row in the table classes.
const (
	ClassStatus  Class = "status"
	ClassCode    Class = "code"
	ClassMessage Class = "message"
	ClassHeader  Class = "header"
	ClassMissing Class = "missing"
	ClassExtra   Class = "extra"
	ClassNull    Class = "null"
	// ClassType is also a number that is an integer on one side only (1 and 1.0): it is equal in value, but a client that
	// reads integers fails on one of them.
	ClassType  Class = "type"
	ClassValue Class = "value"
	// ClassTime is another time in the same notation; another notation is ClassValue.
	ClassTime Class = "time"
	// ClassOrder is reported once per array.
	ClassOrder   Class = "order"
	ClassSet     Class = "set"
	ClassDigest  Class = "digest"
	ClassFailure Class = "failure"
	ClassPlan    Class = "plan"
	ClassLatency Class = "latency"
)

// classInfo is all that the program knows of a class.
type classInfo struct {
	// means describes the class in a sentence.
	means string
	// kind names the kind of a difference among those of its class and path, nil where there is only one.
	kind func(Difference) string
	// rules are the types of equivalences that can excuse it.
	rules []EquivalenceType
	// family is shared by the classes that are the same noise, empty for what is never noise. With byValue each value is
	// noise of its own: a tracker that sometimes responds 503 does not excuse another one that responds 404.
	family  string
	byValue func(jsontext.Value) string
	// outcome says that nothing else is compared beside it.
	outcome bool
	// structural says that another value of the reference does not explain it.
	structural bool
	// times says that its values are times. What happens again happens at another time.
	times bool
	// unit follows its values on pages.
	unit string
	// texts is the form that its values must have to be kept in samples, where its path is its name. Empty keeps no text.
	texts string
	// failure says why an open finding is a FAIL at any mismatch rate, and note what its note adds to means: at the path
	// special, or at all paths where that is empty.
	special, failure, note string
}

var textRules = []EquivalenceType{Regex, URLHost}

var classes = map[Class]classInfo{
	ClassStatus:  {means: "The HTTP status is another one.", kind: valuePair, rules: []EquivalenceType{Pair}, family: "status ", byValue: rawText, outcome: true},
	ClassCode:    {means: "The error code is another one.", kind: valuePair, rules: []EquivalenceType{Pair}, family: "code ", byValue: rawText, outcome: true},
	ClassMessage: {means: "The error message is another one.", kind: textKind, rules: textRules, family: "message"},
	ClassHeader:  {means: "A header that clients look at differs.", kind: valuePair, rules: textRules, family: "header"},
	ClassMissing: {means: "The candidate leaves this out.", kind: oneSidedKind, family: "presence", structural: true},
	ClassExtra:   {means: "Only the candidate has this.", kind: oneSidedKind, rules: []EquivalenceType{Extra}, family: "presence", structural: true},
	ClassNull:    {means: "This is null on one side only.", kind: typePair, family: "null"},
	ClassType:    {means: "This has another JSON type.", kind: typePair, rules: []EquivalenceType{IntAsBool}, family: "type ", byValue: typeName, structural: true},
	ClassValue:   {means: "This has another value.", kind: valueKind, rules: []EquivalenceType{IDMap, Regex, URLHost}, family: "value"},
	ClassTime:    {means: "This is another time.", kind: timeKind, rules: []EquivalenceType{TimeWithin}, family: "value", times: true},
	ClassOrder:   {means: "These are the same elements in another order.", rules: []EquivalenceType{Set}, family: "order"},
	ClassSet:     {means: "These are other elements, whatever their order.", kind: objectKind, family: "set"},
	ClassDigest:  {means: "The content is another one; only digests were compared.", kind: objectKind, family: "digest"},
	ClassFailure: {means: "The candidate failed and the reference did not.", kind: valuePair, outcome: true, texts: `[a-z]+(-[a-z]+){0,4}`},
	ClassPlan: {
		means: "Each tracker would be sent another request for the same write.", structural: true,
		special: PathRefused, failure: "the candidate has no form for a call that clients make", note: "The write can be expressed for one of the trackers only.",
	},
	ClassLatency: {means: "The candidate is slower than it may be.", unit: " ms", failure: "the candidate is slower than allowed"},
}

// Classes lists all classes, sorted by name.
func Classes() []Class { return slices.Sorted(maps.Keys(classes)) }

// Means describes the class in a sentence, for pages.
func (c Class) Means() string { return classes[c].means }

// Unit follows a value on pages, after a space; it is empty for values without a unit.
func (c Class) Unit() string { return classes[c].unit }

// HasTimes reports whether the values are times.
func (c Class) HasTimes() bool { return classes[c].times }

// At gives, for a path, what the note of a finding adds to Means, and why an open finding is a FAIL at any mismatch rate. Both
// may be empty.
func (c Class) At(path string) (note, failure string) {
	info := classes[c]
	if info.special != "" && info.special != path {
		return "", ""
	}
	return info.note, info.failure
}

// NoiseFamily names what the reference must be seen to vary in, so that a difference of this class is noise where one side has
// the value. It is empty for a class that is never noise.
func (c Class) NoiseFamily(value jsontext.Value) string {
	info := classes[c]
	if info.byValue != nil {
		return info.family + info.byValue(value)
	}
	return info.family
}

func rawText(value jsontext.Value) string { return string(value) }

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

// textKind names how a text was changed, and otherwise which punctuation the candidate's has in addition.
func textKind(d Difference) string {
	want, have := string(unquoted(d.Want)), string(unquoted(d.Have))
	return cmp.Or(changeOf(want, have), withMarks("another text", want, have))
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
	case strings.HasPrefix(have, want):
		return withMarks("a longer text", "", have[len(want):])
	case strings.HasSuffix(have, want):
		return withMarks("a longer text", "", have[:len(have)-len(want)])
	case sameBehindHost(want, have):
		return "another host"
	}
	return ""
}

// withMarks adds the marks that only have has: a text that gained those of a script is a kind of its own.
func withMarks(kind, want, have string) string {
	added := strings.Map(func(mark rune) rune {
		if strings.ContainsRune(have, mark) && !strings.ContainsRune(want, mark) {
			return mark
		}
		return -1
	}, "\"&'()/;<>\\`{}")
	return strings.TrimSuffix(kind+" with "+added, " with ")
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
