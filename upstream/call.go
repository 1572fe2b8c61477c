package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/mapping"
)

// Call is one call of a Tracker as a value, so that it can be made again, of
// another tracker or later. Exactly the request of its operation is set. The
// payload of an attachment create belongs to whoever made the request.
type Call struct {
	Operation mapping.Operation

	FlagTypes         *mapping.FlagTypesRequest
	CreateFlagType    *mapping.FlagTypeCreate
	UpdateFlagTypes   *mapping.FlagTypeUpdate
	Attachments       *mapping.AttachmentsRequest // of both attachment reads
	CreateAttachment  *mapping.AttachmentCreate
	UpdateAttachments *mapping.AttachmentUpdate
}

// errNoCall says that a Call has no request, or that of another operation.
var errNoCall = errors.New("a call without the request of its operation")

// Sides are the two trackers of a comparison, by their names.
type Sides struct {
	// Answered is the one whose answer the client gets, Other the one that is
	// compared with it.
	Answered string `json:"answered"`
	Other    string `json:"other"`
}

// Answer is what a tracker said to a call: a document or an error.
type Answer struct {
	Document *mapping.Document
	Err      error
	// FromCache says that the tracker was not asked for it.
	FromCache bool
	// Took is how long the answer took to begin.
	Took time.Duration
}

// Shadow is told of calls that one tracker answered and another might have
// answered differently. It neither fails nor delays a call.
type Shadow interface {
	// Answered is called before the client gets the answer. It may wrap the
	// document to see it pass, and whoever calls gives on the one that is returned,
	// which is nil where answer has none. It must not read a document to its end.
	Answered(ctx context.Context, caller Caller, call Call, sides Sides, answer Answer) *mapping.Document
}

type mostKey struct{}

// WithMost says that nobody reads more than n bytes of an answer: whoever makes
// the call may give up on a longer one, as on one that never ends.
func WithMost(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, mostKey{}, n)
}

// Most is what WithMost has said, 0 when it has said nothing.
func Most(ctx context.Context) int64 {
	n, _ := ctx.Value(mostKey{}).(int64)
	return n
}

// Make makes the call. Errors are those of the Tracker's method.
func (c Call) Make(ctx context.Context, tracker Tracker, caller Caller) Answer {
	began := time.Now()
	answer := c.make(ctx, tracker, caller)
	answer.Took = time.Since(began)
	return answer
}

func (c Call) make(ctx context.Context, tracker Tracker, caller Caller) Answer {
	switch {
	case c.Operation == mapping.OpFlagTypes && c.FlagTypes != nil:
		reply, err := tracker.FlagTypes(ctx, caller, *c.FlagTypes)
		return Answer{Document: reply.Document, Err: err, FromCache: reply.Cache != nil && reply.Cache.Hit}
	case c.Operation == mapping.OpCreateFlagType && c.CreateFlagType != nil:
		reply, err := tracker.CreateFlagType(ctx, caller, *c.CreateFlagType)
		return Answer{Document: reply.Document, Err: err}
	case c.Operation == mapping.OpUpdateFlagTypes && c.UpdateFlagTypes != nil:
		reply, err := tracker.UpdateFlagTypes(ctx, caller, *c.UpdateFlagTypes)
		return Answer{Document: reply.Document, Err: err}
	case c.Operation == mapping.OpBugAttachments && c.Attachments != nil:
		reply, err := tracker.BugAttachments(ctx, caller, *c.Attachments)
		return Answer{Document: reply.Document, Err: err}
	case c.Operation == mapping.OpAttachment && c.Attachments != nil:
		reply, err := tracker.Attachment(ctx, caller, *c.Attachments)
		return Answer{Document: reply.Document, Err: err}
	case c.Operation == mapping.OpCreateAttachment && c.CreateAttachment != nil:
		reply, err := tracker.CreateAttachment(ctx, caller, *c.CreateAttachment)
		return Answer{Document: reply.Document, Err: err}
	case c.Operation == mapping.OpUpdateAttachments && c.UpdateAttachments != nil:
		reply, err := tracker.UpdateAttachments(ctx, caller, *c.UpdateAttachments)
		return Answer{Document: reply.Document, Err: err}
	}
	return Answer{Err: errNoCall}
}

// Line is the request line by which a client asks for the call: method and
// target as interface.md has them, escaped, without any credential. Members of a
// body are not part of it.
func (c Call) Line() (method, target string) {
	switch {
	case c.FlagTypes != nil:
		return http.MethodGet, line(nil, "flag_type", c.FlagTypes.Product, c.FlagTypes.Component)
	case c.CreateFlagType != nil:
		return http.MethodPost, line(nil, "flag_type")
	case c.UpdateFlagTypes != nil:
		return http.MethodPut, line(nil, "flag_type", firstOf(idTexts(c.UpdateFlagTypes.IDs), c.UpdateFlagTypes.Names))
	case c.Attachments != nil:
		return http.MethodGet, c.attachmentsLine()
	case c.CreateAttachment != nil:
		return http.MethodPost, line(nil, "bug", firstOf(c.CreateAttachment.Named()), "attachment")
	case c.UpdateAttachments != nil:
		return http.MethodPut, line(nil, "bug", "attachment", firstOf(idTexts(c.UpdateAttachments.IDs)))
	}
	return "", ""
}

func (c Call) attachmentsLine() string {
	asked, query := *c.Attachments, url.Values{}
	for name, list := range map[string][]string{"include_fields": asked.Include, "exclude_fields": asked.Exclude} {
		if len(list) > 0 {
			query.Set(name, strings.Join(list, ","))
		}
	}
	segments := []string{"bug", "attachment", firstOf(asked.Attachments)}
	bugs, attachments := asked.Bugs, rest(asked.Attachments)
	if c.Operation == mapping.OpBugAttachments {
		segments = []string{"bug", firstOf(asked.Bugs), "attachment"}
		bugs, attachments = rest(asked.Bugs), asked.Attachments
	}
	query["ids"], query["attachment_ids"] = bugs, attachments
	return line(query, segments...)
}

// line joins segments that are not empty below /rest.
func line(query url.Values, segments ...string) string {
	var target strings.Builder
	target.WriteString("/rest")
	for _, segment := range segments {
		if segment != "" {
			target.WriteString("/" + url.PathEscape(segment))
		}
	}
	if text := query.Encode(); text != "" {
		target.WriteString("?" + text)
	}
	return target.String()
}

func idTexts(ids []int64) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return texts
}

func firstOf(lists ...[]string) string {
	if all := slices.Concat(lists...); len(all) > 0 {
		return all[0]
	}
	return ""
}

func rest(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list[1:]
}
