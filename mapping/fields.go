package mapping

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// problems collects at most one error per field, so that the one to report can
// be chosen by the tracker's order of checks rather than by the client's order
// of members.
type problems map[string]*Error

func (p problems) add(field string, err *Error) {
	if err != nil && p[field] == nil {
		p[field] = err
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
	text, ok := scalarText(value)
	if !ok {
		f.problems.add(name, Refuse(code, "The parameter %q must be a string.", name))
		return nil
	}
	return &text
}

// trimmed is textOr without blanks around it, as the tracker stores names.
func (f *fields) trimmed(name string, code int) *string {
	text := f.textOr(name, code)
	if text == nil {
		return nil
	}
	trimmed := strings.TrimSpace(*text)
	return &trimmed
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

// list takes an array of scalars; one bare scalar counts as a list of one
// (clients send "ids": 7). Absent gives nil.
func (f *fields) list(name string, invalid func() *Error) []string {
	value := f.rest.Take(name)
	if value == nil {
		return nil
	}
	texts, ok := scalarList(value)
	if !ok {
		f.problems.add(name, invalid())
		return nil
	}
	return texts
}

// scalarList reads an array of scalars or one scalar.
func scalarList(value jsontext.Value) (texts []string, ok bool) {
	if value.Kind() != '[' {
		text, ok := scalarText(value)
		return []string{text}, ok
	}
	texts, ok = []string{}, true
	eachItem(value, func(item jsontext.Value) {
		text, scalar := scalarText(item)
		ok = ok && scalar
		texts = append(texts, text)
	})
	return texts, ok
}

func wrongType(name, want string) *Error {
	return Refuse(CodeBadParameter, "The parameter %q must be %s.", name, want)
}

func missing(name string) *Error {
	return Refuse(CodeRequired, "The parameter %q is required and was not given.", name)
}
