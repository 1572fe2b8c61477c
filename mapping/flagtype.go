package mapping

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// FlagTypesRequest asks for the flag types of a product, or of one component
// (interface.md, Get flag types).
type FlagTypesRequest struct {
	Product string
	// Component is empty for the whole product. The tracker takes a component
	// named 0 for none (wire-facts.md section 1, Encoded characters).
	Component string
}

// FlagTypeFields are the parameters that create and update share
// (interface.md, Flag type, parameters). Nil means not sent.
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

// FlagTypeCreate asks for a new flag type (interface.md, Create flag type).
// Name and Description are never nil in a valid one.
type FlagTypeCreate struct {
	FlagTypeFields
	// TargetType is bug or attachment.
	TargetType *string
}

// FlagTypeUpdate changes every selected flag type (interface.md, Update flag type).
type FlagTypeUpdate struct {
	FlagTypeFields
	// IDs and Names are the union of what the path and the body select.
	IDs   []int64
	Names []string
}

// flagTypeOrder is the order in which a tracker checks the fields of a create
// and reports the first bad one (wire-facts.md section 3).
var flagTypeOrder = []string{
	"name?", "description?", "inclusions", "exclusions",
	"cc_list", "description", "grant_group", "is_active", "is_multiplicable", "is_requestable",
	"is_specifically_requestable", "name", "request_group", "sortkey", "target_type",
}

// DecodeFlagTypeCreate reads and validates the members of a create request.
// Errors are *Error with the codes of wire-facts.md section 3.
func DecodeFlagTypeCreate(members Members) (FlagTypeCreate, error) {
	f := newFields(members)
	request := FlagTypeCreate{TargetType: f.textOr("target_type", CodeTargetType), FlagTypeFields: f.flagType(false)}
	request.check(f.problems)
	request.trim()
	return request, f.problems.first(flagTypeOrder...)
}

// SetDefaults fills what the client left out (interface.md, column Create).
func (r *FlagTypeCreate) SetDefaults() {
	setDefault(&r.TargetType, "bug")
	setDefault(&r.IsActive, true)
	setDefault(&r.IsRequestable, true)
	setDefault(&r.IsSpecificallyRequestable, true)
	setDefault(&r.IsMultiplicable, true)
}

// Validate checks the fields as DecodeFlagTypeCreate does; errors are *Error.
func (r *FlagTypeCreate) Validate() error {
	found := problems{}
	r.check(found)
	return found.first(flagTypeOrder...)
}

func (r *FlagTypeCreate) check(found problems) {
	if found["name"] == nil && (r.Name == nil || isFalsy(*r.Name)) {
		found.add("name?", missing("name"))
	}
	if found["description"] == nil && (r.Description == nil || isFalsy(*r.Description)) {
		found.add("description?", missing("description"))
	}
	if r.TargetType != nil && *r.TargetType != "bug" && *r.TargetType != "attachment" {
		found.add("target_type", Refuse(CodeTargetType, "A target_type must be bug or attachment."))
	}
	r.FlagTypeFields.check(found)
}

// flagType takes the shared fields. On update null is a value and not a
// missing one (wire-facts.md section 4, Fields).
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
	return shared
}

func (r *FlagTypeFields) check(found problems) {
	if r.Name != nil && !isTypeName(strings.TrimSpace(*r.Name)) {
		found.add("name", Refuse(CodeTypeName, "A flag type's name has 1 to 50 characters, no white space and no comma."))
	}
	if r.Description != nil && strings.TrimSpace(*r.Description) == "" {
		found.add("description", Refuse(CodeTypeText, "A flag type needs a description."))
	}
	if r.Sortkey != nil && (*r.Sortkey < 1 || *r.Sortkey > 32767) {
		found.add("sortkey", badSortkey())
	}
	if r.CCList != nil && utf8.RuneCountInString(*r.CCList) > longestCCList {
		found.add("cc_list", Refuse(CodeCCList, "The cc_list is longer than 200 characters."))
	}
}

// trim takes the blanks off that the tracker would not store. A blank name is
// wrong in another way than a missing one, so this comes after the checks. The
// blanks around a 0 stay: without them the tracker would take it for no name.
func (r *FlagTypeFields) trim() {
	for _, text := range []*string{r.Name, r.Description} {
		if text == nil {
			continue
		}
		if trimmed := strings.TrimSpace(*text); !isFalsy(trimmed) {
			*text = trimmed
		}
	}
}

func isTypeName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= 50 &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

func badSortkey() *Error {
	return Refuse(CodeSortkey, "A sortkey is an integer from 1 to 32767.")
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
