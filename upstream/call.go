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
// maker of the request owns the payload of an attachment create.
type Call struct {
	Operation mapping.Operation

	FlagTypes         *mapping.FlagTypesRequest
	CreateFlagType    *mapping.FlagTypeCreate
	UpdateFlagTypes   *mapping.FlagTypeUpdate
	Attachments       *mapping.AttachmentsRequest // of both attachment reads
	CreateAttachment  *mapping.AttachmentCreate
	UpdateAttachments *mapping.AttachmentUpdate

	// Fresh has a flag type read ask the tracker even if there is a cached response, as the client's Cache-Control: no-cache demands.
	Fresh bool
	// MaxResponse limits the response to so many bytes, if it is not 0: the tracker's client may abandon a longer one.
	MaxResponse int64
	// Guard, if not nil, is asked before the request, and each part of its body, is sent. After an error the rest is not sent.
	Guard func() error
}

// ReasonJournal is the reason of errors about writes that cannot be recorded for the other tracker.
const ReasonJournal mapping.Reason = "journal-unavailable"

// Sides are the names of the two trackers of a comparison. The client gets the response of Serving; that of Compared is
// compared with it.
type Sides struct {
	Serving  string `json:"answered"`
	Compared string `json:"other"`
}

// Response is the reply or the error of one call.
type Response struct {
	Document *mapping.Document
	Err      error
	// FromCache reports whether the response came from the cache.
	FromCache bool
	// Took is the time until the response began.
	Took time.Duration
}

// Shadow gets the calls that one tracker served, to compare its responses with those of another. It neither fails nor
// delays a call.
type Shadow interface {
	// Answered is called before the client gets the response. It may wrap the document. The caller must use the returned
	// document, which is nil if the response has none. It must not read a document to its end.
	Answered(ctx context.Context, caller Caller, call Call, sides Sides, response Response) *mapping.Document
	// Wrote is called before and after each write, compared or not. It explains
	// differences that go away: a candidate may get the write later.
	Wrote(call Call)
}

// Copy returns a call whose request may be changed without changing that of c. What the request points to is shared.
func (c Call) Copy() Call {
	c.FlagTypes, c.CreateFlagType, c.UpdateFlagTypes = copyOf(c.FlagTypes), copyOf(c.CreateFlagType), copyOf(c.UpdateFlagTypes)
	c.Attachments, c.CreateAttachment, c.UpdateAttachments = copyOf(c.Attachments), copyOf(c.CreateAttachment), copyOf(c.UpdateAttachments)
	return c
}

func copyOf[T any](request *T) *T {
	if request == nil {
		return nil
	}
	return new(*request)
}

// Make makes the call and measures it.
func (c Call) Make(ctx context.Context, tracker Tracker, caller Caller) Response {
	began := time.Now()
	reply, err := tracker.Do(ctx, caller, c)
	return NewResponse(reply, err, began)
}

// NewResponse is the response to a call that began at a time and has just ended.
func NewResponse(reply mapping.Reply, err error, began time.Time) Response {
	return Response{Document: reply.Document, Err: err, FromCache: reply.Cache != nil && reply.Cache.Hit, Took: time.Since(began)}
}

// NotWritten reports whether an error says for certain that nothing was written. Of anything else that may have been sent the
// outcome is unknown. A write whose ids cannot be translated is not sent; where those of its response cannot, the error is Unknown.
func NotWritten(err error) bool {
	refusal, ok := errors.AsType[*mapping.Error](err)
	return ok && !refusal.Unknown && (refusal.Status < 500 || refusal.Reason == ReasonUnmapped || NotSent(err))
}

// NotSent reports whether an error says for certain that the tracker did not get the request. It may get a later one.
func NotSent(err error) bool {
	refusal, ok := errors.AsType[*mapping.Error](err)
	return ok && !refusal.Unknown && slices.Contains([]mapping.Reason{
		mapping.ReasonUnreachable, mapping.ReasonBreakerOpen, mapping.ReasonOverload, mapping.ReasonInexpressive, mapping.ReasonSwitchover,
		ReasonJournal,
	}, refusal.Reason)
}

// RefusesLogin reports whether an error says that a tracker does not accept the caller's credential, so
// that it would accept nothing else with it either (tracker-behaviour.md section 11).
func RefusesLogin(err error) bool {
	refusal, ok := errors.AsType[*mapping.Error](err)
	return ok && (refusal.Code >= 300 && refusal.Code <= 307 && refusal.Code != 304 || refusal.Code == mapping.CodeLoginRequired)
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
		segments, query := AttachmentsAddress(c.Operation, *c.Attachments)
		return http.MethodGet, line(query, segments...)
	case c.CreateAttachment != nil:
		return http.MethodPost, line(nil, "bug", firstOf(c.CreateAttachment.Named()), "attachment")
	case c.UpdateAttachments != nil:
		return http.MethodPut, line(nil, "bug", "attachment", firstOf(idTexts(c.UpdateAttachments.IDs)))
	}
	return "", ""
}

// AttachmentsAddress returns the segments of the path, and the query, by which a client makes one of the two attachment reads.
func AttachmentsAddress(operation mapping.Operation, request mapping.AttachmentsRequest) (segments []string, query url.Values) {
	bugs, attachments := request.Bugs, request.Attachments
	if operation == mapping.OpBugAttachments {
		segments, bugs = []string{"bug", bugs[0], "attachment"}, bugs[1:]
	} else {
		segments, attachments = []string{"bug", "attachment", attachments[0]}, attachments[1:]
	}
	query = url.Values{"ids": bugs, "attachment_ids": attachments}
	for name, list := range map[string][]string{"include_fields": request.Include, "exclude_fields": request.Exclude} {
		if len(list) > 0 {
			query.Set(name, strings.Join(list, ",")) // names of fields hold no comma (tracker-behaviour.md section 5)
		}
	}
	return segments, query
}

// line joins segments that are not empty below /rest.
func line(query url.Values, segments ...string) string {
	path := []string{"/rest"}
	for _, segment := range segments {
		if segment != "" {
			path = append(path, url.PathEscape(segment))
		}
	}
	target := strings.Join(path, "/")
	if text := query.Encode(); text != "" {
		target += "?" + text
	}
	return target
}

func idTexts(ids []int64) (texts []string) {
	for _, id := range ids {
		texts = append(texts, strconv.FormatInt(id, 10))
	}
	return texts
}

// firstOf returns the first of all texts, or an empty one if there are no texts.
func firstOf(lists ...[]string) string { return append(slices.Concat(lists...), "")[0] }
