package mapping

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FlagTypesRequest asks for the flag types of a product, or of one component
// (interface.md section 3.1).
type FlagTypesRequest struct {
	Product string
	// Component is empty for the whole product. The tracker takes a component
	// named 0 for none (tracker-behaviour.md section 1, Encoded characters).
	Component string
}

// FlagTypeFields are the parameters that create and update share
// (interface.md section 1.2). Nil means not sent.
type FlagTypeFields struct {
	// Name is 1 to 50 characters without white space or comma; not unique.
	Name *string
	// Description is any text that is not blank.
	Description *string
	Inclusions  *Scopes
	Exclusions  *Scopes
	// Sortkey is 1 to 32767.
	Sortkey                   *int
	IsActive                  *bool
	IsRequestable             *bool
	IsSpecificallyRequestable *bool
	IsMultiplicable           *bool
	// CCList is at most 200 characters in the tracker's form, addresses with
	// commas between them.
	CCList *string
	// GrantGroup and RequestGroup are group names; empty means no group.
	GrantGroup   *string
	RequestGroup *string
	// Extra keeps the members that the interface does not name.
	Extra Members
}

// FlagTypeCreate asks for a new flag type (interface.md section 3.2).
// Name and Description are never nil in a valid one.
type FlagTypeCreate struct {
	FlagTypeFields
	// TargetType is bug or attachment.
	TargetType *string
}

// FlagTypeUpdate changes every selected flag type (interface.md section 3.3).
type FlagTypeUpdate struct {
	FlagTypeFields
	// IDs and Names are the union of what the path and the body select.
	IDs   []int64
	Names []string
}

// flagTypeOrder is the order in which a tracker checks the fields of a create
// and reports the first bad one (tracker-behaviour.md section 3).
var flagTypeOrder = []string{
	"name?", "description?", "inclusions", "exclusions",
	"cc_list", "description", "grant_group", "is_active", "is_multiplicable", "is_requestable",
	"is_specifically_requestable", "name", "request_group", "sortkey", "target_type",
}

// DecodeFlagTypeCreate reads and validates the members of a create request.
// Errors are *Error with the codes of tracker-behaviour.md section 3.
func DecodeFlagTypeCreate(members Members) (FlagTypeCreate, error) {
	f := newFields(members)
	target := f.textOr("target_type", CodeTargetType)
	if target != nil && *target != "bug" && *target != "attachment" {
		f.problems.refuse("target_type", CodeTargetType, "A target_type must be bug or attachment.")
	}
	request := FlagTypeCreate{FlagTypeFields: f.flagType(false), TargetType: target}
	return request, f.problems.first(flagTypeOrder...)
}

// SetDefaults fills what the client left out (interface.md section 1.2).
func (r *FlagTypeCreate) SetDefaults() {
	setDefault(&r.TargetType, "bug")
	setDefault(&r.IsActive, true)
	setDefault(&r.IsRequestable, true)
	setDefault(&r.IsSpecificallyRequestable, true)
	setDefault(&r.IsMultiplicable, true)
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// flagType takes the shared fields. On update null is a value and not a
// missing one (tracker-behaviour.md section 4, Fields).
func (f *fields) flagType(update bool) FlagTypeFields {
	shared := FlagTypeFields{
		Name:                      f.nullable("name", update, CodeTypeName),
		Description:               f.nullable("description", update, CodeTypeText),
		Inclusions:                f.scopes("inclusions", update),
		Exclusions:                f.scopes("exclusions", update),
		Sortkey:                   f.sortkey(update),
		IsActive:                  f.boolean("is_active", update),
		IsRequestable:             f.boolean("is_requestable", update),
		IsSpecificallyRequestable: f.boolean("is_specifically_requestable", update),
		IsMultiplicable:           f.boolean("is_multiplicable", update),
		CCList:                    f.ccList(update),
		GrantGroup:                f.group("grant_group"),
		RequestGroup:              f.group("request_group"),
	}
	shared.Extra = f.rest
	if !update {
		f.require("name", shared.Name)
		f.require("description", shared.Description)
	}
	if shared.Name != nil {
		name := strings.TrimSpace(*shared.Name)
		if name == "" || utf8.RuneCountInString(name) > 50 || strings.ContainsFunc(name, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
			f.problems.refuse("name", CodeTypeName, "A flag type's name has 1 to 50 characters, no white space and no comma.")
		}
	}
	if shared.Description != nil && strings.TrimSpace(*shared.Description) == "" {
		f.problems.refuse("description", CodeTypeText, "A flag type needs a description.")
	}
	trim(shared.Name)
	trim(shared.Description)
	return shared
}

// require refuses a create without a text. The tracker checks that before the text itself.
func (f *fields) require(name string, text *string) {
	if f.problems[name] == nil && (text == nil || isFalsy(*text)) {
		f.problems.add(name+"?", missing(name))
	}
}

// trim takes the blanks off that the tracker would not store. A blank text is
// wrong in another way than a missing one, so this comes after the checks. The
// blanks around a 0 stay: without them the tracker would take it for no text.
func trim(text *string) {
	if text == nil {
		return
	}
	if trimmed := strings.TrimSpace(*text); !isFalsy(trimmed) {
		*text = trimmed
	}
}

// nullable takes a text that a create may lack but an update may not blank:
// there null is refused with the field's own code.
func (f *fields) nullable(name string, update bool, code int) *string {
	if update && f.rest.Get(name).Kind() == 'n' {
		f.problems.refuse(name, code, "The parameter %q cannot be null.", name)
	}
	return f.text(name)
}

// scopes takes inclusions or exclusions. Null is the default on create and no
// known field on update, as for the tracker.
func (f *fields) scopes(name string, update bool) *Scopes {
	value := f.rest.Take(name)
	if update && value.Kind() == 'n' {
		f.problems.refuse(name+"?", CodeUnknownField, "The parameter %q cannot be null.", name)
	}
	if isNull(value) {
		return nil
	}
	scopes, err := ParseScopes(name, value)
	f.problems.add(name, err)
	return &scopes
}

// sortkey takes digits in any form; everything else is refused as the tracker
// does, arrays and null on update among it.
func (f *fields) sortkey(update bool) *int {
	value := f.rest.Take("sortkey")
	if value == nil || value.Kind() == 'n' && !update {
		return nil
	}
	text, _ := Text(value)
	number, err := strconv.Atoi(text)
	if err != nil || !isDigits(text) || number < 1 || number > 32767 {
		f.problems.refuse("sortkey", CodeSortkey, "A sortkey is an integer from 1 to 32767.")
	}
	return &number
}

// maxCCList is how many characters a tracker takes (tracker-behaviour.md section 3).
const maxCCList = 200

// ccList takes the interface's array or the tracker's string. A raw tracker
// refuses the array (tracker-behaviour.md section 3), so it is joined here.
func (f *fields) ccList(update bool) *string {
	value := f.rest.Get("cc_list")
	list := func(name string) *string { return f.textOr(name, CodeBadAddress) }
	if value.Kind() == '[' {
		list = f.addresses
	} else if update && value.Kind() == 'n' {
		f.problems.add("cc_list", wrongType("cc_list", "an array of addresses"))
	}
	joined := list("cc_list")
	if joined != nil && utf8.RuneCountInString(*joined) > maxCCList {
		f.problems.refuse("cc_list", CodeCCList, "The cc_list is longer than 200 characters.")
	}
	return joined
}

// addresses takes an array of addresses and joins them.
func (f *fields) addresses(name string) *string {
	addresses, ok := scalarList(f.rest.Take(name))
	if !ok {
		f.problems.refuse(name, CodeBadAddress, "The parameter %q must be an array of addresses.", name)
		return nil
	}
	for i, address := range addresses {
		addresses[i] = strings.TrimSpace(address)
		if addresses[i] == "" || strings.ContainsAny(addresses[i], ", \t\r\n;") {
			f.problems.refuse(name, CodeBadAddress, "%q in cc_list is not an e-mail address.", address)
			return nil
		}
	}
	joined := strings.Join(addresses, ", ")
	if utf8.RuneCountInString(joined) > maxCCList {
		joined = strings.Join(addresses, ",") // the blanks mean nothing, and a tracker counts them
	}
	return &joined
}

// group takes a group name; null, 0 and an empty text mean no group. A blank one names none, and without its blanks it would
// open the flag type to everybody, so the tracker gets it as it came and refuses it (tracker-behaviour.md section 3, grant_group).
func (f *fields) group(name string) *string {
	isGiven := f.rest.Get(name) != nil
	text := f.textOr(name, CodeNotFound)
	if isGiven && f.problems[name] == nil && (text == nil || isFalsy(*text)) {
		return new("")
	}
	trim(text)
	return text
}
