package mapping

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// FlagChange is one flag as sent on create or update of an attachment
// (interface.md section 1.7). Nil means not sent.
type FlagChange struct {
	Name   *string
	TypeID *int64
	// ID names a flag that is already set; updates only.
	ID *int64
	// Status is ?, +, - or X, which clears the flag.
	Status string
	// Requestee is a login. Leaving it out of an update of a ? flag removes the
	// requestee (tracker-behaviour.md section 8).
	Requestee *string
	// New forces a new flag.
	New *bool
	// Extra keeps the members that the interface does not name.
	Extra Members
}

// flags takes the flags member: an array of objects. Null and [] are none. The raw
// tracker responds to anything else with an internal error. It looks up what all flags
// mean before it sets the fields and the flags (tracker-behaviour.md section 7), so what is
// wrong with a reference is a problem of "flags?".
func (f *fields) flags() []FlagChange {
	value := f.rest.Take("flags")
	if value.Kind() != '[' {
		if !isNull(value) {
			f.problems.add("flags?", wrongType("flags", "an array of objects"))
		}
		return nil
	}
	flags := []FlagChange{}
	for _, item := range items(value) {
		flags = append(flags, f.flag(item))
	}
	return flags
}

// flag reads one flag. Null is a flag without members, as for the tracker.
func (f *fields) flag(item jsontext.Value) FlagChange {
	if item.Kind() != '{' && item.Kind() != 'n' {
		f.problems.add("flags?", wrongType("flags", "an array of objects"))
		return FlagChange{}
	}
	inner := newFields(splitObject(item))
	flag := FlagChange{
		Name: inner.text("name"), TypeID: inner.flagID("type_id"), ID: inner.flagID("id"),
		Status: inner.status(), Requestee: inner.text("requestee"), New: inner.boolean("new", false),
	}
	flag.Extra = inner.rest
	f.problems.addFirst("flags?", inner.problems, "id", "type_id", "name", "new")
	f.problems.add("flags", flag.check())
	f.problems.addFirst("flags", inner.problems, "requestee")
	return flag
}

// flagID takes the id of a flag or flag type. The tracker takes 0 and an empty text
// for none; true would be the id 1 for it.
func (f *fields) flagID(name string) *int64 {
	value := f.rest.Take(name)
	if isNull(value) {
		return nil
	}
	text, ok := wordText(value)
	if !ok {
		f.problems.add(name, wrongType(name, "an integer"))
		return nil
	}
	if isFalsy(text) {
		return nil
	}
	id, ok := parseID(text)
	if !ok || id == 0 {
		f.problems.refuse(name, CodeNotFound, "There is no flag or flag type with the %s %q.", name, text)
		return nil
	}
	return &id
}

// status takes the status as a text. Any other value, an array too, is the
// same mistake for the tracker (tracker-behaviour.md section 8).
func (f *fields) status() string {
	text, _ := Text(f.rest.Take("status"))
	return text
}

// check demands what interface.md demands: something that names the flag, and a
// status out of four.
func (c FlagChange) check() *Error {
	named := c.Name != nil && !isFalsy(*c.Name)
	if !named && c.TypeID == nil && c.ID == nil {
		return Refuse(CodeRequired, "A flag needs a type_id, an id or a name.")
	}
	if len(c.Status) != 1 || !strings.Contains("?+-X", c.Status) {
		return Refuse(CodeFlagStatus, "%q is not a flag status; it is ?, +, - or X.", c.Status)
	}
	return nil
}

func (c FlagChange) members() Members {
	var m Members
	setText(&m, "name", c.Name)
	setInt(&m, "type_id", c.TypeID)
	setInt(&m, "id", c.ID)
	m.SetText("status", c.Status)
	setText(&m, "requestee", c.Requestee)
	setBool(&m, "new", c.New)
	return append(m, c.Extra...)
}
