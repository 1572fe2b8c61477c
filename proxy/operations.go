package proxy

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"portico/mapping"
)

// flagTypes is GET /rest/flag_type/P and /rest/flag_type/P/C.
func (x *exchange) flagTypes() (answer, error) {
	product, err := x.segment("product")
	if err != nil {
		return answer{}, err
	}
	component, err := x.component()
	if err != nil {
		return answer{}, err
	}
	request := mapping.FlagTypesRequest{Product: product, Component: component}
	got, err := x.server.options.Tracker.FlagTypes(x.begin(), x.caller, request)
	x.record.Cache = got.Cache // which is there beside an error, too
	return x.got(answer{Document: got.Document, cache: got.Cache, ownTag: true}, err)
}

// component comes from the path, or else from the query, which is the way around a slash in a name
// (wire-facts.md, section 1, Encoded characters).
func (x *exchange) component() (string, error) {
	if x.segments.ByName("component") != "" {
		return x.segment("component")
	}
	if len(x.query.all("component")) > 1 {
		return "", mapping.Refuse(mapping.CodeNotFound, "Flag types can be asked for one component only.")
	}
	return x.query.first("component"), nil
}

// createFlagType is POST /rest/flag_type.
func (x *exchange) createFlagType() (answer, error) {
	members, err := x.members()
	if err != nil {
		return answer{}, err
	}
	request, err := mapping.DecodeFlagTypeCreate(members)
	if err != nil {
		return answer{}, err
	}
	request.SetDefaults()
	got, err := x.server.creating.flagType(x.begin(), x.caller, request)
	return x.got(answer{Document: got.Document}, err)
}

// updateFlagTypes is PUT /rest/flag_type/X.
func (x *exchange) updateFlagTypes() (answer, error) {
	idOrName, err := x.segment("product")
	if err != nil {
		return answer{}, err
	}
	members, err := x.members()
	if err != nil {
		return answer{}, err
	}
	request, err := mapping.DecodeFlagTypeUpdate(idOrName, members)
	if err != nil {
		return answer{}, err
	}
	if err := x.limitIDs(len(request.IDs) + len(request.Names)); err != nil {
		return answer{}, err
	}
	got, err := x.server.options.Tracker.UpdateFlagTypes(x.begin(), x.caller, request)
	return x.got(answer{Document: got.Document}, err)
}

// bugAttachments is GET /rest/bug/B/attachment.
func (x *exchange) bugAttachments() (answer, error) {
	bug, err := x.segment("a")
	if err != nil {
		return answer{}, err
	}
	request, err := x.attachmentsRequest([]string{bug}, nil)
	if err != nil {
		return answer{}, err
	}
	got, err := x.server.options.Tracker.BugAttachments(x.begin(), x.caller, request)
	return x.got(answer{Document: got.Document}, err)
}

// attachment is GET /rest/bug/attachment/A.
func (x *exchange) attachment() (answer, error) {
	id, err := x.segment("b")
	if err != nil {
		return answer{}, err
	}
	request, err := x.attachmentsRequest(nil, []string{id})
	if err != nil {
		return answer{}, err
	}
	got, err := x.server.options.Tracker.Attachment(x.begin(), x.caller, request)
	return x.got(answer{Document: got.Document}, err)
}

// attachmentsRequest joins the path with ids and attachment_ids of the query (wire-facts.md, section 5).
func (x *exchange) attachmentsRequest(bugs, attachments []string) (mapping.AttachmentsRequest, error) {
	request := mapping.AttachmentsRequest{
		Bugs:        append(bugs, x.query.all("ids")...),
		Attachments: append(attachments, x.query.all("attachment_ids")...),
		Include:     x.query.fieldNames("include_fields"),
		Exclude:     x.query.fieldNames("exclude_fields"),
	}
	if x.as.plain() {
		request.IfNoneMatch = x.r.Header.Get("If-None-Match")
	}
	if err := x.limitIDs(len(request.Bugs) + len(request.Attachments)); err != nil {
		return request, err
	}
	return request, request.Validate()
}

// createAttachment is POST /rest/bug/B/attachment.
func (x *exchange) createAttachment() (answer, error) {
	bug, err := x.segment("a")
	if err != nil {
		return answer{}, err
	}
	members, err := x.members()
	if err != nil {
		return answer{}, err
	}
	request, err := mapping.DecodeAttachmentCreate(bug, members, x.blobs)
	if request.Data != nil {
		defer request.Data.Close()
	}
	if err != nil {
		return answer{}, err
	}
	x.record.Conflict = request.Conflict
	if err := x.limitIDs(len(request.Bugs)); err != nil {
		return answer{}, err
	}
	request.SetDefaults()
	got, err := x.server.creating.attachment(x.begin(), x.caller, request)
	if got.Document != nil && got.PathWon {
		x.record.Conflict = true
	}
	return x.got(answer{Document: got.Document}, err)
}

// updateAttachments is PUT /rest/bug/attachment/A.
func (x *exchange) updateAttachments() (answer, error) {
	id, err := x.segment("b")
	if err != nil {
		return answer{}, err
	}
	members, err := x.members()
	if err != nil {
		return answer{}, err
	}
	request, err := mapping.DecodeAttachmentUpdate(id, members)
	if err != nil {
		return answer{}, err
	}
	if err := x.limitIDs(len(request.IDs)); err != nil {
		return answer{}, err
	}
	request.SetDefaults()
	got, err := x.server.options.Tracker.UpdateAttachments(x.begin(), x.caller, request)
	return x.got(answer{Document: got.Document}, err)
}

// got ends the part of the tracker in an operation.
func (x *exchange) got(reply answer, err error) (answer, error) {
	if x.call != nil {
		x.call.begun()
	}
	return reply, err
}

// segment gives the text of a path segment, its escapes taken off once. What is not UTF-8 names nothing that a tracker
// could have, and neither does NUL.
func (x *exchange) segment(name string) (string, error) {
	text, err := url.PathUnescape(x.segments.ByName(name))
	if err != nil || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", badPath()
	}
	return text, nil
}

// limitIDs refuses requests for more things at once than the configuration allows.
func (x *exchange) limitIDs(count int) error {
	if most := x.server.options.Limits.IDs; count > most {
		return tooLarge(mapping.CodeTooLarge, fmt.Sprintf("One request may name at most %d ids.", most), nil)
	}
	return nil
}
