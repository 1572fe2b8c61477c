package switchover

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

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
func (s *Switchover) decide(ctx context.Context, rules *ruleSet, info *callInfo, o object) (route, error) {
	if rules.killed != nil {
		return route{object: o, rule: len(rules.rules) - 1, phase: PhaseOld, side: oldSide}, nil
	}
	var place mapping.Place
	var last lookupResult
	var homeErr error // why the home tracker could not respond, where the other one did
	next, more := o, o.kind != typesObject
	for {
		chosen, among := rules.route(info, &o, &place)
		if !more || among.samePhase {
			chosen.absent = last.outcome == absent && !among.sameSide
			switch {
			case homeErr != nil && chosen.side == rules.home:
				return route{}, homeErr
			case info.operation.IsWrite() && !among.sameSide && !chosen.absent:
				// A rule that may match would send it to the other side. What does not exist cannot be written
				// anywhere; the tracker says that itself.
				return route{}, unplaced(o, last.refusal)
			}
			return chosen, nil
		}
		more = false
		var result lookupResult
		var err error
		if among.sameSide {
			result, err = s.lookup(ctx, rules, info, chosen.side, next)
		} else {
			result, err = s.lookupBoth(ctx, rules, info, next, &homeErr)
		}
		switch {
		case err != nil && !among.sameSide:
			return route{}, err
		case err != nil: // only what is compared is not known, which is no reason to fail
			continue
		}
		if last = result; result.outcome == present {
			place = result.place
			more = next.kind == attachmentObject
			next = object{kind: bugObject, id: place.Bug}
		}
	}
}

// lookupBoth asks the home tracker, and the other one for what that one does not know. If the home tracker does not respond
// within half of the time that is left, a read goes by what the other one has; homeErr is why.
func (s *Switchover) lookupBoth(ctx context.Context, rules *ruleSet, info *callInfo, o object, homeErr *error) (lookupResult, error) {
	write, half := info.operation.IsWrite(), ctx
	if end, limited := ctx.Deadline(); limited && !write {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	home, err := lookupResult{}, *homeErr
	if err == nil {
		home, err = s.lookup(half, rules, info, rules.home, o)
	}
	if err == nil && home.outcome == present || err != nil && write {
		return home, err
	}
	other, otherErr := s.lookup(ctx, rules, info, rules.home.other(), o)
	switch {
	case otherErr == nil && other.outcome == present:
		*homeErr = err
		return other, nil
	case err != nil:
		return home, err
	case otherErr != nil || home.outcome == absent:
		return other, otherErr
	}
	return home, nil
}

// outcome says how a lookup ended.
type outcome uint8

const (
	present outcome = iota
	// absent is what the tracker says does not exist, hidden what it does not tell
	// this caller.
	absent
	hidden
)

// String is the word that observers get.
func (o outcome) String() string { return [...]string{"found", "absent", "hidden"}[o] }

// lookupResult is what one tracker knows of a bug or an attachment. Of an attachment only the bug is in place.
type lookupResult struct {
	outcome outcome
	place   mapping.Place
	// refusal is the tracker's own error where nothing was found.
	refusal error
}

// lookup asks one tracker about a bug or an attachment, or remembers its response for some seconds. An error
// means that the tracker could not respond.
func (s *Switchover) lookup(ctx context.Context, rules *ruleSet, info *callInfo, at side, o object) (lookupResult, error) {
	key, now := placeKey{info.identity(), at, o}, s.now()
	if place, ok := s.memory.place(key, now); ok {
		return lookupResult{place: place}, nil
	}
	var result lookupResult
	var err error
	locator, what := rules.locators[at], "bug"
	if o.kind == attachmentObject {
		what = "attachment"
		result.place.Bug, err = locator.AttachmentBug(ctx, *info.caller, o.id)
	} else {
		result.place, err = locator.Bug(ctx, *info.caller, cmp.Or(o.alias, strconv.FormatInt(o.id, 10)))
	}
	if err == nil && result.place.Bug == 0 {
		result.outcome = absent
	} else {
		result.outcome, result.refusal, err = outcomeOf(err)
	}
	s.countLookup(rules, what, result.outcome, err)
	// What is not there may be made, or become visible, at any moment.
	if err == nil && result.outcome == present {
		s.memory.keepPlace(key, result.place, now)
	}
	return result, err
}

// outcomeOf tells a refused lookup, which is a response, from a failure to respond.
func outcomeOf(err error) (is outcome, refusal, failed error) {
	switch refusal, ok := errors.AsType[*mapping.Error](err); {
	case err == nil:
		return present, nil, nil
	case !ok || !refusal.FromTracker() || refusal.Status >= http.StatusInternalServerError:
		return present, nil, err
	case refusal.Code == mapping.CodeBadBug || refusal.Code == codeNoBug:
		return absent, err, nil
	default:
		return hidden, err, nil
	}
}

// codeNoBug says that there is no such bug (tracker-behaviour.md section 11).
const codeNoBug = 101

func (s *Switchover) countLookup(rules *ruleSet, what string, is outcome, err error) {
	s.lookups.Add(1)
	word := is.String()
	if err != nil {
		word = "failed"
	}
	if rules.Observer.LookedUp != nil {
		rules.Observer.LookedUp(what, word)
	}
}

// maxParallelLookups bounds how many objects of one request are looked up at a time.
const maxParallelLookups = 8

// decideAll decides for each of several objects, in parallel as that may need lookups. The first error is returned.
func (s *Switchover) decideAll(ctx context.Context, rules *ruleSet, info *callInfo, objects []object) ([]route, error) {
	routes, errs := make([]route, len(objects)), make([]error, len(objects))
	inParallel(len(objects), maxParallelLookups, func(i int) {
		routes[i], errs[i] = s.decide(ctx, rules, info, objects[i])
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
	var (
		all    sync.WaitGroup
		slots  = make(chan struct{}, limit)
		panics = make([]any, n)
	)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() {
				panics[i] = recover()
				<-slots
			}()
			do(i)
		})
	}
	all.Wait()
	for _, value := range panics {
		if value != nil {
			panic(value)
		}
	}
}
