package mapping

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// problems collects at most one error per field, so that the one to report can
// be chosen by the tracker's order of checks rather than by the client's order
// of members. A name with a question mark is a check of its own and no
// member: no tracker knows members of that kind.
type problems map[string]*Error

func (p problems) add(field string, err *Error) {
	if err != nil && p[field] == nil {
		p[field] = err
	}
}

// refuse adds the error of a request that Portico refuses.
func (p problems) refuse(field string, code int, format string, args ...any) {
	p.add(field, Refuse(code, format, args...))
}

// addFirst adds the first of other problems, in the given order.
func (p problems) addFirst(field string, others problems, order ...string) {
	for _, name := range order {
		p.add(field, others[name])
	}
}

// first gives the error of the first field in order that has one.
func (p problems) first(order ...string) error {
	for _, field := range order {
		if err := p[field]; err != nil {
			return err
		}
	}
	return nil
}

// fields takes known members off a request; what is left belongs in Extra.
type fields struct {
	rest     Members
	problems problems
}

func newFields(members Members) *fields {
	return &fields{rest: members.Clone(), problems: problems{}}
}

// text takes a string-like member. Absent and null give nil.
func (f *fields) text(name string) *string {
	return f.textOr(name, CodeBadParameter)
}

// textOr is text for a member whose wrong type has a code of its own.
func (f *fields) textOr(name string, code int) *string {
	value := f.rest.Take(name)
	if isNull(value) {
		return nil
	}
	text, ok := Text(value)
	if !ok {
		f.problems.refuse(name, code, "The parameter %q must be a string.", name)
		return nil
	}
	return &text
}

// trimmed is textOr without blanks around it, as the tracker stores names.
func (f *fields) trimmed(name string, code int) *string {
	text := f.textOr(name, code)
	if text != nil {
		*text = strings.TrimSpace(*text)
	}
	return text
}

// boolean takes a boolean member. Absent gives nil and so does null, which
// means the default on create; on update the caller says null is false.
func (f *fields) boolean(name string, nullIsFalse bool) *bool {
	value := f.rest.Take(name)
	if value == nil || value.Kind() == 'n' && !nullIsFalse {
		return nil
	}
	is, ok := ParseBool(value)
	if !ok {
		f.problems.add(name, wrongType(name, "a boolean"))
		return nil
	}
	return &is
}

// scalarList reads an array of strings and numbers; one bare value counts as a list
// of one (clients send "ids": 7). Nothing else is an id or a name, neither null nor a
// boolean.
func scalarList(value jsontext.Value) (texts []string, ok bool) {
	texts, ok = []string{}, true
	for _, item := range items(value) {
		text, word := wordText(item)
		ok = ok && word
		texts = append(texts, text)
	}
	return texts, ok
}

// isNoScalar reports whether an item is neither a string nor a number nor null.
func isNoScalar(item jsontext.Value) bool {
	_, ok := wordText(item)
	return !ok && item.Kind() != 'n'
}

// notScalars refuses a list of ids with anything else in it (tracker-behaviour.md section 11).
func notScalars(name, of string) *Error {
	return Refuse(CodeNotScalars, "The parameter %q must be an array of %s.", name, of)
}

func wrongType(name, want string) *Error {
	return Refuse(CodeBadParameter, "The parameter %q must be %s.", name, want)
}

func missing(name string) *Error {
	return Refuse(CodeRequired, "The parameter %q is required and was not given.", name)
}
