package writes

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/maypok86/otter/v2"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
)

const (
	// maxReplication is how long after a write the candidate may show what was there
	// before it.
	maxReplication = time.Minute
	// timeSlack is the error of a tracker's time: a second, as trackers give
	// whole ones, and a second between two clocks.
	timeSlack = 2 * time.Second
	// maxSeen is the maximum number of remembered objects.
	maxSeen = 4096
)

// Seen remembers when objects were last written, as far as this process saw it. It is safe for concurrent use.
type Seen struct {
	at *otter.Cache[string, time.Time]
}

// NewSeen makes a memory of a bounded number of objects.
func NewSeen() *Seen {
	return &Seen{at: otter.Must(&otter.Options[string, time.Time]{MaximumSize: maxSeen})}
}

// Note remembers what a write is about, now.
func (s *Seen) Note(write upstream.Call) {
	for _, key := range keysOfWrite(write) {
		s.at.Set(key, time.Now())
	}
}

// Explains reports whether a write explains a difference in the replies to a call that were first compared at began: of
// one that is gone, a write that the candidate may have got late; of one that lasts, a write after began. No write explains
// a failure.
func (s *Seen) Explains(call upstream.Call, d compare.Difference, began time.Time) bool {
	if d.Unstable {
		began = began.Add(-maxReplication)
	}
	return !d.IsFailure() && (ChangedSince(d, began.Add(-timeSlack)) ||
		slices.ContainsFunc(keysOfDifference(call, d), func(key string) bool {
			at, seen := s.at.GetIfPresent(key)
			return seen && !at.Before(began)
		}))
}

// ChangedSince reports whether the object of a difference, as the reference has it, was changed at a time or later.
func ChangedSince(d compare.Difference, since time.Time) bool {
	object := d.WantIn
	if object == nil {
		object = d.Want
	}
	return !d.IsFailure() && isChangedSince(object, since)
}

// isChangedSince reports whether an object or one of its flags says so. A time that is far ahead would explain everything for ever.
func isChangedSince(object jsontext.Value, since time.Time) bool {
	members, _ := mapping.ParseMembers(object) // what is not an object has no members
	return slices.ContainsFunc(members, func(member mapping.Member) bool {
		if member.Name == "flags" {
			var flags []json.RawMessage
			_ = json.Unmarshal(member.Value, &flags) // what is not a list has no flags
			return slices.ContainsFunc(flags, func(flag json.RawMessage) bool { return isChangedSince(jsontext.Value(flag), since) })
		}
		at, ok := compare.ChangeTime(member.Name, member.Value)
		return ok && !at.Before(since) && time.Until(at) < maxReplication
	})
}
