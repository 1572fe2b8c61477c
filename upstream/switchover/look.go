package switchover

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"portico/mapping"
)

// rememberPlaces is how long the answer of a lookup is believed.
const rememberPlaces = 10 * time.Second

// What can be looked up, as observers are told.
const (
	lookBug        = "bug"
	lookAttachment = "attachment"
	lookFlagType   = "flag_type"
)

// lookup is one question to a Locator.
type lookup struct {
	what   string
	object object
	// ids and names select flag types.
	ids   []int64
	names []string
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

// String is the word that observers are told.
func (o outcome) String() string { return [...]string{"found", "absent", "hidden"}[o] }

// found is the answer of a lookup. It never changes.
type found struct {
	outcome outcome
	place   mapping.Place
	// products are those that the caller sees, scopes where in them flag types apply.
	products []string
	scopes   []mapping.Scopes
	// said is the tracker's own error where nothing was found.
	said error
}

// look asks who may know.
func (s *Switchover) look(ctx context.Context, t *table, q *question, f *facts, l lookup) (found, error) {
	switch {
	case f.agreed:
		return s.lookAt(ctx, q, s.names[f.side], l)
	case q.write:
		return s.lookBoth(ctx, t, q, l)
	}
	answer, err := found{}, f.doubt
	if err == nil {
		first, cancel := halfOf(ctx)
		defer cancel()
		answer, err = s.lookAt(first, q, s.names[t.home], l)
	}
	switch {
	case err == nil && answer.outcome == present:
		return answer, nil
	case err == nil:
		return s.lookBeyond(ctx, t, q, l, answer)
	}
	// What the other one has may be answered by it, whatever became of the first.
	second, failed := s.lookAt(ctx, q, s.names[t.home.other()], l)
	if failed != nil || second.outcome != present {
		return answer, err
	}
	f.doubt = err
	return second, nil
}

// halfOf leaves half of the time for asking somebody else.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// lookBoth asks the side that has whatever no rule speaks of, and the other one
// for what that one does not know.
func (s *Switchover) lookBoth(ctx context.Context, t *table, q *question, l lookup) (found, error) {
	answer, err := s.lookAt(ctx, q, s.names[t.home], l)
	if err != nil || answer.outcome == present {
		return answer, err
	}
	return s.lookBeyond(ctx, t, q, l, answer)
}

// lookBeyond asks the other side for what the first one did not tell.
func (s *Switchover) lookBeyond(ctx context.Context, t *table, q *question, l lookup, answer found) (found, error) {
	second, err := s.lookAt(ctx, q, s.names[t.home.other()], l)
	if err != nil || second.outcome == present || answer.outcome == absent {
		return second, err
	}
	return answer, nil
}

// lookAt asks one tracker, or remembers what it said a moment ago. An error means
// that the tracker could not answer.
func (s *Switchover) lookAt(ctx context.Context, q *question, tracker string, l lookup) (found, error) {
	locator := s.options.Locate[tracker]
	if locator == nil {
		return found{outcome: hidden}, nil
	}
	key := placeKey{who: s.who(q), tracker: tracker, what: l.what, ref: l.digest()}
	if q.looked != nil {
		*q.looked = append(*q.looked, fmt.Sprintf("%s in %s", l.words(), tracker))
	}
	now := s.now()
	if known, ok := s.memory.place(key, now); ok {
		return known, nil
	}
	of, _ := ctx.Value(seenKey{}).(*seen)
	if known, ok := of.get(key); ok {
		return known.found, known.err
	}
	s.lookups.Add(1)
	answer, err := s.ask(ctx, q, locator, l)
	of.put(key, sight{answer, err})
	if err != nil {
		s.observeLookup(l.what, "failed")
		return found{}, err
	}
	s.observeLookup(l.what, answer.outcome.String())
	// What is not there may be made, or come into sight, at any moment.
	if answer.outcome == present && (l.what != lookFlagType || answer.anywhere()) {
		s.memory.keep(key, answer, now.Add(rememberPlaces))
	}
	return answer, nil
}

func (s *Switchover) observeLookup(what, outcome string) {
	if s.options.Observer.Looked != nil {
		s.options.Observer.Looked(what, outcome)
	}
}

func (s *Switchover) ask(ctx context.Context, q *question, locator Locator, l lookup) (answer found, err error) {
	switch l.what {
	case lookAttachment:
		answer.place.Bug, err = locator.AttachmentBug(ctx, *q.caller, l.object.id)
		if err == nil && answer.place.Bug == 0 {
			answer.outcome = absent
		}
	case lookFlagType:
		answer.products, answer.scopes, err = locator.FlagTypePlaces(ctx, *q.caller, l.ids, l.names)
	default:
		answer.place, err = locator.Bug(ctx, *q.caller, l.object.ref())
	}
	said, ok := errors.AsType[*mapping.Error](err)
	switch {
	case err == nil:
		return answer, nil
	case !ok || !said.FromTracker() || said.Status >= http.StatusInternalServerError:
		return found{}, err
	case said.Code == mapping.CodeBadBug || said.Code == codeNoBug:
		return found{outcome: absent, said: err}, nil
	default:
		return found{outcome: hidden, said: err}, nil
	}
}

// codeNoBug says that there is no such bug (wire-facts.md section 11).
const codeNoBug = 101

// anywhere tells whether any of the flag types applies anywhere.
func (f *found) anywhere() bool {
	return slices.ContainsFunc(f.scopes, func(scopes mapping.Scopes) bool { return scopes != nil })
}

// words name the lookup for people.
func (l *lookup) words() string {
	switch l.what {
	case lookBug:
		return "product and component of " + l.object.String()
	case lookAttachment:
		return "the bug of " + l.object.String()
	default:
		return "the products of " + listed(l.types())
	}
}

// types names the flag types that a lookup is about.
func (l *lookup) types() []string {
	var all []string
	for _, id := range l.ids {
		all = append(all, fmt.Sprintf("flag type %d", id))
	}
	for _, name := range l.names {
		all = append(all, fmt.Sprintf("flag type %q", short(strings.TrimSpace(name))))
	}
	return all
}
