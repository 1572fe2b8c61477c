package canary

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// namesOf gives the names of the members that a path goes through, the nearest last.
func namesOf(path string) []string {
	begin := beginnings.FindString(path)
	var names []string
	if begin != "$" && begin != "" {
		names = []string{begin}
	}
	for rest := path[len(begin):]; rest != ""; {
		segment := segmentForm.FindString(rest)
		switch {
		case segment == "":
			return names
		case segment[0] == '.':
			names = append(names, segment[1:])
		case strings.HasPrefix(segment, `["`):
			names = append(names, strings.Trim(segment, `[]"`))
		}
		rest = rest[len(segment):]
	}
	return names
}

// nameAt gives a name counted from the end: 1 is the member that has the value.
func nameAt(names []string, back int) string {
	if back > len(names) {
		return ""
	}
	return names[len(names)-back]
}

// Forms of texts that stay.
var (
	mediaType = regexp.MustCompile(`^[a-z]{1,16}/[A-Za-z0-9.+-]{1,64}(; ?charset=[A-Za-z0-9-]{1,24})?$`)
	flagList  = regexp.MustCompile(`^[^\s,()@]{1,50}[?+-](\([^()]*\))?(, [^\s,()@]{1,50}[?+-](\([^()]*\))?)*$`)
	requestee = regexp.MustCompile(`\([^()]*\)`)
	reason    = regexp.MustCompile(`^[a-z]+(-[a-z]+){0,4}$`)
	method    = regexp.MustCompile(`^[A-Z]{3,7}$`)
)

// timeFields are the members that hold times (interface.md, Resources).
var timeFields = []string{"creation_time", "last_change_time", "creation_date", "modification_date"}

// idFields are the members that hold numbers, which trackers also write as texts.
var idFields = []string{"id", "ids", "bug_id", "type_id", "flag_id", "size", "sortkey", "bugs", "attachments"}

// numericFields are the fields whose changes are numbers written as texts
// (wire-facts.md sections 4 and 7).
var numericFields = []string{
	"sortkey", "is_active", "is_requestable", "is_requesteeble", "is_specifically_requestable", "is_multiplicable",
	"is_patch", "is_private", "is_obsolete", "grant_group_id", "request_group_id", "inclusions", "exclusions",
}

// keptText gives the text if it may stay where it is, perhaps with parts taken
// out. It goes by what is known to be harmless: anything else is not known.
func keptText(text string, names []string, r *Redactor) (string, bool) {
	member, parent := nameAt(names, 1), nameAt(names, 2)
	if nameAt(names, 3) == "changes" && (member == "added" || member == "removed") {
		return keptChange(text, parent, r)
	}
	switch {
	case len(names) == 1 && member == "failure":
		return text, len(text) <= 32 && reason.MatchString(text)
	case len(names) == 1 && member == "method":
		return text, method.MatchString(text)
	case len(names) == 1 && member == "path":
		return r.target(text), true
	case slices.Contains(timeFields, member):
		_, _, ok := timeOf([]byte(text))
		return text, ok
	case slices.Contains(idFields, member):
		return text, isDigits(text)
	case parent == "header" && member == "content-type", member == "content_type":
		return text, mediaType.MatchString(text)
	}
	return text, keptOfFlag(text, member, parent)
}

// keptOfFlag tells whether a text belongs to a flag type or a flag and may stay.
func keptOfFlag(text, member, parent string) bool {
	switch member {
	case "status", "values":
		return slices.Contains([]string{"X", "?", "+", "-"}, text)
	case "type", "target_type":
		return text == "bug" || text == "attachment"
	case "name":
		return slices.Contains([]string{"bug", "attachment", "flagtypes", "flags"}, parent) && isTypeName(text)
	}
	return false
}

func isTypeName(text string) bool {
	return text != "" && utf8.RuneCountInString(text) <= 50 &&
		!strings.ContainsFunc(text, func(r rune) bool { return r == ',' || r == '@' || unicode.IsSpace(r) })
}

// keptChange is for what a record of a change says of a field.
func keptChange(text, field string, r *Redactor) (string, bool) {
	switch {
	case text == "":
		return text, true
	case slices.Contains(numericFields, field):
		return text, isDigits(text)
	case field == "content_type":
		return text, mediaType.MatchString(text)
	case field == "name":
		return text, isTypeName(text)
	case field == "flagtypes.name":
		return requestee.ReplaceAllStringFunc(text, func(who string) string {
			return "(" + r.digest([]byte(who)) + ")"
		}), flagList.MatchString(text)
	}
	return text, false
}

// target takes the names of products and the like out of a path.
func (r *Redactor) target(path string) string {
	path, _, _ = strings.Cut(path, "?")
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		switch segment {
		case "", "rest", "bug", "attachment", "flag_type", "flag_types":
		default:
			if !isDigits(segment) {
				segments[i] = "~" + r.digest([]byte(segment))
			}
		}
	}
	return strings.Join(segments, "/")
}

func isDigits(text string) bool {
	return text != "" && len(text) <= 19 && strings.Trim(text, "0123456789") == ""
}
