package pages

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream/canary"
)

// words are what templates write values with.
var words = template.FuncMap{
	"count":    count,
	"times":    func(n int64) string { return plural(n, "time", "times") },
	"share":    share,
	"duration": duration,
	"at":       at,
	"machine":  machineTime,
	"fragment": fragment,
	"title":    operationTitle,
	"means":    classMeans,
	"dropped":  dropMeans,
	"lower":    strings.ToLower,
}

// count writes a number with commas.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// share writes a share from 0 to 1 as a percentage with three significant digits.
func share(s float64) string {
	percent := s * 100
	if percent == 0 || math.IsNaN(percent) {
		return "0 %"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(percent)))))
	text := strconv.FormatFloat(percent, 'f', min(digits, 6), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " %"
}

// duration writes a length of time with three significant digits.
func duration(d time.Duration) string {
	value, unit := float64(d)/float64(time.Second), "s"
	switch {
	case d == 0:
		return "–"
	case d < time.Millisecond:
		value, unit = float64(d)/float64(time.Microsecond), "µs"
	case d < time.Second:
		value, unit = float64(d)/float64(time.Millisecond), "ms"
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + " " + unit
}

// at writes a time for people. All pages say that times are UTC.
func at(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// machineTime is the same for the datetime attribute.
func machineTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// span writes roughly how long something takes.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", max(1, d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

// plural writes a number with its noun.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// operationTitle says in words what an operation is.
func operationTitle(operation mapping.Operation) string {
	titles := map[mapping.Operation]string{
		mapping.OpFlagTypes: "Read flag types", mapping.OpCreateFlagType: "Create a flag type", mapping.OpUpdateFlagTypes: "Update flag types",
		mapping.OpBugAttachments: "List a bug’s attachments", mapping.OpAttachment: "Read an attachment",
		mapping.OpCreateAttachment: "Create an attachment", mapping.OpUpdateAttachments: "Update attachments",
	}
	if title, known := titles[operation]; known {
		return title
	}
	return string(operation)
}

// classMeans says in a sentence what a class of differences is.
func classMeans(class canary.Class) string { return classes[class] }

var classes = map[canary.Class]string{
	canary.ClassStatus:  "The HTTP status is another one.",
	canary.ClassCode:    "The error code is another one.",
	canary.ClassMessage: "The error message is another one.",
	canary.ClassHeader:  "A header that clients look at differs.",
	canary.ClassMissing: "The other tracker leaves this out.",
	canary.ClassExtra:   "Only the other tracker has this.",
	canary.ClassNull:    "This is null on one side only.",
	canary.ClassType:    "This has another JSON type.",
	canary.ClassValue:   "This has another value.",
	canary.ClassTime:    "This is another time.",
	canary.ClassOrder:   "These are the same elements in another order.",
	canary.ClassSet:     "These are other elements, whatever their order.",
	canary.ClassDigest:  "The content is another one; only digests were compared.",
	canary.ClassFailure: "Only one of the trackers answered.",
	canary.ClassPlan:    "Each tracker would be sent another request for the same write.",
	canary.ClassLatency: "The other tracker is slower than it may be.",
}

// dropMeans says in words why comparisons were not made.
func dropMeans(reason string) string {
	if means, known := drops[canary.DropReason(reason)]; known {
		return means
	}
	return "no further explanation"
}

var drops = map[canary.DropReason]string{
	canary.DropQueueFull:       "all workers were busy and the queue was full",
	canary.DropRateLimit:       "more samples than are compared in a second",
	canary.DropMemory:          "waiting answers filled the memory set aside for them",
	canary.DropSpool:           "waiting answers filled the files set aside for them",
	canary.DropSpoolFailed:     "a file for a waiting answer could not be written or read",
	canary.DropUnread:          "the client did not read its answer to the end",
	canary.DropNotModified:     "the answer was “not modified” and had no content",
	canary.DropAnsweredFailed:  "the tracker that answers clients failed",
	canary.DropOwnError:        "Portico refused the request itself",
	canary.DropUnreadable:      "the answer is not JSON that can be compared",
	canary.DropCredentials:     "the other tracker would not know the caller",
	canary.DropUnknown:         "one of the two trackers is not configured",
	canary.DropUnreachable:     "no connection to the candidate",
	canary.DropBreaker:         "the candidate failed so often that it is left alone",
	canary.DropOverload:        "the candidate had as many comparisons as it may",
	canary.DropCandidateFailed: "the candidate was to answer, a client or once more, and did not",
	canary.DropOtherFailed:     "the tracker that is not the candidate failed",
	canary.DropConfirmFull:     "too many differences waited to be confirmed",
	canary.DropConfirmLimit:    "confirming would have asked the trackers too often",
	canary.DropDigestNoise:     "the answers were too long, and those of one tracker differ each time",
	canary.DropNotIsolated:     "the candidate has not proved to be isolated",
	canary.DropPayload:         "the content of a write was too large to be kept",
	canary.DropNothingToRead:   "nobody can say what a write has touched",
	canary.DropPlanFailed:      "a write could not be written for one of the trackers",
	canary.DropClosed:          "Portico stopped or reloaded meanwhile",
	canary.DropInternal:        "a mistake of the comparison itself; the log has more",
}

// fragment writes one side of a difference.
func fragment(class canary.Class, value jsontext.Value) string {
	decoded, there := decodeValue(value)
	if !there {
		return "absent"
	}
	if class == canary.ClassLatency {
		return compact(decoded) + " ms"
	}
	return compact(decoded)
}
