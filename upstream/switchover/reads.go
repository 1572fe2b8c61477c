package switchover

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
)

// Peek implements upstream.Peeker. Only a read that it serves or refuses is counted and compared.
func (s *Switchover) Peek(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest,
) (mapping.Reply, error) {
	return s.flagTypes(ctx, caller, request, true)
}

func (s *Switchover) flagTypes(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest, peek bool,
) (mapping.Reply, error) {
	rules := s.rules.Load()
	info := callInfo{ruleSet: rules, caller: &caller, operation: mapping.OpFlagTypes}
	chosen, err := s.decide(ctx, &info, object{kind: typesObject, product: request.Product, component: request.Component})
	if err != nil {
		return mapping.Reply{}, err
	}
	routes := [...]route{chosen}
	if err := s.followOwnWrites(ctx, &info, routes[:], peek); err != nil {
		return mapping.Reply{}, err
	}
	chosen = routes[0]
	began := time.Now()
	reply, err := upstream.ReadFlagTypes(ctx, info.Trackers[s.names[chosen.side]], caller, request, peek)
	if peek && errors.Is(err, upstream.ErrNotLocal) {
		return reply, err
	}
	s.count(rules, mapping.OpFlagTypes, chosen) // what count takes would put info on the heap
	if chosen.phase.Compares() {
		shown := request // a copy, so that only a compared request is put on the heap
		call := upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &shown}
		reply.Document = s.show(ctx, &info, call, routes[:], upstream.NewResponse(reply, err, began))
	}
	return reply, err
}

func (s *Switchover) attachments(ctx context.Context, caller upstream.Caller, call upstream.Call) (*mapping.Document, error) {
	info := callInfo{ruleSet: s.rules.Load(), caller: &caller, operation: call.Operation}
	named := call.Attachments.Attachments
	isLast := len(named) == 0
	document, err := s.attachmentsOnce(ctx, &info, *call.Attachments, isLast)
	if isLast || !isUnpaired(err) {
		return document, err
	}
	// The tracker may not have got its copy yet, or just now.
	if info.uncopied, err = s.inJournal(ctx, "", named...); err != nil {
		return nil, mapping.TryLater(mapping.ReasonSwitchover, err,
			"The store of Portico does not respond, so it is not known which tracker has this. Try again.")
	}
	return s.attachmentsOnce(ctx, &info, *call.Attachments, true)
}

// isUnpaired reports whether an error says that an id has no pair at the tracker that should respond.
func isUnpaired(err error) bool {
	failed, ok := errors.AsType[*mapping.Error](err)
	return ok && failed.Reason == upstream.ReasonUnmapped && failed.Status == http.StatusNotFound
}

// attachmentsOnce asks each tracker for what it responds for. Unless it is the last time, an id without a pair is not compared: the
// client does not get that response.
func (s *Switchover) attachmentsOnce(ctx context.Context, info *callInfo, request mapping.AttachmentsRequest, isLast bool) (*mapping.Document, error) {
	parts, err := s.parts(ctx, info, request)
	if err != nil {
		return nil, err
	}
	responses := make([]upstream.Response, len(parts))
	inParallel(len(parts), len(parts), func(i int) {
		p := &parts[i]
		call := upstream.Call{Operation: p.operation(info.operation), Attachments: &p.request}
		responses[i] = call.Make(ctx, info.Trackers[s.names[p.routes[0].side]], *info.caller)
		if isLast || !isUnpaired(responses[i].Err) {
			responses[i].Document = s.show(ctx, info, call, p.routes, responses[i])
		}
	})
	if len(parts) == 1 {
		return responses[0].Document, responses[0].Err
	}
	s.split.Add(1)
	return merged(responses, info.Split)
}

// part is what one tracker is asked for of a read.
type part struct {
	request mapping.AttachmentsRequest
	routes  []route
}

// parts sorts the objects of a read by the tracker that responds for them, the old one first.
func (s *Switchover) parts(ctx context.Context, info *callInfo, request mapping.AttachmentsRequest) ([]part, error) {
	objects := slices.Concat(objectsOf(request.Bugs, bugNamed), objectsOf(request.Attachments, attachmentNamed))
	routes, err := s.decideAll(ctx, info, objects)
	if err != nil {
		return nil, err
	}
	_ = s.followOwnWrites(ctx, info, routes, false) // only a peek fails
	var parts []part
	for _, at := range []side{oldSide, newSide} {
		p := part{request: request}
		p.request.Bugs, p.request.Attachments = nil, nil
		for i, chosen := range routes {
			switch {
			case chosen.side != at:
				continue
			case i < len(request.Bugs):
				p.request.Bugs = append(p.request.Bugs, request.Bugs[i])
			default:
				p.request.Attachments = append(p.request.Attachments, request.Attachments[i-len(request.Bugs)])
			}
			p.routes = append(p.routes, chosen)
		}
		if len(p.routes) < len(routes) {
			p.request.IfNoneMatch = "" // no tag of a part
		}
		if len(p.routes) > 0 {
			parts = append(parts, p)
			s.count(info.ruleSet, info.operation, p.routes[0])
		}
	}
	return parts, nil
}

// operation is the one that asks for the part: the whole request's, unless nothing of the kind in its path is left.
func (p *part) operation(whole mapping.Operation) mapping.Operation {
	switch {
	case len(p.request.Bugs) == 0:
		return mapping.OpAttachment
	case len(p.request.Attachments) == 0:
		return mapping.OpBugAttachments
	default:
		return whole
	}
}

// merged makes one reply of two. If one part failed all fails; if both did, the first part's error counts.
func merged(responses []upstream.Response, split jsonblob.SplitOptions) (*mapping.Document, error) {
	failed := cmp.Or(responses[0].Err, responses[1].Err)
	if failed == nil {
		reply, err := mapping.MergeAttachments([]*mapping.Document{responses[0].Document, responses[1].Document}, split)
		if err != nil {
			err = &mapping.StreamError{Err: err}
		}
		return reply, err
	}
	for _, response := range responses {
		_ = response.Document.Close() // nil for a part that failed
	}
	return nil, failed
}

// show gives a response to the shadow, if all objects are in a phase that compares: of another one there may be nothing to compare with. It returns
// the document for the client.
func (s *Switchover) show(ctx context.Context, info *callInfo, call upstream.Call, routes []route, response upstream.Response) *mapping.Document {
	if slices.ContainsFunc(routes, func(one route) bool { return !one.phase.Compares() }) {
		return response.Document
	}
	by := routes[0].side
	return info.Shadow.Answered(ctx, *info.caller, call, upstream.Sides{Serving: s.names[by], Compared: s.names[by.other()]}, response)
}
