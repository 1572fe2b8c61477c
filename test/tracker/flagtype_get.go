package tracker

import (
	"math/rand/v2"
	"slices"
)

var opFlagTypeGet = operation{name: "flag_type.get", do: (*call).flagTypeGet}

// flagTypeGet lists the flag types of a product or of one of its components (tracker-behaviour.md section 2).
func (c *call) flagTypeGet() (any, error) {
	if c.params["product"] == nil {
		return nil, fail(codeParamRequired, "the parameter 'product' is required")
	}
	p, err := c.product(c.params["product"])
	if err != nil {
		return nil, err
	}
	applies := func(f *flagType) bool { return f.listedFor(p.id) }
	if v := c.params["component"]; truth(v) {
		comp, err := c.component(p, v)
		if err != nil {
			return nil, err
		}
		applies = func(f *flagType) bool { return f.validFor(p.id, comp.id) }
	}
	types := slices.DeleteFunc(c.tx.flagTypes.all(), func(f *flagType) bool { return !applies(f) })
	slices.SortFunc(types, compareFlagTypes)
	result := map[string][]any{targetBug: {}, targetAttachment: {}}
	for _, f := range types {
		result[f.target] = append(result[f.target], c.flagTypeObject(f, p))
	}
	return object{targetBug: result[targetBug], targetAttachment: result[targetAttachment]}, nil
}

// product finds a product that the caller may see; one out of sight is as one that does not exist (tracker-behaviour.md section 2, Errors).
func (c *call) product(v any) (*product, error) {
	name := trim(text(v))
	if name == "" {
		return nil, fail(codeParamRequired, "a product has to be named")
	}
	p := c.tx.productNamed(name)
	if p == nil || !c.tx.seesProduct(c.user, p) {
		return nil, errNoProduct(name)
	}
	return p, nil
}

func (c *call) component(p *product, v any) (*component, error) {
	name := trim(text(v))
	if name == "" {
		return nil, fail(codeParamRequired, "a component has to be named")
	}
	comp := c.tx.componentNamed(p.id, name)
	if comp == nil {
		return nil, fail(codeNotExist, "the product '%s' has no component '%s'", p.name, name)
	}
	return comp, nil
}

func (c *call) flagTypeObject(f *flagType, p *product) object {
	o := object{
		"id": f.id, "name": f.name, "description": f.description, "type": f.target, "values": c.flagValues(f),
		"is_active": f.active, "is_requesteeble": f.requesteeble, "is_multiplicable": f.multiplicable,
	}
	if names := c.includedComponents(f, p); len(names) > 0 {
		o["inclusions"] = names
	}
	return o
}

// flagValues are the values that the caller may set.
func (c *call) flagValues(f *flagType) []any {
	values := []any{"X"}
	if f.requestable && c.tx.mayRequest(c.user, f) {
		values = append(values, "?")
	}
	if c.tx.mayGrant(c.user, f) {
		values = append(values, "+", "-")
	}
	if c.server.has(QuirkWrongGroupValues) && c.tx.member(c.user, oddGroup) {
		values = slices.DeleteFunc(values, func(v any) bool { return v == "-" })
	}
	return values
}

// oddGroup is the group whose members QuirkWrongGroupValues is about, in both seeds.
const oddGroup = groupInsiders + 1

// includedComponents names the components of a product for which a type is included, in random order, unless it is
// included for the whole product (tracker-behaviour.md section 2).
func (c *call) includedComponents(f *flagType, p *product) []any {
	names := []any{}
	for _, i := range f.inclusions {
		switch {
		case i.component == anyComponent && (i.product == anyProduct || i.product == p.id):
			return nil
		case i.product == p.id:
			names = append(names, c.tx.components.get(i.component).name)
		}
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}
