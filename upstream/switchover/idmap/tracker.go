package idmap

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"portico/mapping"
	"portico/upstream"
)

// Tracker is an upstream.Tracker and Peeker over one of two trackers. Its requests and replies have the ids and names that clients know,
// those of the inner one have native ids and names.
type Tracker struct {
	m     *Map
	side  Side
	inner upstream.Tracker
	// tagEnd ends the tag of a translated reply: the other tracker's is translated in another way, and so it is with other settings.
	tagEnd string
	// flagTypes are translated replies by the tag of the tracker's, for as long as an id without a pair is remembered as such.
	flagTypes *otter.Cache[string, translatedTypes]
}

// translatedTypes are the text and the tag of a translated reply.
type translatedTypes struct {
	text  []byte
	tag   string
	until time.Time
}

// maxTranslatedTypes bounds the memory for translated replies, in bytes.
const maxTranslatedTypes = 16 << 20

var _ upstream.Peeker = (*Tracker)(nil)

// Tracker decorates the tracker of one side, with its cache if it has one.
func (m *Map) Tracker(side Side, inner upstream.Tracker) *Tracker {
	return &Tracker{m, side, inner, "~" + string(side) + m.digest, otter.Must(&otter.Options[string, translatedTypes]{
		MaximumWeight: maxTranslatedTypes, Weigher: func(_ string, t translatedTypes) uint32 { return uint32(256 + len(t.text)) },
	})}
}

// FlagTypes implements upstream.Tracker.
func (t *Tracker) FlagTypes(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	return t.readFlagTypes(ctx, caller, request, false)
}

// Peek implements upstream.Peeker, with replies that were translated a moment ago.
func (t *Tracker) Peek(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	return t.readFlagTypes(ctx, caller, request, true)
}

func (t *Tracker) readFlagTypes(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest, peek bool) (mapping.FlagTypes, error) {
	request.Product = t.m.names.native(t.side, product, request.Product)
	request.Component = t.m.names.native(t.side, component, request.Component)
	read := t.inner.FlagTypes
	if peek {
		local, ok := t.inner.(upstream.Peeker)
		if !ok {
			return mapping.FlagTypes{}, upstream.ErrNotLocal
		}
		read = local.Peek
	}
	reply, err := read(ctx, caller, request)
	if err != nil {
		return reply, err
	}
	tag, now := reply.ETag, time.Now() // the tag of flag types stands for their text
	if known, ok := t.flagTypes.GetIfPresent(tag); ok && now.Before(known.until) {
		reply.ETag = known.tag
		return reply, reply.Replace(known.text)
	}
	if peek {
		return mapping.FlagTypes{}, errors.Join(upstream.ErrNotLocal, reply.Close())
	}
	if err = t.m.translateDocument(ctx, t.side, reply.Document, shapes[mapping.OpFlagTypes]); err == nil {
		err = reply.Stabilize() // which gives it its tag, too
	}
	if err != nil {
		return mapping.FlagTypes{}, errors.Join(err, reply.Close())
	}
	text, _ := reply.Load(t.m.split) // it is in memory
	t.flagTypes.Set(tag, translatedTypes{text, reply.ETag, now.Add(absentFor)})
	return reply, nil
}

// CreateFlagType implements upstream.Tracker.
func (t *Tracker) CreateFlagType(ctx context.Context, caller upstream.Caller, request mapping.FlagTypeCreate) (mapping.FlagTypeCreated, error) {
	document, err := t.call(ctx, caller, upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &request})
	return mapping.FlagTypeCreated{Document: document}, err
}

// UpdateFlagTypes implements upstream.Tracker.
func (t *Tracker) UpdateFlagTypes(ctx context.Context, caller upstream.Caller, request mapping.FlagTypeUpdate) (mapping.FlagTypesUpdated, error) {
	document, err := t.call(ctx, caller, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &request})
	return mapping.FlagTypesUpdated{Document: document}, err
}

// BugAttachments implements upstream.Tracker.
func (t *Tracker) BugAttachments(ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest) (mapping.Attachments, error) {
	document, err := t.call(ctx, caller, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &request})
	return mapping.Attachments{Document: document}, err
}

// Attachment implements upstream.Tracker.
func (t *Tracker) Attachment(ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest) (mapping.Attachments, error) {
	document, err := t.call(ctx, caller, upstream.Call{Operation: mapping.OpAttachment, Attachments: &request})
	return mapping.Attachments{Document: document}, err
}

// CreateAttachment implements upstream.Tracker.
func (t *Tracker) CreateAttachment(ctx context.Context, caller upstream.Caller, request mapping.AttachmentCreate) (mapping.AttachmentsCreated, error) {
	document, err := t.call(ctx, caller, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &request})
	return mapping.AttachmentsCreated{Document: document}, err
}

// UpdateAttachments implements upstream.Tracker.
func (t *Tracker) UpdateAttachments(ctx context.Context, caller upstream.Caller, request mapping.AttachmentUpdate) (mapping.AttachmentsUpdated, error) {
	document, err := t.call(ctx, caller, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &request})
	return mapping.AttachmentsUpdated{Document: document}, err
}

// call translates the request of a call, makes the call, and translates the reply.
func (t *Tracker) call(ctx context.Context, caller upstream.Caller, call upstream.Call) (*mapping.Document, error) {
	if err := refuseBugFlags(call); err != nil {
		return nil, err
	}
	if read := call.Attachments; read != nil && !strings.Contains(read.IfNoneMatch, t.tagEnd) {
		read.IfNoneMatch = ""
	} else if read != nil {
		read.IfNoneMatch = strings.ReplaceAll(read.IfNoneMatch, t.tagEnd, "")
	}
	request := &translation{Map: t.m, side: t.side}
	if err := request.translate(ctx, func() { request.call(call) }); err != nil {
		return nil, err
	}
	response := call.Make(ctx, t.inner, caller)
	if response.Err != nil {
		return response.Document, request.message(response.Err)
	}
	if tag := response.Document.ETag; tag != "" {
		text := strings.TrimRight(tag, `"`)
		response.Document.ETag = text + t.tagEnd + tag[len(text):]
	}
	err := t.m.translateDocument(ctx, t.side, response.Document, shapes[call.Operation])
	if failed, ok := errors.AsType[*mapping.Error](err); ok {
		failed.Unknown = call.Operation.IsWrite() // to the client, who does not learn its result
	}
	if err != nil {
		return nil, err
	}
	return response.Document, nil
}

// refuseBugFlags refuses a member of a dialect whose ids would reach the tracker as they are.
func refuseBugFlags(call upstream.Call) error {
	var extra mapping.Members
	if call.CreateAttachment != nil {
		extra = call.CreateAttachment.Extra
	} else if call.UpdateAttachments != nil {
		extra = call.UpdateAttachments.Extra
	}
	if extra.Get("bug_flags") == nil {
		return nil
	}
	return mapping.Inexpressible("The ids in \"bug_flags\" cannot be translated for the tracker. Change the flags of the bug by a request of their own.")
}
