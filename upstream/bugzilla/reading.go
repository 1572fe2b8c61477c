package bugzilla

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

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
	case !isOperation(segments):
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

// isOperation reports whether segments begin as those of a resource of the interface, or of the collection of attachments. More
// segments may follow, because an escaped slash in a name becomes one that separates.
func isOperation(segments []string) bool {
	is := func(i int, name string) bool { return i < len(segments) && strings.EqualFold(segments[i], name) }
	return (is(0, "rest") || is(0, "rest.cgi")) &&
		(is(1, "flag_type") || is(1, "bug") && (is(2, "attachment") || is(3, "attachment")))
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

// plainSegment removes what some server ignores in a segment: parameters after a semicolon, white space, control characters and
// bytes that are no text, and dots at its end. A segment of one dot becomes empty.
func plainSegment(segment string) string {
	segment, _, _ = strings.Cut(segment, ";")
	segment = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, segment)
	if segment == ".." {
		return segment
	}
	return strings.TrimRight(segment, ".")
}
