package bugzilla

import (
	"regexp"
	"strings"
)

// operationPath matches what begins as a resource of the interface does, or as the collection of attachments. More
// segments may follow, because an escaped slash in a name becomes one that separates.
var operationPath = regexp.MustCompile(`(?i)^rest(?:\.cgi)?/(?:flag_types?|bug/(?:[^/]*/)?attachment)(?:/|$)`)

// MayReadAs reports whether a web server before a tracker could take one reading of a path that is no operation as something that must
// not pass: a path that climbs, an operation or a script that changes flag types in an odd spelling, or, for writes, the collection of
// attachments. A stock tracker takes that for the bug named "attachment" (tracker-behaviour.md section 1, Paths).
func MayReadAs(reading, path string, write bool) bool {
	segments, climbs := plainSegments(reading)
	switch {
	case climbs || len(segments) == 0:
		return climbs
	case ChangesFlagTypes(segments[0]):
		return Script(path) != segments[0]
	case !operationPath.MatchString(strings.Join(segments, "/")):
		return false
	}
	isCollection := len(segments) == 3 && strings.EqualFold(segments[1], "bug")
	return !isPlain(path, segments) || write && isCollection
}

// isPlain reports whether a path has the segments of an operation, with the fixed ones spelled as they are. Names may be escaped.
func isPlain(path string, segments []string) bool {
	pieces := strings.Split(strings.Trim(path, "/"), "/")
	if len(pieces) != len(segments) {
		return false
	}
	for i, segment := range segments {
		if fixed := i < 2 || strings.EqualFold(segment, "attachment"); fixed && pieces[i] != segment {
			return false
		}
	}
	return true
}

// plainSegments splits a path as the most tolerant server would: at backslashes too, without empty segments and dots. climbs reports
// a segment that means "..".
func plainSegments(path string) (segments []string, climbs bool) {
	for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		switch plain := plainSegment(segment); plain {
		case "":
		case "..":
			return nil, true
		default:
			segments = append(segments, plain)
		}
	}
	return segments, false
}

// ignored matches what some server ignores in a segment, beside dots at its end: parameters after a semicolon, white space, control
// characters and bytes that are no text.
var ignored = regexp.MustCompile(`(?s);.*|[^\pL\pM\pN\pP\pS]|\x{FFFD}`)

// plainSegment removes what some server ignores. A segment of one dot becomes empty.
func plainSegment(segment string) string {
	segment = ignored.ReplaceAllString(segment, "")
	if segment == ".." {
		return segment
	}
	return strings.TrimRight(segment, ".")
}
