package bugzilla

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"portico/mapping"
	"portico/upstream"
)

// product is a product as trackers describe it, with the flag types of each
// component.
type product struct {
	Name       string `json:"name"`
	Components []struct {
		Name      string `json:"name"`
		FlagTypes struct {
			Bug        []typeRef `json:"bug"`
			Attachment []typeRef `json:"attachment"`
		} `json:"flag_types"`
	} `json:"components"`
}

// typeRef is as much of a flag type as selects it.
type typeRef struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// FlagTypePlaces tells which products the caller sees and where in them flag types
// apply, with the caller's own credential: one list of products and components for
// each of ids and then for each of names, nil for what applies nowhere there. A flag type read does not
// tell this (wire-facts.md section 2), so all products that the caller sees are read.
func (c *Client) FlagTypePlaces(
	ctx context.Context, caller upstream.Caller, ids []int64, names []string,
) (products []string, places []mapping.Scopes, err error) {
	path, err := resource(c.Dialect(ctx), "product")
	if err != nil {
		return nil, nil, err
	}
	var answer struct {
		Products []product `json:"products"`
	}
	call := Call{
		Operation: mapping.OpFlagTypes, Method: http.MethodGet, Path: path,
		Query: url.Values{"type": {"accessible"}, "include_fields": {"name,components"}},
	}
	if err := c.lookUp(ctx, caller, call, &answer); err != nil {
		return nil, nil, err
	}
	for _, product := range answer.Products {
		products = append(products, product.Name)
	}
	places = make([]mapping.Scopes, 0, len(ids)+len(names))
	for _, id := range ids {
		places = append(places, placesOf(answer.Products, func(t typeRef) bool { return t.ID == id }))
	}
	for _, name := range names {
		wanted := strings.TrimSpace(name)
		places = append(places, placesOf(answer.Products, func(t typeRef) bool { return strings.EqualFold(t.Name, wanted) }))
	}
	return products, places, nil
}

// placesOf lists where the flag types apply that match.
func placesOf(products []product, matches func(typeRef) bool) mapping.Scopes {
	var places mapping.Scopes
	for _, product := range products {
		var components []string
		for _, component := range product.Components {
			types := component.FlagTypes
			if slices.ContainsFunc(types.Bug, matches) || slices.ContainsFunc(types.Attachment, matches) {
				components = append(components, component.Name)
			}
		}
		switch {
		case len(components) == 0:
		case len(components) == len(product.Components):
			places = append(places, mapping.Scope{Product: product.Name})
		default:
			places = append(places, mapping.Scope{Product: product.Name, Components: components})
		}
	}
	return places
}
