package mapping

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// DecodeFlagTypeUpdate reads and validates the members of an update request.
// idOrName is the path's part: all digits are an id, all else is a name
// (tracker-behaviour.md section 4, Selection). ids and names of the body are added to
// it, as interface.md says; the raw tracker would replace the path by them.
func DecodeFlagTypeUpdate(idOrName string, members Members) (FlagTypeUpdate, error) {
	f := newFields(members)
	request := FlagTypeUpdate{}
	f.selectPath(&request, idOrName)
	f.selectIDs(&request)
	f.selectNames(&request)
	request.FlagTypeFields = f.flagType(true)
	return request, f.problems.first(flagTypeUpdateOrder...)
}

// flagTypeUpdateOrder is the tracker's order of checks (tracker-behaviour.md section 4). Null for inclusions or exclusions is no known field, in its
// place among the others.
var flagTypeUpdateOrder = []string{
	"path?", "ids", "names", "inclusions", "exclusions",
	"cc_list", "description", "exclusions?", "grant_group", "inclusions?", "is_active", "is_multiplicable", "is_requestable",
	"is_specifically_requestable", "name", "request_group", "sortkey",
}

// selectPath takes what the path selects. A null for the member that selects in the other way counts as not sent: the tracker wants
// ids or names to be set, and what the path selects is set unless a null of its own kind takes its place (tracker-behaviour.md
// section 4, Selection).
func (f *fields) selectPath(request *FlagTypeUpdate, idOrName string) {
	other := "ids"
	if isDigits(idOrName) {
		other = "names"
		id, ok := parseID(idOrName)
		if !ok {
			f.problems.add("path?", noFlagType(idOrName))
		}
		request.IDs = []int64{id}
	} else {
		request.Names = []string{idOrName}
	}
	if f.rest.Get(other).Kind() == 'n' {
		f.rest.Take(other)
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
	request.IDs = unique(request.IDs, itself)
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
	if value == nil {
		return
	}
	names, ok := scalarList(value)
	switch {
	case value.Kind() == 'n':
		f.problems.add("names", missing("names"))
	case !ok:
		f.problems.add("names", wrongType("names", "an array of flag type names"))
	}
	request.Names = unique(append(request.Names, names...), itself)
}

// unique leaves out items whose key a list has before. A list of a request may be as
// long as its body, and is read before the caller is known.
func unique[S ~[]T, T any, K comparable](list S, key func(T) K) S {
	seen := make(map[K]bool, len(list))
	return slices.DeleteFunc(list, func(item T) bool {
		before := seen[key(item)]
		seen[key(item)] = true
		return before
	})
}

func itself[T any](item T) T { return item }

func notNumeric(name string) *Error {
	return Refuse(CodeNotNumeric, "The parameter %q takes numbers only.", name)
}

func noFlagType(id string) *Error {
	return Refuse(CodeNotFound, "There is no flag type with the id %s.", id)
}
