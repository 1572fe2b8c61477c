package pages

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/proxy/admin/view"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/switchover"
)

// functions are those that the templates of pages have besides the ones of package view.
var functions = view.FuncMap{
	"times":    func(n int64) string { return plural(n, "time", "times") },
	"text":     func(value fmt.Stringer) string { return value.String() },
	"fragment": fragment,
	"title":    title,
	"means":    compare.Class.Means,
	"dropped":  func(reason string) string { return drops[verdict.DropReason(reason)] },

	"sampled":    sampled,
	"percent":    percent,
	"label":      timeline.Label,
	"phases":     switchover.Phases,
	"step":       stepClass,
	"conditions": switchover.Rule.Conditions,
	"problem":    judgement.Problem,
	"ticket":     ticket,
}

// ticket returns the first http or https URL in the reason of a judgement, empty if there is none.
func ticket(reason string) string {
	for word := range strings.FieldsSeq(reason) {
		if strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://") {
			return strings.TrimRight(word, ".,;:)")
		}
	}
	return ""
}

// plural writes a number with its noun.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return view.Count(n) + " " + many
}

// title says in words what an operation does.
func title(operation mapping.Operation) string { return cmp.Or(operation.Title(), string(operation)) }

// drops says for each reason why comparisons were not made.
var drops = map[verdict.DropReason]string{
	verdict.DropQueueFull:       "too many comparisons waited, for a worker or for being confirmed",
	verdict.DropRateLimit:       "more samples than are compared, or differences than are confirmed, in a second",
	verdict.DropMemory:          "waiting responses filled the memory set aside for them",
	verdict.DropUnread:          "the client did not read its response to the end",
	verdict.DropNotModified:     "the response was “not modified” and had no content",
	verdict.DropAnsweredFailed:  "the tracker that serves clients failed",
	verdict.DropOwnError:        "Portico refused the request itself",
	verdict.DropUnreadable:      "the response is not JSON that can be compared",
	verdict.DropCredentials:     "the other tracker would not know the caller",
	verdict.DropUnreachable:     "no connection to the candidate",
	verdict.DropBreaker:         "the candidate failed so often that it is left alone",
	verdict.DropOverload:        "the candidate had as many comparisons as it may",
	verdict.DropCandidateFailed: "a call of the candidate, for a client or once more, failed",
	verdict.DropOtherFailed:     "the tracker that is not the candidate failed",
	verdict.DropDigestNoise:     "the responses were too long, and those of one tracker differ each time",
	verdict.DropNotIsolated:     "the candidate has not proved to be isolated",
	verdict.DropPayload:         "the content of a write was too large to be kept",
	verdict.DropPlanFailed:      "a write could not be written for one of the trackers",
	verdict.DropClosed:          "Portico stopped or reloaded meanwhile",
	verdict.DropInternal:        "a file for a response could not be written or read, or a mistake of the comparison itself",
}

// fragment writes one side of a difference.
func fragment(class compare.Class, value jsontext.Value) string {
	decoded, found := decodeValue(value)
	if !found {
		return "absent"
	}
	return write(decoded, "") + class.Unit()
}
