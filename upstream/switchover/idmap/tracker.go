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

// tracker is an upstream.Tracker and Peeker over one of two trackers. Its requests and replies have the ids and names that clients know,
// those of the inner one have native ids and names.
type tracker struct {
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

var _ upstream.Peeker = (*tracker)(nil)

// Tracker decorates the tracker with a name, with its cache if it has one.
func (m *Map) Tracker(name string, inner upstream.Tracker) upstream.Tracker {
	if m == nil {
		return inner
	}
	side := m.sideOf(name)
	return &tracker{m, side, inner, "~" + string(side) + m.digest, otter.Must(&otter.Options[string, translatedTypes]{
		MaximumWeight: maxTranslatedTypes, Weigher: func(_ string, t translatedTypes) uint32 { return uint32(256 + len(t.text)) },
	})}
}

// Do implements upstream.Tracker.
func (t *tracker) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	if call.FlagTypes != nil {
		return t.readFlagTypes(ctx, caller, *call.FlagTypes, false)
	}
	document, err := t.call(ctx, caller, call.Copy())
	return mapping.Reply{Document: document}, err
}

// Peek implements upstream.Peeker, with replies that were translated a moment ago.
func (t *tracker) Peek(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest) (mapping.Reply, error) {
	return t.readFlagTypes(ctx, caller, request, true)
}

func (t *tracker) readFlagTypes(ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest, peek bool) (mapping.Reply, error) {
	request.Product = t.m.names.native(t.side, product, request.Product)
	request.Component = t.m.names.native(t.side, component, request.Component)
	reply, err := upstream.ReadFlagTypes(ctx, t.inner, caller, request, peek)
	if err != nil {
		return reply, err
	}
	tag, now := reply.ETag, time.Now() // the tag of flag types stands for their text
	if known, ok := t.flagTypes.GetIfPresent(tag); ok && now.Before(known.until) {
		reply.ETag = known.tag
		return reply, reply.Replace(known.text)
	}
	if peek {
		return mapping.Reply{}, errors.Join(upstream.ErrNotLocal, reply.Close())
	}
	if err = t.m.translateDocument(ctx, t.side, reply.Document, mapping.OpFlagTypes); err == nil {
		err = reply.Stabilize() // which gives it its tag, too
	}
	if err != nil {
		return mapping.Reply{}, errors.Join(err, reply.Close())
	}
	text, _ := reply.Load(t.m.o.Split) // it is in memory
	t.flagTypes.Set(tag, translatedTypes{text, reply.ETag, now.Add(absentFor)})
	return reply, nil
}

// call translates the request of a call in place, makes the call, and translates the reply.
func (t *tracker) call(ctx context.Context, caller upstream.Caller, call upstream.Call) (*mapping.Document, error) {
	if read := call.Attachments; read != nil {
		before := read.IfNoneMatch
		if read.IfNoneMatch = strings.ReplaceAll(before, t.tagEnd, ""); read.IfNoneMatch == before {
			read.IfNoneMatch = "" // no tag of this tracker
		}
	}
	request, err := t.m.translate(ctx, t.side, func(r *translation) { r.call(call) })
	if err != nil {
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
	err = t.m.translateDocument(ctx, t.side, response.Document, call.Operation)
	if failed, ok := errors.AsType[*mapping.Error](err); ok {
		failed.Unknown = call.Operation.IsWrite() // to the client, who does not learn its result
	}
	if err != nil {
		return nil, err
	}
	return response.Document, nil
}
