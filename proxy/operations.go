package proxy

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"portico/mapping"
	"portico/upstream"
)

// decoders read the requests of the operations into calls. segment is the text of the first variable segment of the path, members are
// those of the body of a write. Beside the call they return how many ids it has.
var decoders = map[mapping.Operation]func(rc *requestContext, segment string, members mapping.Members) (upstream.Call, int, error){
	mapping.OpFlagTypes: func(rc *requestContext, segment string, _ mapping.Members) (upstream.Call, int, error) {
		request, err := rc.flagTypesRequest(segment)
		return upstream.Call{FlagTypes: &request}, 0, err
	},
	mapping.OpCreateFlagType: func(_ *requestContext, _ string, members mapping.Members) (upstream.Call, int, error) {
		request, err := mapping.DecodeFlagTypeCreate(members)
		request.SetDefaults()
		return upstream.Call{CreateFlagType: &request}, 0, err
	},
	mapping.OpUpdateFlagTypes: func(_ *requestContext, idOrName string, members mapping.Members) (upstream.Call, int, error) {
		request, err := mapping.DecodeFlagTypeUpdate(idOrName, members)
		return upstream.Call{UpdateFlagTypes: &request}, len(request.IDs) + len(request.Names), err
	},
	mapping.OpBugAttachments: (*requestContext).decodeAttachments,
	mapping.OpAttachment:     (*requestContext).decodeAttachments,
	mapping.OpCreateAttachment: func(rc *requestContext, bug string, members mapping.Members) (upstream.Call, int, error) {
		request, err := mapping.DecodeAttachmentCreate(bug, members, rc.blobs)
		rc.content, rc.record.Conflict = request.Data, err == nil && request.Conflict
		request.SetDefaults()
		return upstream.Call{CreateAttachment: &request}, len(request.Bugs), err
	},
	mapping.OpUpdateAttachments: func(_ *requestContext, id string, members mapping.Members) (upstream.Call, int, error) {
		request, err := mapping.DecodeAttachmentUpdate(id, members)
		request.SetDefaults()
		return upstream.Call{UpdateAttachments: &request}, len(request.IDs), err
	},
}

// carryOut decodes the request of an operation and makes the call.
func (rc *requestContext) carryOut(op mapping.Operation) (*mapping.Document, error) {
	var segment string
	var members mapping.Members
	var err error
	if len(rc.segments) > 0 {
		segment, err = rc.segment(0)
	}
	if err == nil && op.IsWrite() {
		members, err = rc.members()
	}
	if err != nil {
		return nil, err
	}
	call, ids, err := decoders[op](rc, segment, members)
	if err != nil {
		return nil, err
	}
	if limit := rc.server.options.Limits.IDs; ids > limit {
		return nil, failure(mapping.CodeTooLarge, mapping.ReasonTooLarge, fmt.Sprintf("One request may name at most %d ids.", limit), nil)
	}
	call.Operation = op
	if op.IsCreate() {
		return rc.once(call)
	}
	return rc.make(rc.beginCall(), call)
}

// make makes a call of the tracker. Both results may be there.
func (rc *requestContext) make(ctx context.Context, call upstream.Call) (*mapping.Document, error) {
	if call.FlagTypes != nil {
		reply, err := rc.server.options.Tracker.FlagTypes(ctx, rc.caller, *call.FlagTypes)
		rc.record.Cache = reply.Cache // beside an error, too
		return reply.Document, err
	}
	reply := call.Make(ctx, rc.server.options.Tracker, rc.caller)
	rc.record.Conflict = rc.record.Conflict || reply.Document != nil && reply.Document.PathWon
	return reply.Document, reply.Err
}

// flagTypesRequest reads the path. The component may come from the query, which is the way around a slash in a name
// (tracker-behaviour.md section 1, Encoded characters).
func (rc *requestContext) flagTypesRequest(product string) (request mapping.FlagTypesRequest, err error) {
	request.Product = product
	if len(rc.segments) > 1 {
		request.Component, err = rc.segment(1)
		return request, err
	}
	components := rc.query.all("component")
	if len(components) > 1 {
		return request, mapping.Refuse(mapping.CodeNotFound, "Flag types can be asked for one component only.")
	}
	request.Component = cmp.Or(components...)
	return request, nil
}

// decodeAttachments joins the path with ids and attachment_ids of the query (tracker-behaviour.md section 5).
func (rc *requestContext) decodeAttachments(segment string, _ mapping.Members) (upstream.Call, int, error) {
	request := mapping.AttachmentsRequest{
		Bugs: rc.query.all("ids"), Attachments: rc.query.all("attachment_ids"),
		Include: rc.query.fieldNames("include_fields"), Exclude: rc.query.fieldNames("exclude_fields"),
	}
	if rc.record.Operation == mapping.OpBugAttachments {
		request.Bugs = slices.Insert(request.Bugs, 0, segment)
	} else {
		request.Attachments = slices.Insert(request.Attachments, 0, segment)
	}
	if rc.form.plain() {
		request.IfNoneMatch = tagsForTracker(rc.r.Header)
	}
	return upstream.Call{Attachments: &request}, len(request.Bugs) + len(request.Attachments), request.Validate()
}

// segment returns the text of a variable path segment, its escapes decoded once. Text that is not UTF-8 is Latin-1, as in a query:
// that is the form by which clients reach products with such names on a stock tracker. NUL is in no name.
func (rc *requestContext) segment(i int) (string, error) {
	text, err := url.PathUnescape(rc.segments[i].Value)
	switch {
	case err != nil || strings.ContainsRune(text, 0):
		return "", badPath()
	case !utf8.ValidString(text):
		return latin1(text), nil
	}
	return text, nil
}
