package tracker

import (
	"maps"
	"slices"
)

// placesOr reads inclusions or exclusions, or gives a default when they are null or missing.
func (c *call) placesOr(name string, otherwise []place) ([]place, error) {
	v, ok := c.params[name]
	if !ok || v == nil {
		return otherwise, nil
	}
	return c.places(v)
}

// places reads inclusions or exclusions: an array of product names and of objects {product: [components]} (tracker-behaviour.md section 3,
// Inclusions in detail). Everything that is not an array is an internal error.
func (c *call) places(v any) ([]place, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, internal("a list of places is no array")
	}
	var out []place
	for _, item := range items {
		more, err := c.placesOf(item)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func (c *call) placesOf(item any) ([]place, error) {
	switch item := item.(type) {
	case object:
		var out []place
		for _, name := range slices.Sorted(maps.Keys(item)) {
			more, err := c.placesIn(name, item[name])
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	case []any, bool:
		return nil, fail(codeParamInvalid, "%s is no valid place for a flag type", text(item))
	}
	p, err := c.administered(item)
	if err != nil {
		return nil, err
	}
	return []place{{p.id, anyComponent}}, nil
}

func (c *call) placesIn(name string, components any) ([]place, error) {
	p, err := c.administered(name)
	if err != nil {
		return nil, err
	}
	items, ok := components.([]any)
	if !ok && components != nil {
		return nil, internal("the components of '%s' are no array", name)
	}
	var out []place
	for _, item := range items {
		comp, err := c.component(p, item)
		if err != nil {
			return nil, err
		}
		out = append(out, place{p.id, comp.id})
	}
	return out, nil
}

// administered finds a product that the caller sees and may administer.
func (c *call) administered(v any) (*product, error) {
	p, err := c.product(v)
	if err != nil {
		return nil, err
	}
	if !c.tx.edits(c.user, p) {
		return nil, errNoProduct(p.name)
	}
	return p, nil
}

// mayChangePlaces checks that an editor of single products adds and removes places in these products only. A place that
// stands for all products is an internal error then (tracker-behaviour.md section 3: an editor of one product only, without inclusions).
func (c *call) mayChangePlaces(old, changed []place) error {
	if c.tx.memberNamed(c.user, editComponentsGroup) {
		return nil
	}
	for _, p := range slices.Concat(old, changed) {
		if slices.Contains(old, p) && slices.Contains(changed, p) {
			continue
		}
		if p.product == anyProduct {
			return internal("no product to check for a place")
		}
		if product := c.tx.products.get(p.product); !c.tx.edits(c.user, product) {
			return errNoProduct(product.name)
		}
	}
	return nil
}
