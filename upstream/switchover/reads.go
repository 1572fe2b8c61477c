package switchover

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// FlagTypes implements upstream.Tracker. The reply's Cache is that of the tracker
// that answered.
func (s *Switchover) FlagTypes(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest,
) (mapping.FlagTypes, error) {
	t := s.table.Load()
	q := question{caller: &caller, operation: mapping.OpFlagTypes}
	made, err := s.read(ctx, t, &q, object{kind: typesObject, product: request.Product, component: request.Component})
	if err != nil {
		return mapping.FlagTypes{}, err
	}
	// Whoever asks with a context that has ended takes what is at hand, or else asks
	// again: then only the second call counts.
	handy := ctx.Err() != nil
	if !made.phase.Compares() || s.options.Shadow == nil {
		reply, err := s.trackers[made.side].FlagTypes(ctx, caller, request)
		if err == nil || !handy {
			s.count(t, mapping.OpFlagTypes, made)
		}
		return reply, err
	}
	reply, err := s.comparedTypes(ctx, caller, request, made.side, handy)
	if err == nil || !handy {
		s.count(t, mapping.OpFlagTypes, made)
	}
	return reply, err
}

// comparedTypes is apart from FlagTypes so that the request need not outlive a
// call there.
func (s *Switchover) comparedTypes(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest, to side, handy bool,
) (mapping.FlagTypes, error) {
	began := time.Now()
	reply, err := s.trackers[to].FlagTypes(ctx, caller, request)
	if err != nil && handy {
		return reply, err
	}
	answer := upstream.Answer{
		Document: reply.Document, Err: err, Took: time.Since(began),
		FromCache: reply.Cache != nil && reply.Cache.Hit,
	}
	s.show(ctx, caller, upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &request}, to, &answer)
	reply.Document = answer.Document
	return reply, answer.Err
}

// read decides for one object of a read.
func (s *Switchover) read(ctx context.Context, t *table, q *question, o object) (choice, error) {
	made, err := s.decide(ctx, t, q, o)
	if err != nil {
		return choice{}, err
	}
	return s.follow(ctx, t, q, made), nil
}

// BugAttachments implements upstream.Tracker. What both trackers answer is merged.
func (s *Switchover) BugAttachments(
	ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest,
) (mapping.Attachments, error) {
	return s.attachments(ctx, caller, mapping.OpBugAttachments, request)
}

// Attachment implements upstream.Tracker. What both trackers answer is merged.
func (s *Switchover) Attachment(
	ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest,
) (mapping.Attachments, error) {
	return s.attachments(ctx, caller, mapping.OpAttachment, request)
}

func (s *Switchover) attachments(
	ctx context.Context, caller upstream.Caller, operation mapping.Operation, request mapping.AttachmentsRequest,
) (mapping.Attachments, error) {
	t := s.table.Load()
	q := question{caller: &caller, operation: operation}
	parts, err := s.parts(ctx, t, &q, request)
	if err != nil {
		return mapping.Attachments{}, err
	}
	for i := range parts {
		s.count(t, operation, parts[i].made[0])
	}
	if len(parts) == 1 {
		answer := s.part(ctx, caller, &parts[0])
		return mapping.Attachments{Document: answer.Document}, answer.Err
	}
	s.split.Add(1)
	return s.merged(ctx, caller, request, parts)
}

// part is what one tracker is asked of a read.
type part struct {
	call upstream.Call
	side side
	made []choice
}

// parts sorts the objects of a read by the tracker that answers for them, the
// part with the first object first.
func (s *Switchover) parts(ctx context.Context, t *table, q *question, request mapping.AttachmentsRequest) ([]part, error) {
	var bySide [2]mapping.AttachmentsRequest
	var made [2][]choice
	first := -1
	all := asked(q.operation, &request)
	ctx = s.foresee(ctx, t, q, objectsOf(all))
	for _, o := range all {
		one, err := s.read(ctx, t, q, o.object)
		if err != nil {
			return nil, err
		}
		if first < 0 {
			first = int(one.side)
		}
		made[one.side] = append(made[one.side], one)
		if own := &bySide[one.side]; o.bug {
			own.Bugs = append(own.Bugs, o.ref)
		} else {
			own.Attachments = append(own.Attachments, o.ref)
		}
	}
	if first < 0 {
		first = int(t.home)
		made[first] = []choice{t.choose(len(t.rules)-1, q, object{})}
	}
	if len(made[1-first]) == 0 {
		return []part{{upstream.Call{Operation: q.operation, Attachments: &request}, side(first), made[first]}}, nil
	}
	var parts []part
	for _, side := range []side{side(first), side(first).other()} {
		own := bySide[side]
		own.Include, own.Exclude = request.Include, request.Exclude
		parts = append(parts, part{upstream.Call{Operation: operationFor(q.operation, &own), Attachments: &own}, side, made[side]})
	}
	return parts, nil
}

// askedObject is one object of a read as its request has it.
type askedObject struct {
	object object
	ref    string
	bug    bool
}

// objectsOf are the objects of a read with several; one alone needs no list.
func objectsOf(all []askedObject) []object {
	if len(all) < 2 {
		return nil
	}
	objects := make([]object, len(all))
	for i := range all {
		objects[i] = all[i].object
	}
	return objects
}

// asked lists the objects of a read, those of the path's kind first.
func asked(operation mapping.Operation, request *mapping.AttachmentsRequest) []askedObject {
	bugs := make([]askedObject, 0, len(request.Bugs)+len(request.Attachments))
	for _, ref := range request.Bugs {
		bugs = append(bugs, askedObject{bugNamed(ref), ref, true})
	}
	attachments := make([]askedObject, 0, len(request.Attachments))
	for _, ref := range request.Attachments {
		id, _ := number(strings.TrimSpace(ref))
		attachments = append(attachments, askedObject{object{kind: attachmentObject, id: id}, ref, false})
	}
	if operation == mapping.OpAttachment {
		return append(attachments, bugs...)
	}
	return append(bugs, attachments...)
}

// operationFor is the operation that asks for a part: the whole request's, unless
// nothing of the kind in its path is left.
func operationFor(operation mapping.Operation, part *mapping.AttachmentsRequest) mapping.Operation {
	switch {
	case len(part.Bugs) == 0:
		return mapping.OpAttachment
	case len(part.Attachments) == 0:
		return mapping.OpBugAttachments
	default:
		return operation
	}
}

// part asks one tracker and shows its answer to the shadow.
func (s *Switchover) part(ctx context.Context, caller upstream.Caller, p *part) upstream.Answer {
	answer := p.call.Make(ctx, s.trackers[p.side], caller)
	if allCompared(p.made) {
		s.show(ctx, caller, p.call, p.side, &answer)
	}
	return answer
}

// merged asks both trackers at once and merges what they say. If one fails all
// fails; if both do, the first part's error counts.
func (s *Switchover) merged(
	ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest, parts []part,
) (mapping.Attachments, error) {
	answers := make([]upstream.Answer, len(parts))
	mistakes := make([]any, len(parts))
	var both sync.WaitGroup
	for i := range parts {
		both.Go(func() {
			defer func() { mistakes[i] = recover() }()
			answers[i] = s.part(ctx, caller, &parts[i])
		})
	}
	both.Wait()
	for _, mistake := range mistakes {
		if mistake != nil {
			panic(mistake) // where it ends this request and no more
		}
	}
	documents := make([]*mapping.Document, len(answers))
	var failed error
	for i, answer := range answers {
		documents[i] = answer.Document
		if failed == nil {
			failed = answer.Err
		}
	}
	if failed == nil {
		reply, err := mapping.MergeAttachments(request, documents, s.options.Split)
		return reply, unmerged(err)
	}
	for i, document := range documents {
		if answers[i].Err == nil {
			failed = closed(failed, document)
		}
	}
	return mapping.Attachments{}, failed
}

// closed closes a document that nobody wants, and keeps the error that matters.
func closed(failed error, document *mapping.Document) error {
	if err := document.Close(); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}
