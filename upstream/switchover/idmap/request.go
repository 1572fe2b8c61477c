package idmap

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"portico/mapping"
)

// translation translates one request to one side.
type translation struct {
	*Map
	side Side
	// refs are the ids of the request, set puts the native ones in their places, and ids are those.
	refs []ref
	set  []func(native int64)
	ids  []int64
	// err is that of what has no translation.
	err error
}

// translate replaces the ids and names that visit visits. An id that the side does not have is an error of unmapped.
func (m *Map) translate(ctx context.Context, side Side, visit func(*translation)) (t *translation, err error) {
	t = &translation{Map: m, side: side}
	visit(t)
	t.ids, err = m.natives(ctx, side, t.refs)
	for i, native := range t.ids {
		t.set[i](native)
	}
	return t, cmp.Or(err, t.err)
}

// each visits a copy of a list.
func each[T any](visit func(Kind, *T), kind Kind, list []T) []T {
	list = slices.Clone(list)
	for i := range list {
		visit(kind, &list[i])
	}
	return list
}

// optional visits a copy of what an optional field points to.
func optional[T any](visit func(Kind, *T), kind Kind, field **T) {
	if *field != nil {
		*field = &each(visit, kind, []T{**field})[0]
	}
}

func (t *translation) add(kind Kind, id int64, set func(native int64)) {
	t.refs, t.set = append(t.refs, ref{kind, id}), append(t.set, set)
}

func (t *translation) id(kind Kind, id *int64) {
	t.add(kind, *id, func(native int64) { *id = native })
}

// text is an id as a text. What is no number, such as an alias of a bug, stays as it is.
func (t *translation) text(kind Kind, text *string) {
	id, err := strconv.ParseInt(strings.TrimSpace(*text), 10, 64)
	if err == nil && mapping.IsBugNumber(*text) {
		t.add(kind, id, func(native int64) {
			if native != id {
				*text = strconv.FormatInt(native, 10)
			}
		})
	}
}

// name translates a name. Neither rules nor the old tracker know one that only the new tracker has. Components of two products may have the same name.
func (t *translation) name(kind Kind, name *string) {
	named := *name
	*name = t.names.native(t.side, kind, named)
	if *name == named && kind != component && folded(t.names.client(t.side, kind, named)) != folded(named) {
		t.err = failure(http.StatusNotFound, "There is no %q: only the new tracker has that name. Use the one that the old tracker has.", named)
	}
}

// extra refuses a member of a dialect whose ids would reach the tracker as they are.
func (t *translation) extra(extra mapping.Members) {
	if extra.Get("bug_flags") != nil {
		t.err = mapping.Inexpressible("The ids in \"bug_flags\" cannot be translated for the tracker. Change the flags of the bug by a request of their own.")
	}
}

func (t *translation) flag(kind Kind, flag *mapping.FlagChange) {
	optional(t.id, FlagType, &flag.TypeID)
	optional(t.id, kind, &flag.ID)
	optional(t.name, FlagType, &flag.Name)
	optional(t.name, user, &flag.Requestee)
}

func (t *translation) fields(f *mapping.FlagTypeFields) {
	optional(t.name, FlagType, &f.Name)
	optional(t.name, Group, &f.GrantGroup)
	optional(t.name, Group, &f.RequestGroup)
	optional(t.scopes, product, &f.Inclusions)
	optional(t.scopes, product, &f.Exclusions)
}

func (t *translation) scopes(kind Kind, scopes *mapping.Scopes) {
	*scopes = each(func(kind Kind, scope *mapping.Scope) {
		t.name(kind, &scope.Product)
		scope.Components = each(t.name, component, scope.Components)
	}, kind, *scopes)
}
