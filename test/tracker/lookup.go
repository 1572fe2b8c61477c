package tracker

import (
	"slices"
	"strings"
)

// Names are matched case-insensitively by the database (tracker-behaviour.md section 10, 13).

func (t *tx) groupNamed(name string) *group {
	return firstMatch(t.groups.all(), func(g *group) bool { return strings.EqualFold(g.name, name) })
}

func (t *tx) productNamed(name string) *product {
	return firstMatch(t.products.all(), func(p *product) bool { return strings.EqualFold(p.name, name) })
}

func (t *tx) componentNamed(product int, name string) *component {
	return firstMatch(t.components.all(), func(c *component) bool { return c.product == product && strings.EqualFold(c.name, name) })
}

func (t *tx) userNamed(login string) *user {
	return firstMatch(t.users.all(), func(u *user) bool { return strings.EqualFold(u.login, login) })
}

func firstMatch[T any](rows []*T, match func(*T) bool) *T {
	if i := slices.IndexFunc(rows, match); i >= 0 {
		return rows[i]
	}
	return nil
}

// flagTypesFor lists the types for one target that are valid in a bug's place, in their order.
func (t *tx) flagTypesFor(target string, product, component int) []*flagType {
	types := slices.DeleteFunc(t.flagTypes.all(), func(f *flagType) bool {
		return f.target != target || !f.validFor(product, component)
	})
	slices.SortFunc(types, compareFlagTypes)
	return types
}

// member tells whether a user is in a group; the administrators' group inherits all. An anonymous caller (nil) is in no group.
func (t *tx) member(u *user, group int) bool {
	return u != nil && (slices.Contains(u.groups, group) || slices.Contains(u.groups, adminGroup))
}

func (t *tx) memberNamed(u *user, name string) bool {
	g := t.groupNamed(name)
	return g != nil && t.member(u, g.id)
}

// edits tells whether a user may administer the flag types of a product.
func (t *tx) edits(u *user, p *product) bool {
	return t.memberNamed(u, editComponentsGroup) || p.editors != 0 && t.member(u, p.editors)
}

// editedProducts lists the products that a user may administer.
func (t *tx) editedProducts(u *user) []*product {
	return slices.DeleteFunc(t.products.all(), func(p *product) bool { return !t.edits(u, p) })
}

func (t *tx) seesProduct(u *user, p *product) bool { return p.group == 0 || t.member(u, p.group) }

// seesBug follows tracker-behaviour.md section 5, Visibility: all groups of the bug, or a role on it.
func (t *tx) seesBug(u *user, b *bug) bool {
	if !slices.ContainsFunc(b.groups, func(g int) bool { return !t.member(u, g) }) {
		return true
	}
	return u != nil && (u.id == b.reporter || u.id == b.assignee || slices.Contains(b.cc, u.id))
}

func (t *tx) mayGrant(u *user, f *flagType) bool {
	return f.grantGroup == 0 || t.member(u, f.grantGroup)
}

// mayRequest: a request group alone does not restrict, because then all may grant (tracker-behaviour.md section 2, values).
func (t *tx) mayRequest(u *user, f *flagType) bool {
	return t.mayGrant(u, f) || f.requestGroup == 0 || t.member(u, f.requestGroup)
}
