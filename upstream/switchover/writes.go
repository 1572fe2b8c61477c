package switchover

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/journal"
)

// write sends a write to the one tracker that it belongs to.
func (s *Switchover) write(ctx context.Context, caller upstream.Caller, call upstream.Call) (*mapping.Document, error) {
	info := &callInfo{caller: &caller, operation: call.Operation}
	routes, err := s.begin(ctx, info, &call)
	if err != nil {
		if refusal, ok := errors.AsType[*mapping.Error](err); ok && refusal.Reason == mapping.ReasonSwitchover {
			s.refusals.Add(1)
			info.Observer.Refused(call.Operation)
		}
		return nil, err
	}
	to := routes[0].side
	response := upstream.Response{Err: context.Canceled} // until there is one
	defer func() { s.leave(info, response.Err) }()
	s.count(info.ruleSet, info.operation, routes[0])
	done, err := s.record(ctx, info, routes, &call)
	if err != nil {
		response.Err = err
		return nil, err
	}
	info.Shadow.Wrote(call)
	response = s.carryOut(ctx, info, to, call, done)
	info.Shadow.Wrote(call)
	if response.Err == nil || !upstream.NotWritten(response.Err) {
		s.remember(info, routes, info.newAttachments(call, response))
	}
	return s.show(ctx, info, call, routes, response), response.Err
}

// carryOut asks a tracker and commits the outcome, after a panic too, or the object could never be written again.
func (s *Switchover) carryOut(ctx context.Context, info *callInfo, to side, call upstream.Call, done journal.Done) (response upstream.Response) {
	response.Err = context.Canceled // until there is one
	defer func() { done(ctx, response) }()
	asking := ctx
	if info.recorded {
		// With an unknown outcome, as after a client that hangs up, the object would take no other write for a while.
		var end func()
		asking, end = upstream.Outlive(ctx)
		defer end()
	}
	call.Guard = func() error { return s.mayWrite(info) }
	return call.Make(asking, info.Trackers[s.names[to]], *info.caller)
}

// errNoJournal says that a rule replicates and nothing can be recorded.
var errNoJournal = errors.New("the configuration has no switchover.journal.key_file or key_env")

// record commits the intent of a write, if a rule that may decide it replicates.
func (s *Switchover) record(ctx context.Context, info *callInfo, routes []route, call *upstream.Call) (journal.Done, error) {
	recorded, name, to := false, info.mayDecide[0].Name, routes[0].side
	for _, rule := range info.mayDecide {
		switch {
		case !rule.Replicate:
		case !recorded:
			recorded, name = true, rule.Name
		case rule.Name != name:
			name = "several rules" // which is no rule, so it counts for all of them
		}
	}
	if info.killed != nil { // which rule would decide is not known, so the write is lost to all of them unless all replicate
		recorded, name = !slices.ContainsFunc(info.source.Rules, func(rule Rule) bool { return !rule.Replicate }), "kill switch"
	}
	if info.Journal == nil {
		if recorded {
			return nil, journal.Unavailable(errNoJournal)
		}
		return func(context.Context, upstream.Response) {}, nil
	}
	info.recorded = recorded
	intent := journal.Intent{
		Call: *call, Target: s.names[to], Receiver: s.names[to.other()], Rule: name, Unrecorded: !recorded, Shown: *info.caller, Caller: info.label(),
	}
	if call.CreateAttachment != nil && recorded {
		intent.Bugs = s.bugsOf(ctx, info, routes, call.CreateAttachment.PathBug != "")
	}
	return info.Journal.Begin(ctx, intent)
}

// bugsOf lists the bugs of a new attachment by their ids, so that each is one object under all of its names. A bug that is named twice gets
// two attachments, so it is listed twice. What no tracker tells stays an alias.
func (s *Switchover) bugsOf(ctx context.Context, info *callInfo, routes []route, pathApart bool) (bugs []string) {
	for _, one := range routes {
		id := one.bugID()
		if id == 0 {
			id = s.lookupBug(ctx, info, one.side, one.object) // the write itself says what is wrong
		}
		name := one.object.alias
		if id != 0 {
			name = strconv.FormatInt(id, 10)
		}
		bugs = append(bugs, name)
	}
	if pathApart && slices.Contains(bugs[1:], bugs[0]) {
		return bugs[1:] // the bug of the path is one of the others, under another name
	}
	return bugs
}

// newAttachments reads the ids that the reply to a create names.
func (r *ruleSet) newAttachments(call upstream.Call, response upstream.Response) []object {
	if call.CreateAttachment == nil || response.Document == nil {
		return nil
	}
	ids, err := journal.ReplyIDs(response.Document, r.Split)
	if err != nil {
		r.Logger.Warn("ids of new attachments are unreadable; reads of them do not follow the write", "cause", err)
	}
	return objectsOf(ids, attachmentNumbered)
}

// undivided refuses a write that would need both trackers. What no tracker has goes where the first of the
// other objects goes, so that the tracker says what is missing.
func (s *Switchover) undivided(routes []route) error {
	if first := slices.IndexFunc(routes, func(one route) bool { return !one.absent }); first >= 0 {
		for i := range routes {
			if routes[i].absent {
				routes[i].side, routes[i].phase = routes[first].side, routes[first].phase
			}
		}
	}
	if oneSide(routes) {
		return nil
	}
	var lists [2][]string
	for _, one := range routes {
		if name := one.object.String(); !slices.Contains(lists[one.side], name) {
			lists[one.side] = append(lists[one.side], name)
		}
	}
	return refuse("This would have to be written in two trackers, so nothing was changed. %s: %s. %s: %s. Send one request for each.",
		s.names[oldSide], joined(lists[oldSide], ", "), s.names[newSide], joined(lists[newSide], ", "))
}

func oneSide(routes []route) bool {
	return !slices.ContainsFunc(routes, func(one route) bool { return one.side != routes[0].side })
}

// decideAttach decides for a new attachment. Where the bug of the path is none of the others, it wins and they are not
// written, so they do not count. The call is settled then, or the tracker might find otherwise a moment later.
func (s *Switchover) decideAttach(ctx context.Context, info *callInfo, call *upstream.Call) ([]route, error) {
	create := *call.CreateAttachment
	routes, err := s.decideAll(ctx, info, objectsOf(create.Named(), bugNamed))
	if err != nil || create.PathBug == "" {
		return routes, err
	}
	path := routes[0].bugID()
	mayBePath := func(one route) bool { return one.bugID() == 0 || one.bugID() == path }
	if path != 0 && !slices.ContainsFunc(routes[1:], mayBePath) {
		create.Settle(false)
		call.CreateAttachment, routes = &create, routes[:1]
	}
	return routes, nil
}

// decideTypesUpdate decides where flag types are changed: where they apply now, and
// where they will. Nothing is looked up when all places agree.
func (s *Switchover) decideTypesUpdate(ctx context.Context, info *callInfo, request *mapping.FlagTypeUpdate) ([]route, error) {
	everywhere, err := s.decideAll(ctx, info, info.everywhere)
	if err != nil {
		return nil, err
	}
	otherPhase := func(one route) bool { return one.phase != everywhere[0].phase }
	if !slices.ContainsFunc(everywhere, otherPhase) {
		return everywhere, nil
	}
	sides, agreed := []side{oldSide, newSide}, oneSide(everywhere)
	if agreed {
		sides = []side{everywhere[0].side}
	}
	places, products, err := s.typePlaces(ctx, info, request, sides)
	if err != nil && agreed {
		return everywhere, nil // one tracker writes it anyway; only what is compared is not known
	}
	if err != nil {
		return nil, err
	}
	if request.Inclusions != nil {
		places = append(places, info.places(*request.Inclusions)...)
	}
	routes, err := s.decideAll(ctx, info, places)
	if err != nil {
		return nil, err
	}
	// Types may also apply in products that the caller does not see. Where a rule has one of them written at the
	// other tracker, half of the change would be a guess. Nothing is known of products that no rule names.
	for _, one := range everywhere {
		if name := one.object.product; name != "" && one.side != routes[0].side && !hasName(products, name) {
			return nil, refuse("It cannot be told to which of two trackers these flag types belong, so nothing was changed. "+
				"They may apply in product %q, which is written at the other tracker and which the caller does not see.", name)
		}
	}
	return routes, nil
}

// typePlaces looks up where flag types apply, in both trackers where both may write
// them: an id that both have may be of two different types, and then it belongs to
// neither alone. It gives the products that the caller sees, too.
func (s *Switchover) typePlaces(
	ctx context.Context, info *callInfo, request *mapping.FlagTypeUpdate, sides []side,
) (places []object, products []string, err error) {
	seen := make([]bool, len(request.IDs)+len(request.Names))
	for _, side := range sides {
		visible, scopes, err := info.Locate[s.names[side]].FlagTypePlaces(ctx, *info.caller, request.IDs, request.Names)
		_, refusal, err := s.lookedUp(info, "flag_type", true, err)
		if err == nil && upstream.RefusesLogin(refusal) {
			err = refusal
		}
		if err != nil {
			return nil, nil, err
		}
		products = append(products, visible...)
		for i, scopes := range scopes {
			if scopes != nil {
				seen[i] = true
				places = append(places, info.places(scopes)...)
			}
		}
	}
	if missing := slices.Index(seen, false); missing >= 0 {
		names := append(strings.Fields(joined(request.IDs, " ")), request.Names...)
		return nil, nil, refuse("It cannot be told to which of two trackers flag type %q belongs, so nothing was changed. "+
			"It is in no product that the caller sees.", short(strings.TrimSpace(names[missing])))
	}
	return places, products, nil
}
