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
	f.selectIDs(&request)
	f.selectNames(&request)
	request.FlagTypeFields = f.flagType(true)
	request.FlagTypeFields.check(f.problems)
	request.trim()
	order := append([]string{"path", "ids", "names"}, flagTypeOrder[2:]...)
	return request, f.problems.first(order...)
}

// Validate checks the fields as DecodeFlagTypeUpdate does; errors are *Error.
func (r *FlagTypeUpdate) Validate() error {
	found := problems{}
	if len(r.IDs) == 0 && len(r.Names) == 0 {
		found.add("path", missing("ids"))
	}
	r.FlagTypeFields.check(found)
	return found.first(append([]string{"path"}, flagTypeOrder...)...)
}

func (f *fields) selectPath(request *FlagTypeUpdate, idOrName string) {
	if !isDigits(idOrName) {
		request.Names = []string{idOrName}
		return
	}
	id, ok := parseID(idOrName)
	if !ok {
		f.problems.add("path", noFlagType(idOrName))
	}
	request.IDs = []int64{id}
}

func (f *fields) selectIDs(request *FlagTypeUpdate) {
	value := f.rest.Get("ids")
	if value.Kind() == 'n' && value != nil {
		f.problems.add("ids", missing("ids"))
	}
	if value.Kind() == '[' && hasNull(value) {
		f.problems.add("ids", missing("ids"))
	}
	for _, text := range f.list("ids", func() *Error { return notNumeric("ids") }) {
		id, ok := parseID(text)
		switch {
		case !isDigits(strings.TrimSpace(text)):
			f.problems.add("ids", notNumeric("ids"))
		case !ok:
			f.problems.add("ids", noFlagType(text))
		default:
			request.IDs = append(request.IDs, id)
		}
	}
	request.IDs = unique(request.IDs)
}

func (f *fields) selectNames(request *FlagTypeUpdate) {
	value := f.rest.Get("names")
	if value.Kind() == 'n' && value != nil {
		f.problems.add("names", missing("names"))
	}
	request.Names = append(request.Names, f.list("names", func() *Error { return wrongType("names", "an array of flag type names") })...)
	request.Names = unique(request.Names)
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

func hasNull(array jsontext.Value) (found bool) {
	eachItem(array, func(item jsontext.Value) { found = found || item.Kind() == 'n' })
	return found
}

func notNumeric(name string) *Error {
	return Refuse(CodeNotNumeric, "The parameter %q takes numbers only.", name)
}

func noFlagType(id string) *Error {
	return Refuse(CodeNotFound, "There is no flag type with the id %s.", id)
}
