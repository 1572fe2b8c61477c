package writes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// Keys of writes that name no object: anyFlagType stands for each write to a flag type,
// allFlagTypes for writes that may have changed all of them, and newAttachment for each
// create of an attachment, whose id is not known.
const (
	anyFlagType   = "any flag type"
	allFlagTypes  = "all flag types"
	newAttachment = "new attachment"
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

// isChangedSince reports whether an object or one of its flags says so.
func isChangedSince(object jsontext.Value, since time.Time) bool {
	members, _ := mapping.ParseMembers(object) // what is not an object has no members
	return slices.ContainsFunc(members, func(member mapping.Member) bool {
		if member.Name == "flags" {
			var flags []json.RawMessage
			_ = json.Unmarshal(member.Value, &flags) // what is not a list has no flags
			return slices.ContainsFunc(flags, func(flag json.RawMessage) bool { return isChangedSince(jsontext.Value(flag), since) })
		}
		at, ok := compare.ChangeTime(member.Name, member.Value)
		return ok && !at.Before(since)
	})
}

func keysOfWrite(write upstream.Call) []string {
	switch {
	case write.CreateAttachment != nil:
		return append(keysOf("bug", write.CreateAttachment.Named()), newAttachment)
	case write.UpdateAttachments != nil:
		return keysOf("attachment", write.UpdateAttachments.IDs)
	case write.CreateFlagType != nil && write.CreateFlagType.Name != nil:
		return append(keysOf("flag type", []string{*write.CreateFlagType.Name}), anyFlagType)
	case write.UpdateFlagTypes != nil:
		update := write.UpdateFlagTypes
		return append(slices.Concat(keysOf("flag type", update.IDs), keysOf("flag type", update.Names)), anyFlagType)
	}
	return []string{anyFlagType, allFlagTypes}
}

// keysOfDifference names the object that differs, and where it is no single one, or one
// that only one side has, what the call asked for.
func keysOfDifference(call upstream.Call, d compare.Difference) (keys []string) {
	kind := "attachment"
	if call.FlagTypes != nil {
		kind, keys = "flag type", []string{allFlagTypes}
	}
	for _, text := range []jsontext.Value{d.WantIn, d.HaveIn, d.Want, d.Have} {
		object, _ := mapping.ParseMembers(text) // what is not an object has no members
		for _, name := range []string{"id", "name"} {
			if value, ok := mapping.Text(object.Get(name)); ok {
				keys = append(keys, keysOf(kind, []string{value})...)
			}
		}
	}
	switch {
	case d.Object != "":
	case call.FlagTypes != nil && d.Want.Kind() != '{' && d.Have.Kind() != '{':
		keys = append(keys, anyFlagType)
	case call.Attachments != nil:
		keys = slices.Concat(keys, keysOf("bug", call.Attachments.Bugs), keysOf("attachment", call.Attachments.Attachments), []string{newAttachment})
	}
	return keys
}

func keysOf[T any](kind string, names []T) []string {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = strings.ToLower(fmt.Sprint(kind, " ", name))
	}
	return keys
}
