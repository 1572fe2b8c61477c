package switchover

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"portico/mapping"
	"portico/upstream"
)

// Locator finds out what a rule needs to know and a request does not say. It asks
// one tracker with the caller's own credential. Errors are those of
// upstream.Tracker.
type Locator interface {
	// Bug tells where a bug belongs, by id or alias. Codes: 100, 101, 102.
	Bug(ctx context.Context, caller upstream.Caller, ref string) (mapping.Place, error)
	// AttachmentBug gives the bug of an attachment, 0 when there is no such
	// attachment. Codes: 102, 304.
	AttachmentBug(ctx context.Context, caller upstream.Caller, id int64) (int64, error)
	// FlagTypePlaces tells which products the caller sees, and where in them flag
	// types apply: one list for each of ids and then for each of names, nil for what
	// is not seen anywhere.
	FlagTypePlaces(ctx context.Context, caller upstream.Caller, ids []int64, names []string) (products []string, places []mapping.Scopes, err error)
}

// decide finds the rule that decides about an object. It looks up what the rules
// need to know, if it makes a difference.
func (s *Switchover) decide(ctx context.Context, info *callInfo, o object) (route, error) {
	if info.killed != nil {
		last := len(info.source.Rules) - 1
		return route{object: o, rule: last, phase: PhaseOld, mayDecide: []*Rule{&info.source.Rules[last]}}, nil
	}
	var place mapping.Place
	var last lookupResult
	var homeErr error // why the home tracker could not respond, where the other one did
	next, more := o, o.kind != typesObject
	for {
		chosen, samePhase, sameSide := info.route(&o, &place)
		if !more || samePhase {
			chosen.absent = last.outcome == absent && !sameSide
			switch {
			case homeErr != nil && chosen.side == info.home:
				return route{}, homeErr
			case info.operation.IsWrite() && !sameSide && !chosen.absent:
				// A rule that may match would send it to the other side. What does not exist cannot be written
				// anywhere; the tracker says that itself.
				return route{}, unplaced(o, last.refusal)
			}
			return chosen, nil
		}
		more = false
		if sameSide { // what is compared may stay unknown, which is no reason to fail
			last = s.lookup(ctx, info, chosen.side, next)
		} else {
			last, homeErr = s.lookupBoth(ctx, info, next, homeErr)
			if last.failure != nil {
				return route{}, last.failure
			}
		}
		if last.outcome == present {
			place = last.place
			more = next.kind == attachmentObject
			next = object{kind: bugObject, id: place.Bug}
		}
	}
}

// lookupBoth asks the home tracker, and the other one for what that one does not know. If the home tracker does not respond
// within half of the time that is left, a read goes by what the other one has, and why is returned. A home tracker that did not respond before is not
// asked again; failedBefore is why.
func (s *Switchover) lookupBoth(ctx context.Context, info *callInfo, o object, failedBefore error) (found lookupResult, homeErr error) {
	write, half := info.operation.IsWrite(), ctx
	if end, limited := ctx.Deadline(); limited && !write {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	home := lookupResult{failure: failedBefore}
	if home.failure == nil {
		home = s.lookup(half, info, info.home, o)
	}
	if home.outcome == present || home.failure != nil && write {
		return home, failedBefore
	}
	other := s.lookup(ctx, info, info.home.other(), o)
	switch {
	case other.outcome == present:
		return other, home.failure
	case home.failure == nil && (other.failure != nil || home.outcome == absent):
		return other, nil
	}
	return home, failedBefore
}

// outcome says how a lookup ended.
type outcome string

const (
	present outcome = "found"
	// absent is what the tracker says does not exist, hidden what it does not tell
	// this caller.
	absent outcome = "absent"
	hidden outcome = "hidden"
	// failed says that the tracker could not respond.
	failed outcome = "failed"
)

// lookupResult is what one tracker knows of a bug or an attachment. Of an attachment only the bug is in place.
type lookupResult struct {
	outcome outcome
	place   mapping.Place
	// refusal is the tracker's own error where nothing was found, failure why it could not respond.
	refusal, failure error
}

// lookup asks one tracker about a bug or an attachment, or remembers its response for some seconds.
func (s *Switchover) lookup(ctx context.Context, info *callInfo, at side, o object) (result lookupResult) {
	key := placeKey{info.identity(), at, o}
	if place, ok := s.memory.places.GetIfPresent(key); ok {
		return lookupResult{outcome: present, place: place}
	}
	locator, what := info.Locate[s.names[at]], "bug"
	var err error
	if o.kind == attachmentObject {
		what = "attachment"
		result.place.Bug, err = locator.AttachmentBug(ctx, *info.caller, o.id)
	} else {
		result.place, err = locator.Bug(ctx, *info.caller, cmp.Or(o.alias, strconv.FormatInt(o.id, 10)))
	}
	result.outcome, result.refusal, result.failure = s.lookedUp(info, what, result.place.Bug != 0, err)
	// What is not there may be made, or become visible, at any moment.
	if result.outcome == present {
		s.memory.places.Set(key, result.place)
	}
	return result
}

// codeNoBug says that there is no such bug (tracker-behaviour.md section 11).
const codeNoBug = 101

// lookedUp counts a lookup, and tells one that was refused, which is a response, from a failure to respond.
func (s *Switchover) lookedUp(info *callInfo, what string, known bool, err error) (is outcome, refusal, failure error) {
	switch refused, ok := errors.AsType[*mapping.Error](err); {
	case err == nil && known:
		is = present
	case err == nil:
		is = absent
	case !ok || !refused.FromTracker() || refused.Status >= http.StatusInternalServerError:
		is, failure = failed, err
	case refused.Code == mapping.CodeBadBug || refused.Code == codeNoBug:
		is, refusal = absent, err
	default:
		is, refusal = hidden, err
	}
	s.lookups.Add(1)
	info.Observer.LookedUp(what, string(is))
	return is, refusal, failure
}

// maxParallelLookups bounds how many objects of one request are looked up at a time.
const maxParallelLookups = 8

// decideAll decides for each of several objects, in parallel as that may need lookups. The first error is returned.
func (s *Switchover) decideAll(ctx context.Context, info *callInfo, objects []object) ([]route, error) {
	if len(objects) == 0 {
		objects = []object{{kind: typesObject}} // of flag types that apply nowhere; nothing else comes without objects
	}
	routes, errs := make([]route, len(objects)), make([]error, len(objects))
	inParallel(len(objects), maxParallelLookups, func(i int) {
		routes[i], errs[i] = s.decide(ctx, info, objects[i])
	})
	return routes, cmp.Or(errs...)
}

// inParallel calls do with each number below n, at most limit of them at a time. A panic is
// passed on to the caller, so that it ends one request and not the process.
func inParallel(n, limit int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var all errgroup.Group
	all.SetLimit(limit)
	panics := make(chan any, n)
	for i := range n {
		all.Go(func() error {
			defer func() { panics <- recover() }()
			do(i)
			return nil
		})
	}
	_ = all.Wait()
	for range n {
		if value := <-panics; value != nil {
			panic(value)
		}
	}
}
