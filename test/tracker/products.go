package tracker

import (
	"slices"
	"strings"
	"unicode"
)

var (
	opProducts   = operation{name: "product.get", do: (*call).productList}
	opProductIDs = operation{name: "product.ids", do: (*call).productIDs}
)

func (c *call) visibleProducts() []*product {
	return slices.DeleteFunc(c.tx.products.all(), func(p *product) bool { return !c.tx.seesProduct(c.user, p) })
}

// productList reads products by names, ids or type; those out of sight are left out.
func (c *call) productList() (any, error) {
	names, hasNames := c.params["names"]
	ids, hasIDs := c.params["ids"]
	if !hasNames && !hasIDs && c.params["type"] == nil {
		return nil, fail(codeParamRequired, "reading products needs one of the parameters ids, names and type")
	}
	list := []any{}
	if c.server.bmo() && strings.ContainsFunc(strings.Join(words(names, false), ""), func(r rune) bool { return r > unicode.MaxASCII }) {
		return nil, internal("wide character")
	}
	for _, p := range c.visibleProducts() {
		if c.params["type"] != nil || hasNames && slices.Contains(words(names, false), p.name) ||
			(hasIDs || hasNames) && slices.Contains(append(words(ids, false), words(names, false)...), text(int64(p.id))) {
			list = append(list, c.filter("", c.productObject(p)))
		}
	}
	return object{"products": list}, nil
}

func (c *call) productObject(p *product) object {
	components := []any{}
	for _, comp := range c.tx.components.all() {
		if comp.product == p.id {
			components = append(components, c.filter("components.", c.componentObject(p, comp)))
		}
	}
	choice := func(name string) []any {
		return []any{object{"id": p.id, "name": name, "sort_key": 0, "is_active": true}}
	}
	return object{
		"id": p.id, "name": p.name, "description": p.description, "is_active": !p.closed, "default_milestone": "---", "has_unconfirmed": true,
		"classification": "Unclassified", "components": components, "versions": choice("unspecified"), "milestones": choice("---"),
	}
}

func (c *call) componentObject(p *product, comp *component) object {
	types := object{}
	for _, target := range []string{targetBug, targetAttachment} {
		types[target] = listOf(c.tx.flagTypesFor(target, p.id, comp.id), func(f *flagType) object {
			return object{"id": f.id, "name": f.name, "description": f.description, "sort_key": f.sortkey, "is_active": f.active, "cc_list": f.ccList,
				"is_requestable": f.requestable, "is_requesteeble": f.requesteeble, "is_multiplicable": f.multiplicable, "grant_group": f.grantGroup,
				"request_group": f.requestGroup}
		})
	}
	return object{"id": comp.id, "name": comp.name, "description": comp.description, "default_assigned_to": "", "default_qa_contact": "",
		"sort_key": 0, "is_active": true, "flag_types": types}
}

func (c *call) productIDs() (any, error) {
	return object{"ids": listOf(c.visibleProducts(), func(p *product) int { return p.id })}, nil
}
