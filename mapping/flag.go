package mapping

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// FlagChange is one flag as sent on create or update of an attachment
// (interface.md, Attachment flag, as sent). Nil means not sent.
type FlagChange struct {
	Name   *string
	TypeID *int64
	// ID names a flag that is already set; updates only.
	ID *int64
	// Status is ?, +, - or X, which clears the flag.
	Status string
	// Requestee is a login. Leaving it out of an update of a ? flag removes the
	// requestee (wire-facts.md section 8).
	Requestee *string
	// New forces a new flag.
	New *bool
	// Extra keeps the members that the interface does not name.
	Extra Members
}

// flags takes the flags member: an array of objects. Null and [] are none. The
// raw tracker answers anything else with an internal error.
func (f *fields) flags() []FlagChange {
	value := f.rest.Take("flags")
	if isNull(value) {
		return nil
	}
	if value.Kind() != '[' {
		f.problems.add("flags", wrongType("flags", "an array of objects"))
		return nil
	}
	flags := []FlagChange{}
	eachItem(value, func(item jsontext.Value) {
		flag, err := decodeFlag(item)
		f.problems.add("flags", err)
		flags = append(flags, flag)
	})
	return flags
}

func decodeFlag(item jsontext.Value) (FlagChange, *Error) {
	if item.Kind() == 'n' {
		return FlagChange{}, missing("type_id")
	}
	if item.Kind() != '{' {
		return FlagChange{}, wrongType("flags", "an array of objects")
	}
	f := newFields(splitObject(item))
	flag := FlagChange{
		Name: f.text("name"), TypeID: f.flagID("type_id"), ID: f.flagID("id"),
		Requestee: f.text("requestee"), New: f.boolean("new", false),
	}
	if status := f.text("status"); status != nil {
		flag.Status = *status
	}
	flag.Extra = f.rest
	for _, name := range []string{"id", "type_id", "name", "status", "requestee", "new"} {
		if err := f.problems[name]; err != nil {
			return flag, err
		}
	}
	return flag, nil
}

func (f *fields) flagID(name string) *int64 {
	text := f.text(name)
	if text == nil || *text == "" {
		return nil
	}
	id, ok := parseID(*text)
	if !ok {
		f.problems.add(name, Refuse(CodeNotFound, "There is no flag or flag type with the %s %q.", name, *text))
		return nil
	}
	return &id
}

// checkFlags demands of each flag what interface.md demands: something that
// names it, and a status out of four.
func checkFlags(found problems, flags []FlagChange) {
	for _, flag := range flags {
		if flag.Name == nil && flag.TypeID == nil && flag.ID == nil {
			found.add("flags", Refuse(CodeRequired, "A flag needs a type_id, an id or a name."))
		}
	}
	for _, flag := range flags {
		if !slices.Contains([]string{"?", "+", "-", "X"}, flag.Status) {
			found.add("flags", Refuse(CodeFlagStatus, "%q is not a flag status; it is ?, +, - or X.", flag.Status))
		}
	}
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
