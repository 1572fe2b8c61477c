package mapping

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// DecodeFlagTypeUpdate reads and validates the members of an update request.
// idOrName is the path's part: all digits are an id, all else is a name
// (wire-facts.md section 4, Selection). ids and names of the body are added to
// it, as interface.md says; the raw tracker would replace the path by them.
func DecodeFlagTypeUpdate(idOrName string, members Members) (FlagTypeUpdate, error) {
	f := newFields(members)
	request := FlagTypeUpdate{}
	f.selectPath(&request, idOrName)
	f.dropNull(otherKind(idOrName))
	f.selectIDs(&request)
	f.selectNames(&request)
	request.FlagTypeFields = f.flagType(true)
	request.FlagTypeFields.check(f.problems)
	request.trim()
	unknown := f.problems.addUnknown(request.Extra, "a flag type", "all", "clusions")
	return request, f.problems.first(flagTypeUpdateOrder(unknown)...)
}

// Validate checks the fields as DecodeFlagTypeUpdate does; errors are *Error.
func (r *FlagTypeUpdate) Validate() error {
	found := problems{}
	if len(r.IDs) == 0 && len(r.Names) == 0 {
		found.add("path?", missing("ids"))
	}
	r.FlagTypeFields.check(found)
	return found.first(flagTypeUpdateOrder("")...)
}

// flagTypeUpdateOrder is the tracker's order of checks with a field that it does not
// know (wire-facts.md section 4). Null for inclusions or
// exclusions is no known field, in its place among the others.
func flagTypeUpdateOrder(unknown string) []string {
	named := map[string]string{"inclusions": "inclusions?", "exclusions": "exclusions?"}
	for _, name := range flagTypeOrder[4:] {
		named[name] = name
	}
	delete(named, "target_type")
	return append([]string{"path?", "ids", "names", "inclusions", "exclusions"}, settingOrder(unknown, named)...)
}

func (f *fields) selectPath(request *FlagTypeUpdate, idOrName string) {
	if !isDigits(idOrName) {
		request.Names = []string{idOrName}
		return
	}
	id, ok := parseID(idOrName)
	if !ok {
		f.problems.add("path?", noFlagType(idOrName))
	}
	request.IDs = []int64{id}
}

// otherKind is the member that selects in the other way than the path.
func otherKind(idOrName string) string {
	if isDigits(idOrName) {
		return "names"
	}
	return "ids"
}

// dropNull takes a null for a member that was not sent. The tracker wants ids or names to be set, and what the path selects is
// set unless a null of its own kind takes its place (wire-facts.md section 4, Selection).
func (f *fields) dropNull(name string) {
	if f.rest.Get(name).Kind() == 'n' {
		f.rest.Take(name)
	}
}

// selectIDs takes ids one after the other, as the tracker does.
func (f *fields) selectIDs(request *FlagTypeUpdate) {
	value := f.rest.Take("ids")
	if value == nil {
		return
	}
	for _, item := range items(value) {
		id, err := flagTypeID(item)
		f.problems.add("ids", err)
		if err == nil {
			request.IDs = append(request.IDs, id)
		}
	}
	request.IDs = unique(request.IDs)
}

func flagTypeID(item jsontext.Value) (int64, *Error) {
	text, ok := wordText(item)
	id, fits := parseID(text)
	switch {
	case item.Kind() == 'n':
		return 0, missing("ids")
	case !ok, !isDigits(strings.TrimSpace(text)):
		return 0, notNumeric("ids")
	case !fits:
		return 0, noFlagType(text)
	default:
		return id, nil
	}
}

func (f *fields) selectNames(request *FlagTypeUpdate) {
	value := f.rest.Take("names")
	switch {
	case value == nil:
		return
	case value.Kind() == 'n':
		f.problems.add("names", missing("names"))
		return
	}
	names, ok := scalarList(value)
	if !ok {
		f.problems.add("names", wrongType("names", "an array of flag type names"))
	}
	request.Names = unique(append(request.Names, names...))
}

// unique leaves out what stands in a list before. A list of a request may be as
// long as its body, and is read before anybody knows the caller.
func unique[T comparable](list []T) []T {
	seen := make(map[T]struct{}, len(list))
	return slices.DeleteFunc(list, func(item T) bool {
		_, before := seen[item]
		seen[item] = struct{}{}
		return before
	})
}

func notNumeric(name string) *Error {
	return Refuse(CodeNotNumeric, "The parameter %q takes numbers only.", name)
}

func noFlagType(id string) *Error {
	return Refuse(CodeNotFound, "There is no flag type with the id %s.", id)
}
