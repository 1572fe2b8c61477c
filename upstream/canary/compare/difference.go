package compare

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
)

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
