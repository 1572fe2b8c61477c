package switchover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/journal"
)

// write sends a write to the one tracker that it belongs to.
func (s *Switchover) write(ctx context.Context, caller upstream.Caller, call upstream.Call) (*mapping.Document, error) {
	info := &callInfo{caller: &caller, operation: call.Operation}
	routes, own, err := s.begin(ctx, info, func(ctx context.Context, rules *ruleSet) ([]route, error) {
		return s.decideWrite(ctx, rules, info, &call)
	})
	if err != nil {
		if refusal, ok := errors.AsType[*mapping.Error](err); ok && refusal.Reason == mapping.ReasonSwitchover {
			s.refusals.Add(1)
			if refused := s.rules.Load().Observer.Refused; refused != nil {
				refused(call.Operation)
			}
		}
		return nil, err
	}
	rules, to := own.rules, routes[0].side
	response := upstream.Response{Err: context.Canceled} // until there is one
	defer func() { s.leave(own, response.Err) }()
	s.count(rules, call.Operation, routes[0])
	done, err := s.record(ctx, own, info, routes, &call)
	if err != nil {
		response.Err = err
		return nil, err
	}
	rules.Shadow.Wrote(call)
	guarded := upstream.WithGuard(ctx, func() error { return s.mayWrite(rules) })
	func() {
		defer func() { done(ctx, response) }() // after a panic too, or the object could never be written again
		response = call.Make(guarded, rules.trackers[to], caller)
	}()
	rules.Shadow.Wrote(call)
	if response.Err == nil || !upstream.NotWritten(response.Err) {
		s.remember(rules, info, routes, s.newAttachments(rules, call, response))
	}
	if allCompared(routes) {
		s.show(ctx, rules, caller, call, to, &response)
	}
	return response.Document, response.Err
}

// errNoJournal says that a rule replicates and nothing can be recorded.
var errNoJournal = errors.New("the configuration has no switchover.journal.key_file or key_env")

// killSwitch stands in the journal for the rule of a write that went to the old tracker by the kill switch.
const killSwitch = "kill switch"

// record commits the intent of a write, if a rule that may decide it replicates.
func (s *Switchover) record(ctx context.Context, own *inFlightWrite, info *callInfo, routes []route, call *upstream.Call) (journal.Done, error) {
	rules, at := own.rules, max(0, slices.IndexFunc(own.candidates, func(rule *Rule) bool { return rule.Replicate }))
	recorded, name := own.candidates[at].Replicate, own.candidates[at].Name
	if rules.killed != nil { // which rule would decide is not known, so the write is lost to all of them unless all replicate
		recorded, name = !slices.ContainsFunc(rules.source.Rules, func(rule Rule) bool { return !rule.Replicate }), killSwitch
	}
	switch {
	case rules.Journal == nil && recorded:
		return nil, journal.Unavailable(errNoJournal)
	case rules.Journal == nil:
		return func(context.Context, upstream.Response) {}, nil
	}
	own.recorded = recorded
	intent := journal.Intent{
		Call: *call, Target: s.names[routes[0].side], Receiver: s.names[routes[0].side.other()], Rule: name,
		Unrecorded: !recorded, Shown: *info.caller,
	}
	if rules.Caller != nil {
		intent.Caller = rules.Caller(*info.caller)
	}
	if call.CreateAttachment != nil && recorded {
		intent.Bugs = s.bugsOf(ctx, rules, info, routes)
	}
	return rules.Journal.Begin(ctx, intent)
}

// bugsOf lists the bugs of a new attachment by their ids, so that each is one object under all of its names. What no tracker tells
// stays an alias.
func (s *Switchover) bugsOf(ctx context.Context, rules *ruleSet, info *callInfo, routes []route) (bugs []string) {
	for i := range routes {
		id := routes[i].bugID()
		if id == 0 {
			found, _ := s.lookup(ctx, rules, info, routes[i].side, routes[i].object) // the write itself says what is wrong
			id = found.place.Bug
		}
		name := routes[i].object.alias
		if id != 0 {
			name = strconv.FormatInt(id, 10)
		}
		if !slices.Contains(bugs, name) {
			bugs = append(bugs, name)
		}
	}
	return bugs
}

// newAttachments reads the ids that the reply to a create names.
func (s *Switchover) newAttachments(rules *ruleSet, call upstream.Call, response upstream.Response) []object {
	if call.CreateAttachment == nil || response.Document == nil {
		return nil
	}
	var reply struct {
		IDs []int64 `json:"ids"`
	}
	text, err := response.Document.Load(rules.Split)
	if err == nil {
		err = json.Unmarshal(text, &reply)
	}
	if err != nil {
		rules.Logger.Warn("ids of new attachments are unreadable; reads of them do not follow the write", "cause", err)
	}
	return objectsOf(reply.IDs, attachmentNumbered)
}

// decideWrite decides for all objects of a write, which only one tracker may carry out.
func (s *Switchover) decideWrite(ctx context.Context, rules *ruleSet, info *callInfo, call *upstream.Call) (routes []route, err error) {
	switch {
	case call.CreateFlagType != nil:
		// Without inclusions it is for every product (interface.md section 1.3).
		places := rules.everywhere
		if scopes := call.CreateFlagType.Inclusions; scopes != nil {
			places = rules.places(*scopes)
		}
		routes, err = s.decideTypes(ctx, rules, info, without(places, call.CreateFlagType.Exclusions))
	case call.UpdateFlagTypes != nil:
		routes, err = s.decideTypesUpdate(ctx, rules, info, call.UpdateFlagTypes)
	case call.CreateAttachment != nil:
		routes, err = s.decideAttach(ctx, rules, info, call)
	default:
		routes, err = s.decideAll(ctx, rules, info, objectsOf(call.UpdateAttachments.IDs, attachmentNumbered))
	}
	if err != nil {
		return nil, err
	}
	return routes, s.undivided(routes)
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
	if !oneSide(routes) {
		return divided(routes, s.names)
	}
	return nil
}

func oneSide(routes []route) bool {
	return !slices.ContainsFunc(routes, func(one route) bool { return one.side != routes[0].side })
}

// decideAttach decides for a new attachment. Where the bug of the path is none of the others, it wins and they are not
// written, so they do not count. The call is settled then, or the tracker might find otherwise a moment later.
func (s *Switchover) decideAttach(ctx context.Context, rules *ruleSet, info *callInfo, call *upstream.Call) ([]route, error) {
	create := *call.CreateAttachment
	routes, err := s.decideAll(ctx, rules, info, objectsOf(create.Named(), bugNamed))
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

// decideTypes decides for places of flag types. Without any, the last rule decides.
func (s *Switchover) decideTypes(ctx context.Context, rules *ruleSet, info *callInfo, places []object) ([]route, error) {
	if len(places) == 0 {
		places = []object{{kind: typesObject}}
	}
	return s.decideAll(ctx, rules, info, places)
}

// without leaves out the places that are excluded. A whole product goes with all
// its components.
func without(places []object, exclusions *mapping.Scopes) []object {
	if exclusions == nil {
		return places
	}
	return slices.DeleteFunc(slices.Clone(places), func(o object) bool {
		return slices.ContainsFunc(*exclusions, func(scope mapping.Scope) bool {
			return sameName(scope.Product, o.product) &&
				(scope.Components == nil || o.component != "" && hasName(scope.Components, o.component))
		})
	})
}

// decideTypesUpdate decides where flag types are changed: where they apply now, and
// where they will. Nothing is looked up when all places agree.
func (s *Switchover) decideTypesUpdate(ctx context.Context, rules *ruleSet, info *callInfo, request *mapping.FlagTypeUpdate) ([]route, error) {
	everywhere, err := s.decideAll(ctx, rules, info, rules.everywhere)
	if err != nil {
		return nil, err
	}
	otherPhase := func(one route) bool { return one.phase != everywhere[0].phase }
	if rules.killed != nil || !slices.ContainsFunc(everywhere, otherPhase) {
		everywhere[0].object = object{kind: allTypes}
		return everywhere[:1], nil
	}
	sides, agreed := []side{oldSide, newSide}, oneSide(everywhere)
	if agreed {
		sides = []side{everywhere[0].side}
	}
	places, products, err := s.typePlaces(ctx, rules, info, request, sides)
	if err != nil && agreed {
		return everywhere, nil // one tracker writes it anyway; only what is compared is not known
	}
	if err != nil {
		return nil, err
	}
	if request.Inclusions != nil {
		places = append(places, rules.places(*request.Inclusions)...)
	}
	routes, err := s.decideTypes(ctx, rules, info, places)
	if err != nil {
		return nil, err
	}
	// Types may also apply in products that the caller does not see. Where a rule has one of them written at the
	// other tracker, half of the change would be a guess. Nothing is known of products that no rule names.
	for i := range everywhere {
		if name := everywhere[i].object.product; name != "" && everywhere[i].side != routes[0].side && !hasName(products, name) {
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
	ctx context.Context, rules *ruleSet, info *callInfo, request *mapping.FlagTypeUpdate, sides []side,
) (places []object, products []string, err error) {
	seen := make([]bool, len(request.IDs)+len(request.Names))
	for _, side := range sides {
		visible, scopes, err := rules.locators[side].FlagTypePlaces(ctx, *info.caller, request.IDs, request.Names)
		is, refusal, err := outcomeOf(err)
		s.countLookup(rules, "flag_type", is, err)
		switch {
		case err != nil:
			return nil, nil, err
		case loginError(refusal):
			return nil, nil, refusal
		}
		products = append(products, visible...)
		for i, scopes := range scopes {
			if scopes != nil {
				seen[i] = true
				places = append(places, rules.places(scopes)...)
			}
		}
	}
	if missing := slices.Index(seen, false); missing >= 0 {
		name := ""
		if missing < len(request.IDs) {
			name = fmt.Sprintf("flag type %d", request.IDs[missing])
		} else {
			name = fmt.Sprintf("flag type %q", short(strings.TrimSpace(request.Names[missing-len(request.IDs)])))
		}
		return nil, nil, refuse("It cannot be told to which of two trackers %s belongs, so nothing was changed. "+
			"It is in no product that the caller sees.", name)
	}
	return places, products, nil
}
