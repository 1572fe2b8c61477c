package compare

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

// Class names a kind of difference. The names appear in findings, metrics and rules, so they never change.
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

// Paths of differences that are not in a body. Those of headers begin with PathHeader, and those of bodies with $.
const (
	PathStatus  = "status"
	PathCode    = "code"
	PathMessage = "message"
	PathHeader  = "header."
	PathFailure = "failure"
	// PathRefused is that of a plan that one side's tracker has no form for.
	PathRefused = "refused"
)

// Difference is one difference between two replies.
type Difference struct {
	Class Class `json:"class"`
	// Path is the same wherever the same thing differs: elements of arrays that have ids are [id], objects with ids as names
	// and all other elements [*], such as $.bugs[*][id].flags[id].status. It contains no data.
	Path string `json:"path"`
	// Pointer is the place in these replies: Path with ids and positions.
	Pointer string `json:"pointer"`
	// Want is the reference's value, Have the candidate's, as raw JSON; nil means absent.
	Want jsontext.Value `json:"want,omitempty"`
	Have jsontext.Value `json:"have,omitempty"`
	// Rule names the equivalence that excuses the difference, empty when none does.
	Rule string `json:"rule,omitempty"`

	// Unstable says that the difference was gone when both trackers were asked again, and that no write explains it.
	Unstable bool `json:"unstable,omitempty"`

	// Place is the path of the attachment, flag type or record that has the difference, empty without one; Object is
	// its pointer, and WantIn and HaveIn are that object on each side.
	Place          string         `json:"-"`
	Object         string         `json:"-"`
	WantIn, HaveIn jsontext.Value `json:"-"`
}

// Signature is the id of all differences of one class and one kind at one path in the replies to an operation: 16 hexadecimal
// digits. A finding has one signature, so that accepting it accepts no other kind of difference at the path.
func (d Difference) Signature(operation mapping.Operation) string {
	text := string(operation) + "\x00" + string(d.Class) + "\x00" + d.Path
	if kind := d.Kind(); kind != "" {
		text += "\x00" + kind
	}
	if d.Unstable {
		text += "\x00unstable"
	}
	return fmt.Sprintf("%x", hash(text)[:8])
}

// SamePlace reports whether two differences are of one class at one place.
func (d Difference) SamePlace(other Difference) bool {
	return d.Class == other.Class && d.Pointer == other.Pointer
}

// IsFailure reports whether the candidate does not work, which no write explains.
func (d Difference) IsFailure() bool {
	have, _ := strconv.Atoi(string(d.Have))
	return d.Class == ClassFailure || d.Class == ClassStatus && have >= http.StatusInternalServerError ||
		d.Class == ClassCode && have == mapping.CodeTrackerFailure
}

// TimeApart gives the distance of two times. ofChange says that they are when something was made or changed.
func (d Difference) TimeApart() (apart time.Duration, ofChange bool) {
	apart, _ = timesApart(d.Want, d.Have)
	return apart, d.Class.HasTimes() && d.isChangeTime()
}

// changeTimes are the members that say when something was made or changed (interface.md section 1).
var changeTimes = []string{"creation_time", "last_change_time", "creation_date", "modification_date"}

// ChangeTime returns the time that a member has which says when something was made or changed, false for any other member.
func ChangeTime(name string, value jsontext.Value) (time.Time, bool) {
	at, _, ok := timeOf(unquoted(value))
	return at, ok && slices.Contains(changeTimes, name)
}

func (d Difference) isChangeTime() bool {
	return slices.Contains(changeTimes, last(namesOf(d.Path), 1))
}

// Remaining gives what asking both trackers a second time shows of the differences of the first time. before and now are the
// replies of the reference. Differences that are still there have their present values; those that are gone are Unstable. Where the
// candidate refuses the second time and the reference replies as before, the differences cannot be seen, and remain.
func Remaining(before, now Reply, first, second []Difference) []Difference {
	hidden := slices.ContainsFunc(second, Difference.isOutcome) &&
		before.Status == now.Status && before.Code == now.Code && before.Failure == now.Failure
	left := make([]Difference, 0, len(first))
	for _, d := range first {
		at := slices.IndexFunc(second, d.SamePlace)
		switch {
		case at >= 0:
			d = second[at]
		case !hidden || d.isOutcome():
			d.Unstable = true
		}
		left = append(left, d)
	}
	return left
}

func (d Difference) isOutcome() bool { return classes[d.Class].outcome }

// Changed returns a function that reports of a difference whether the reference replied something else there another time, or
// whether its object was changed meanwhile. changes are the differences between the two replies of the reference.
func Changed(changes []Difference) func(Difference) bool {
	return func(d Difference) bool {
		return !d.IsFailure() && slices.ContainsFunc(changes, func(change Difference) bool {
			switch {
			case change.Rule != "":
				return false
			case change.isOutcome() || change.Pointer == "$":
				return true
			case change.Pointer == d.Pointer:
				return !classes[d.Class].structural || classes[change.Class].structural
			}
			return d.Object != "" && (change.Pointer == d.Object || change.Object == d.Object && change.isChangeTime())
		})
	}
}
