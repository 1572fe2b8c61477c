package switchover

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/upstream"
)

// decideAll decides for each of several objects.
func (s *Switchover) decideAll(ctx context.Context, t *table, q *question, objects []object) ([]choice, error) {
	ctx = s.foresee(ctx, t, q, objects)
	made := make([]choice, 0, max(1, len(objects)))
	for _, o := range objects {
		one, err := s.decide(ctx, t, q, o)
		if err != nil {
			return nil, err
		}
		made = append(made, one)
	}
	if len(made) == 0 {
		made = append(made, t.choose(len(t.rules)-1, q, object{}))
	}
	return made, nil
}

// decideWrite decides for a write, which only one tracker may carry out.
func (s *Switchover) decideWrite(ctx context.Context, t *table, q *question, objects []object) ([]choice, error) {
	made, err := s.decideAll(ctx, t, q, objects)
	if err != nil {
		return nil, err
	}
	return s.undivided(made)
}

// undivided refuses what was decided for a write where it needs both trackers.
func (s *Switchover) undivided(made []choice) ([]choice, error) {
	withAbsent(made)
	if !oneSide(made) {
		return nil, divided(made, s.names)
	}
	return made, nil
}

// decideAttach decides for a new attachment. Where the bug of the path is none of the others, it wins and they are not
// written, so they do not count. The call is settled then, or the tracker might find otherwise a moment later.
func (s *Switchover) decideAttach(ctx context.Context, t *table, q *question, call *upstream.Call) ([]choice, error) {
	create := *call.CreateAttachment
	made, err := s.decideAll(ctx, t, q, bugsNamed(create.Named()))
	if err != nil {
		return nil, err
	}
	path := made[0].bugID()
	mayBePath := func(c choice) bool { return c.bugID() == 0 || c.bugID() == path }
	if create.PathBug != "" && path != 0 && !slices.ContainsFunc(made[1:], mayBePath) {
		create.Settle(false)
		call.CreateAttachment, made = &create, made[:1]
	}
	return s.undivided(made)
}

// withAbsent sends what no tracker has where the first of the other objects goes,
// so that the tracker says what is missing.
func withAbsent(made []choice) {
	first := slices.IndexFunc(made, func(c choice) bool { return !c.absent })
	if first < 0 {
		return
	}
	for i := range made {
		if made[i].absent {
			made[i].side, made[i].phase = made[first].side, made[first].phase
		}
	}
}

// decideCall decides for the objects of a write.
func (s *Switchover) decideCall(ctx context.Context, t *table, q *question, call *upstream.Call) ([]choice, error) {
	switch {
	case call.CreateFlagType != nil:
		return s.decideCreate(ctx, t, q, call.CreateFlagType)
	case call.UpdateFlagTypes != nil:
		return s.decideUpdate(ctx, t, q, call.UpdateFlagTypes)
	case call.CreateAttachment != nil:
		return s.decideAttach(ctx, t, q, call)
	case call.UpdateAttachments != nil:
		return s.decideWrite(ctx, t, q, attachmentsNumbered(call.UpdateAttachments.IDs))
	default:
		return nil, errNoCall
	}
}

// write sends a write to the one tracker that it belongs to. created takes what a
// reply says of new objects.
func (s *Switchover) write(
	ctx context.Context, caller upstream.Caller, call upstream.Call, created func(*mapping.Document) []object,
) (*mapping.Document, error) {
	q := &question{caller: &caller, operation: call.Operation, write: true}
	t, made, leave, err := s.begin(ctx, func(ctx context.Context, t *table) ([]choice, error) { return s.decideCall(ctx, t, q, &call) })
	if err != nil {
		s.countRefusal(q.operation, err)
		return nil, err
	}
	to, answer := made[0].side, upstream.Answer{Err: context.Canceled} // as long as there is none
	defer func() { s.landed(leave, len(made), answer.Err) }()
	s.count(t, q.operation, made[0])
	answer = call.Make(ctx, s.trackers[to], caller)
	if answer.Err == nil || !refused(answer.Err) {
		s.remember(q, made, s.names[to], created, answer.Document)
	}
	if allCompared(made) {
		s.show(ctx, caller, call, to, &answer)
	}
	return answer.Document, answer.Err
}

// remember notes what was written for the reads that follow.
func (s *Switchover) remember(q *question, made []choice, tracker string, created func(*mapping.Document) []object, document *mapping.Document) {
	if s.options.Follow < 0 || q.caller.Anonymous() {
		return
	}
	now := s.now()
	writes := make([]written, 0, len(made))
	for i := range made {
		if o := made[i].object.remembered(); o.plausible() {
			writes = append(writes, written{object: o, tracker: tracker, at: now, bug: made[i].bugID()})
		}
	}
	if created != nil && document != nil {
		for _, o := range created(document) {
			writes = append(writes, written{object: o, tracker: tracker, at: now, made: true, bug: onlyBug(made)})
		}
	}
	s.memory.note(s.who(q), writes...)
}

// onlyBug is the bug that new attachments hang on where it is one that is known.
func onlyBug(made []choice) int64 {
	if len(made) > 1 {
		return 0
	}
	return made[0].bugID()
}

// allCompared tells whether all objects are in a phase that compares: of another
// one there may be nothing to compare with.
func allCompared(made []choice) bool {
	for i := range made {
		if !made[i].phase.Compares() {
			return false
		}
	}
	return true
}

// show tells the shadow of an answer and takes back its document.
func (s *Switchover) show(ctx context.Context, caller upstream.Caller, call upstream.Call, answered side, answer *upstream.Answer) {
	if s.options.Shadow == nil {
		return
	}
	sides := upstream.Sides{Answered: s.names[answered], Other: s.names[answered.other()]}
	answer.Document = s.options.Shadow.Answered(ctx, caller, call, sides, *answer)
}

// newAttachments reads the ids of a create's answer.
func (s *Switchover) newAttachments(document *mapping.Document) []object {
	text, err := document.Load(s.options.Split)
	if err != nil {
		return nil
	}
	var answer struct {
		IDs []int64 `json:"ids"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		s.options.Logger.Warn("the ids of new attachments could not be read, so reads of them do not follow", "cause", err)
		return nil
	}
	return attachmentsNumbered(answer.IDs)
}

// CreateFlagType implements upstream.Tracker.
func (s *Switchover) CreateFlagType(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypeCreate,
) (mapping.FlagTypeCreated, error) {
	document, err := s.write(ctx, caller, upstream.Call{Operation: mapping.OpCreateFlagType, CreateFlagType: &request}, nil)
	return mapping.FlagTypeCreated{Document: document}, err
}

// UpdateFlagTypes implements upstream.Tracker.
func (s *Switchover) UpdateFlagTypes(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypeUpdate,
) (mapping.FlagTypesUpdated, error) {
	document, err := s.write(ctx, caller, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &request}, nil)
	return mapping.FlagTypesUpdated{Document: document}, err
}

// CreateAttachment implements upstream.Tracker.
func (s *Switchover) CreateAttachment(
	ctx context.Context, caller upstream.Caller, request mapping.AttachmentCreate,
) (mapping.AttachmentsCreated, error) {
	document, err := s.write(ctx, caller, upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &request}, s.newAttachments)
	return mapping.AttachmentsCreated{Document: document}, err
}

// UpdateAttachments implements upstream.Tracker.
func (s *Switchover) UpdateAttachments(
	ctx context.Context, caller upstream.Caller, request mapping.AttachmentUpdate,
) (mapping.AttachmentsUpdated, error) {
	document, err := s.write(ctx, caller, upstream.Call{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &request}, nil)
	return mapping.AttachmentsUpdated{Document: document}, err
}
