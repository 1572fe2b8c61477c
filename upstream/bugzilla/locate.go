package bugzilla

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/upstream"
)

// Bug returns the product and component of a bug, by id or alias, with the caller's own credential.
// Codes: 100, 101, 102.
func (c *Client) Bug(ctx context.Context, caller upstream.Caller, ref string) (mapping.Place, error) {
	bugs, err := c.bugs(ctx, caller, []string{strings.TrimSpace(ref)})
	if err != nil {
		return mapping.Place{}, err
	}
	return bugs[0], nil
}

// bugs looks bugs up, by id or alias, with the caller's own credential. It returns one for each reference.
func (c *Client) bugs(ctx context.Context, caller upstream.Caller, refs []string) ([]mapping.Place, error) {
	call, err := planBugs(c.Dialect(ctx), refs)
	var result struct {
		Bugs []mapping.Place `json:"bugs"`
	}
	if err := c.fetch(ctx, caller, call, err, &result); err != nil {
		return nil, err
	}
	if len(result.Bugs) != len(refs) || slices.ContainsFunc(result.Bugs, func(bug mapping.Place) bool { return bug.Bug == 0 || bug.Product == "" }) {
		return nil, failure(&call, bad("the tracker's response does not tell which bugs these are"))
	}
	return result.Bugs, nil
}

// planBugs plans a lookup of bugs. An alias that neither path nor query carries goes by JSON-RPC, as for attachments.
func planBugs(dialect mapping.Dialect, refs []string) (Call, error) {
	query := url.Values{"ids": refs[1:], "include_fields": {"id,product,component"}}
	return planRead(dialect, mapping.OpBugAttachments, []string{"bug", refs[0]}, query, "Bug.get",
		lists(url.Values{"ids": refs, "include_fields": {"id", "product", "component"}}))
}

// AttachmentBug returns the bug of an attachment, 0 when there is no such
// attachment. Codes: 102, 304.
func (c *Client) AttachmentBug(ctx context.Context, caller upstream.Caller, id int64) (int64, error) {
	text := strconv.FormatInt(id, 10)
	call, err := planAttachments(c.Dialect(ctx), mapping.OpAttachment, mapping.AttachmentsRequest{Attachments: []string{text}, Include: []string{"id", "bug_id"}})
	var result struct {
		Attachments map[string]struct {
			Bug int64 `json:"bug_id"`
		} `json:"attachments"`
	}
	err = c.fetch(ctx, caller, call, err, &result)
	return result.Attachments[text].Bug, err
}

// Comments returns the comments on an attachment by their ids, as far as the caller sees them.
func (c *Client) Comments(ctx context.Context, caller upstream.Caller, attachment int64) (map[int64]upstream.Comment, error) {
	bug, err := c.AttachmentBug(ctx, caller, attachment)
	if err != nil {
		return nil, err
	}
	name := strconv.FormatInt(bug, 10)
	call, err := planRead(c.Dialect(ctx), mapping.OpBugAttachments, []string{"bug", name, "comment"}, nil, "Bug.comments",
		lists(url.Values{"ids": {name}}))
	var result struct {
		Bugs map[string]struct {
			Comments []struct {
				ID         int64 `json:"id"`
				Attachment int64 `json:"attachment_id"`
				upstream.Comment
			} `json:"comments"`
		} `json:"bugs"`
	}
	err = c.fetch(ctx, caller, call, err, &result)
	all := map[int64]upstream.Comment{}
	for _, one := range result.Bugs[name].Comments {
		if one.Attachment == attachment {
			all[one.ID] = one.Comment
		}
	}
	return all, err
}

// fetch makes a planned call and decodes its response into result.
func (c *Client) fetch(ctx context.Context, caller upstream.Caller, call Call, planned error, result any) error {
	document, err := c.document(ctx, caller, call, planned)
	if err != nil {
		return err
	}
	text, err := document.Load(c.options.Split)
	if err == nil {
		err = json.Unmarshal(text, result)
		if err != nil {
			err = bad("the tracker's response is not what was asked for: " + err.Error())
		}
	}
	if err = errors.Join(err, document.Close()); err != nil {
		return failure(&call, err)
	}
	return nil
}

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

// FlagTypePlaces returns which products the caller sees and where in them flag types
// apply, with the caller's own credential: one list of products and components for
// each of ids and then for each of names, nil for what applies nowhere there. A flag type read does not
// have this (tracker-behaviour.md section 2), so all products that the caller sees are read.
func (c *Client) FlagTypePlaces(
	ctx context.Context, caller upstream.Caller, ids []int64, names []string,
) (products []string, places []mapping.Scopes, err error) {
	query := url.Values{"type": {"accessible"}, "include_fields": {"name,components"}}
	call, err := planRead(c.Dialect(ctx), mapping.OpFlagTypes, []string{"product"}, query, "Product.get",
		lists(url.Values{"type": {"accessible"}, "include_fields": {"name", "components"}}))
	var result struct {
		Products []product `json:"products"`
	}
	if err := c.fetch(ctx, caller, call, err, &result); err != nil {
		return nil, nil, err
	}
	for _, product := range result.Products {
		products = append(products, product.Name)
	}
	for _, id := range ids {
		places = append(places, placesOf(result.Products, func(t typeRef) bool { return t.ID == id }))
	}
	for _, name := range names {
		wanted := strings.TrimSpace(name)
		places = append(places, placesOf(result.Products, func(t typeRef) bool { return strings.EqualFold(t.Name, wanted) }))
	}
	return products, places, nil
}

// placesOf lists where the flag types apply that match.
func placesOf(products []product, matches func(typeRef) bool) mapping.Scopes {
	var places mapping.Scopes
	for _, product := range products {
		var components []string
		for _, component := range product.Components {
			if types := component.FlagTypes; slices.ContainsFunc(slices.Concat(types.Bug, types.Attachment), matches) {
				components = append(components, component.Name)
			}
		}
		switch len(components) {
		case 0:
			continue
		case len(product.Components):
			components = nil // that is all of them
		}
		places = append(places, mapping.Scope{Product: product.Name, Components: components})
	}
	return places
}
