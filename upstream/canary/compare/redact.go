package compare

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Redactor takes content out of JSON that is to be stored. Each process makes its own: equal texts show as equal within one
// process only, so that a digest cannot be guessed by trying texts.
type Redactor struct{ key [32]byte }

// NewRedactor makes a redactor with a random key.
func NewRedactor() *Redactor {
	r := &Redactor{}
	_, _ = rand.Read(r.key[:]) // never fails
	return r
}

// Redact gives value without free texts, addresses, names of files and content: {"text": {"length": n, "digest": "…6 hex
// digits"}} stands for each, n in characters. What remains is ids, booleans, numbers, times, statuses, flag type names and
// values, content types, and only where these belong. path is where the value was, as in Difference.Path or Pointer. nil
// stays nil, and what is not JSON loses everything.
func (r *Redactor) Redact(value jsontext.Value, path string) jsontext.Value {
	if value == nil {
		return nil
	}
	from := &reader{}
	if parse(value) == nil {
		return r.standIn(nil, string(value))
	}
	from.begin(value)
	return r.redact(nil, from, "", namesOf(path))
}

// redact appends the next value, which has a name if it is that of a member. names are those of the members that it is in, the nearest last: no
// more than three matter.
func (r *Redactor) redact(dst []byte, from *reader, name string, names []string) []byte {
	kind := from.decoder.PeekKind()
	switch kind {
	case '{', '[':
		dst = append(dst, byte(kind))
		begun := len(dst)
		end := from.each(func(name string) {
			if len(dst) > begun {
				dst = append(dst, ',')
			}
			within := names
			if kind == '{' {
				dst = append(append(dst, quote(r.name(name))...), ':')
				if !isDigits(name) {
					within = []string{last(names, 2), last(names, 1), name}
				}
			}
			dst = r.redact(dst, from, name, within)
		})
		return append(dst, byte(end))
	case '"':
	default:
		return append(dst, from.value()...)
	}
	raw := from.value()
	if name == "data" {
		return append(dst, `{"content":"set aside"}`...)
	}
	text := string(unquoted(raw))
	if kept, isKept := r.kept(text, names); isKept {
		return append(dst, quote(kept)...)
	}
	return r.standIn(dst, text)
}

// name is the name of a member; one that does not look like a field's name may be data.
func (r *Redactor) name(name string) string {
	if fieldName.MatchString(name) || isDigits(name) || name == changedFlags {
		return name
	}
	return "~" + r.digest(name)
}

// standIn appends what stands for a text.
func (r *Redactor) standIn(dst []byte, text string) []byte {
	return fmt.Appendf(dst, `{"text":{"length":%d,"digest":"%s"}}`, utf8.RuneCountInString(text), r.digest(text))
}

func (r *Redactor) digest(text string) string {
	return fmt.Sprintf("%x", hash(string(r.key[:]) + text)[:3])
}

// namesOf gives the names of the members that a path goes through, the nearest last. That of a body is $.
func namesOf(path string) []string {
	var names []string
	if start := pathStart.FindString(path); start != "" {
		names = []string{start}
	}
	for _, segment := range segmentForm.FindAllString(path, -1) {
		if name := strings.Trim(segment, `.[]"`); segment[0] == '.' || segment[1] == '"' {
			names = append(names, name)
		}
	}
	return names
}

// last gives a name counted from the end: 1 is the member that has the value.
func last(names []string, back int) string {
	if back > len(names) {
		return ""
	}
	return names[len(names)-back]
}

// The forms of texts that are stored.
const (
	number    = `[0-9]{1,19}`
	timeText  = `[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ][0-9:.]{1,20}(Z|[+-][0-9:]{4,5})?)?`
	typeText  = `[^\s\p{Z},@]{1,50}`
	mediaType = `[a-z]{1,16}/[A-Za-z0-9.+-]{1,64}(; ?charset=[A-Za-z0-9-]{1,24})?`
	flag      = `[^\s,()@]{1,50}[?+-](\([^()]*\))?`
)

// keptFields are the members whose texts are stored, by the form that they must have. After a slash, the member counts only in
// the parent before it; a parent without name is that of what is in no body. In changes the field that was changed counts (tracker-behaviour.md
// sections 4 and 7). They are made when the first text is to be stored, since that takes a part of the start.
var keptFields = sync.OnceValue(func() map[string]*regexp.Regexp {
	lists := map[string]string{
		timeText: "creation_time last_change_time creation_date modification_date",
		number: "id ids bug_id type_id flag_id size sortkey bugs attachments changes/sortkey changes/is_active changes/is_requestable " +
			"changes/is_requesteeble changes/is_specifically_requestable changes/is_multiplicable changes/is_patch changes/is_private " +
			"changes/is_obsolete changes/grant_group_id changes/request_group_id changes/inclusions changes/exclusions",
		mediaType:                  "header/content-type content_type changes/content_type",
		typeText:                   "bug/name attachment/name flagtypes/name flags/name changes/name",
		`[X?+-]`:                   "status values",
		`bug|attachment`:           "type target_type",
		flag + `(, ` + flag + `)*`: "changes/" + changedFlags,
	}
	for class, info := range classes {
		lists[info.texts] += " /" + string(class)
	}
	delete(lists, "")
	forms := map[string]*regexp.Regexp{}
	for form, list := range lists {
		compiled := regexp.MustCompile(`^(` + form + `)$`)
		for field := range strings.FieldsSeq(list) {
			forms[field] = compiled
		}
	}
	return forms
})

var (
	digits    = regexp.MustCompile(`^` + number + `$`)
	requestee = regexp.MustCompile(`\([^()]*\)`)
)

func isDigits(text string) bool { return digits.MatchString(text) }

// kept gives the text if it may be stored where it is, perhaps with parts taken out. It goes by what is known to be harmless:
// anything else is not kept.
func (r *Redactor) kept(text string, names []string) (string, bool) {
	member, parent := last(names, 1), last(names, 2)
	isChange := last(names, 3) == "changes" && (member == "added" || member == "removed")
	if isChange {
		member, parent = parent, "changes"
	}
	form := keptFields()[parent+"/"+member]
	if form == nil && !isChange {
		form = keptFields()[member]
	}
	switch {
	case isChange && text == "":
		return text, true
	case form == nil || !form.MatchString(text):
		return "", false
	case isChange && member == changedFlags:
		return requestee.ReplaceAllStringFunc(text, func(who string) string { return "(" + r.digest(who) + ")" }), true
	}
	return text, true
}
