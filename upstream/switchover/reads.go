package switchover

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// Do implements upstream.Tracker. The replies of both trackers to an attachment read are merged. The Cache of a reply is that of the
// tracker that responded.
func (s *Switchover) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	var document *mapping.Document
	var err error
	switch {
	case call.FlagTypes != nil:
		return s.flagTypes(ctx, caller, *call.FlagTypes, false)
	case call.Attachments != nil:
		document, err = s.attachments(ctx, caller, call.Operation, *call.Attachments)
	default:
		document, err = s.write(ctx, caller, call)
	}
	return mapping.Reply{Document: document}, err
}

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
	info := callInfo{caller: &caller, operation: mapping.OpFlagTypes}
	chosen, err := s.decide(ctx, rules, &info, object{kind: typesObject, product: request.Product, component: request.Component})
	if err != nil {
		return mapping.Reply{}, err
	}
	if s.forgotten(rules, &info, &chosen) {
		if peek {
			return mapping.Reply{}, upstream.ErrNotLocal
		}
		s.recall(ctx, rules, &info)
	}
	chosen = s.afterOwnWrites(ctx, rules, &info, chosen)
	began, tracker := time.Now(), rules.trackers[chosen.side]
	reply, err := upstream.ReadFlagTypes(ctx, tracker, caller, request, peek)
	if peek && errors.Is(err, upstream.ErrNotLocal) {
		return reply, err
	}
	s.count(rules, mapping.OpFlagTypes, chosen)
	if chosen.phase.Compares() {
		shown := request // a copy, so that only a compared request is put on the heap
		response := upstream.Response{Document: reply.Document, Err: err, FromCache: reply.Cache != nil && reply.Cache.Hit, Took: time.Since(began)}
		s.show(ctx, rules, caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &shown}, chosen.side, &response)
		reply.Document = response.Document
	}
	return reply, err
}

func (s *Switchover) attachments(
	ctx context.Context, caller upstream.Caller, operation mapping.Operation, request mapping.AttachmentsRequest,
) (*mapping.Document, error) {
	rules := s.rules.Load()
	info := callInfo{caller: &caller, operation: operation}
	document, err := s.attachmentsOnce(ctx, rules, &info, request)
	if failed, ok := errors.AsType[*mapping.Error](err); !ok || failed.Reason != upstream.ReasonUnmapped || failed.Status != http.StatusNotFound || len(request.Attachments) == 0 {
		return document, err
	}
	// The tracker may not have got its copy yet, or just now.
	if info.uncopied, err = s.inJournal(ctx, "", request.Attachments...); err != nil {
		return nil, tryLater("The store of Portico does not respond, so it is not known which tracker has this. Try again.", err)
	}
	return s.attachmentsOnce(ctx, rules, &info, request)
}

// attachmentsOnce asks each tracker for what it responds for.
func (s *Switchover) attachmentsOnce(ctx context.Context, rules *ruleSet, info *callInfo, request mapping.AttachmentsRequest) (*mapping.Document, error) {
	caller, operation := *info.caller, info.operation
	parts, err := s.parts(ctx, rules, info, request)
	if err != nil {
		return nil, err
	}
	for i := range parts {
		s.count(rules, operation, parts[i].routes[0])
	}
	if len(parts) > 1 {
		s.split.Add(1)
	}
	responses := make([]upstream.Response, len(parts))
	inParallel(len(parts), len(parts), func(i int) {
		p := &parts[i]
		at := p.routes[0].side
		call := upstream.Call{Operation: p.operation(operation), Attachments: &p.request}
		responses[i] = call.Make(ctx, rules.trackers[at], caller)
		if allCompared(p.routes) {
			s.show(ctx, rules, caller, call, at, &responses[i])
		}
	})
	if len(parts) == 1 {
		return responses[0].Document, responses[0].Err
	}
	return merged(rules, request, responses)
}

// part is what one tracker is asked for of a read.
type part struct {
	request mapping.AttachmentsRequest
	routes  []route
}

// parts sorts the objects of a read by the tracker that responds for them, the old one first.
func (s *Switchover) parts(ctx context.Context, rules *ruleSet, info *callInfo, request mapping.AttachmentsRequest) ([]part, error) {
	objects := slices.Concat(objectsOf(request.Bugs, bugNamed), objectsOf(request.Attachments, attachmentNamed))
	routes, err := s.decideAll(ctx, rules, info, objects)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, lookupsTime)
	defer cancel()
	if slices.ContainsFunc(routes, func(chosen route) bool { return s.forgotten(rules, info, &chosen) }) {
		s.recall(limited, rules, info)
	}
	parts := make([]part, 2)
	for i, chosen := range routes {
		chosen = s.afterOwnWrites(limited, rules, info, chosen)
		p := &parts[chosen.side]
		p.routes = append(p.routes, chosen)
		if i < len(request.Bugs) {
			p.request.Bugs = append(p.request.Bugs, request.Bugs[i])
		} else {
			p.request.Attachments = append(p.request.Attachments, request.Attachments[i-len(request.Bugs)])
		}
		p.request.Include, p.request.Exclude = request.Include, request.Exclude
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return len(p.routes) == 0 })
	if len(parts) == 1 {
		parts[0].request = request
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
func merged(rules *ruleSet, request mapping.AttachmentsRequest, responses []upstream.Response) (*mapping.Document, error) {
	failed := cmp.Or(responses[0].Err, responses[1].Err)
	if failed == nil {
		reply, err := mapping.MergeAttachments(request, []*mapping.Document{responses[0].Document, responses[1].Document}, rules.Split)
		if err != nil {
			err = &mapping.StreamError{Err: err}
		}
		return reply, err
	}
	for _, response := range responses {
		if response.Err == nil {
			_ = response.Document.Close()
		}
	}
	return nil, failed
}

// allCompared reports whether all objects are in a phase that compares: of another
// one there may be nothing to compare with.
func allCompared(routes []route) bool {
	return !slices.ContainsFunc(routes, func(one route) bool { return !one.phase.Compares() })
}

// show gives a response to the shadow and takes back its document.
func (s *Switchover) show(ctx context.Context, rules *ruleSet, caller upstream.Caller, call upstream.Call, by side, response *upstream.Response) {
	sides := upstream.Sides{Serving: s.names[by], Compared: s.names[by.other()]}
	response.Document = rules.Shadow.Answered(ctx, caller, call, sides, *response)
}
