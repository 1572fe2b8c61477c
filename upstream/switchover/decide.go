package switchover

import (
	"context"
	"strings"

	"portico/mapping"
)

// choice is what was decided for one object.
type choice struct {
	object   object
	rule     int
	phase    Phase
	side     side
	followed bool
	// absent says that no tracker has the object.
	absent bool
	// bug is what was looked up: the id of a bug that is named by an alias, or of the
	// one that an attachment hangs on; 0 when nothing was.
	bug int64
	// tried says of which sides a bug's id was asked in vain to follow a write.
	tried [2]bool
}

// bugID is the id of the bug that the object is or hangs on, 0 when it is not known.
func (c *choice) bugID() int64 {
	if c.object.kind == bugObject && c.object.alias == "" {
		return c.object.id
	}
	return c.bug
}

// facts is what is known of an object that its request does not say.
type facts struct {
	place mapping.Place
	// bugTried and placeTried say that there is no more to find out.
	bugTried, placeTried bool
	// outcome and said are those of the last lookup that found nothing.
	outcome outcome
	said    error
	// agreed says that all rules that may match choose one side, which alone is asked.
	agreed bool
	side   side
	// doubt is why the tracker that is asked first could not answer, where the other
	// one did.
	doubt error
}

// decide finds the first rule that matches an object. It looks up what the rules
// need to know, if it makes a difference.
func (s *Switchover) decide(ctx context.Context, t *table, q *question, o object) (choice, error) {
	if t.killed != nil {
		return choice{object: o, rule: len(t.rules) - 1, phase: PhaseOld, side: oldSide}, nil
	}
	first, open := s.first(t, q, &o)
	if !open.any || open.samePhase {
		return t.choose(first, q, o), nil
	}
	return s.decideOpen(ctx, t, q, o, first, open.sameSide)
}

func (t *table) choose(at int, q *question, o object) choice {
	phase := q.phase(&t.rules[at])
	return choice{object: o, rule: at, phase: phase, side: phase.side()}
}

// openRules says what is known of the rules that might match before the first
// that surely does.
type openRules struct{ any, samePhase, sameSide bool }

// first finds the first rule that matches surely, without any lookup.
func (s *Switchover) first(t *table, q *question, o *object) (int, openRules) {
	var nothing facts
	var phase Phase
	open := openRules{samePhase: true, sameSide: true}
	for i := range t.rules {
		r := &t.rules[i]
		// Who is in a percentage takes longest to find out, so it comes last.
		is := r.place(o, &nothing)
		if is == no || !s.asks(r, q) {
			continue
		}
		// All that may match have to agree with one another.
		if phase == "" {
			phase = q.phase(r)
		}
		open.samePhase = open.samePhase && phase == q.phase(r)
		open.sameSide = open.sameSide && phase.side() == q.phase(r).side()
		if is == yes {
			return i, open
		}
		open.any = true
	}
	return len(t.rules) - 1, open
}

// decideOpen decides where a lookup is needed. With sameSide it is needed only to
// know what is compared, which is no reason to fail, nor to ask the tracker that
// does not answer.
func (s *Switchover) decideOpen(ctx context.Context, t *table, q *question, o object, first int, sameSide bool) (choice, error) {
	f := facts{agreed: sameSide, side: q.phase(&t.rules[first]).side()}
	chosen := first
	for i := range first {
		r := &t.rules[i]
		if !s.asks(r, q) {
			continue
		}
		is, err := s.placeOf(ctx, t, q, r, &o, &f)
		if err != nil && !sameSide {
			return choice{}, err
		}
		if is == yes {
			chosen = i
			break
		}
	}
	made := t.choose(chosen, q, o)
	made.absent, made.bug = f.outcome == absent && !sameSide, f.place.Bug
	if f.doubt != nil && made.side == t.home {
		return choice{}, f.doubt
	}
	if q.write && s.doubtful(t, q, made, &f) {
		return choice{}, unplaced(o, &f)
	}
	return made, nil
}

// doubtful tells whether a rule that was passed over, because the object's place
// is not known, would have sent the write to the other side. What does not exist
// cannot be written anywhere: the tracker says so itself.
func (s *Switchover) doubtful(t *table, q *question, made choice, f *facts) bool {
	if f.outcome == absent {
		return false
	}
	for i := range made.rule {
		r := &t.rules[i]
		if q.phase(r).side() != made.side && s.asks(r, q) && r.place(&made.object, f) == unknown {
			return true
		}
	}
	return false
}

// placeOf is place with lookups.
func (s *Switchover) placeOf(ctx context.Context, t *table, q *question, r *rule, o *object, f *facts) (answer, error) {
	is := r.place(o, f)
	if is == unknown && !f.bugTried {
		f.bugTried = true
		if err := s.findBug(ctx, t, q, o, f); err != nil {
			f.placeTried = true
			return unknown, err
		}
		is = r.place(o, f)
	}
	if is == unknown && !f.placeTried {
		f.placeTried = true
		if err := s.findPlace(ctx, t, q, o, f); err != nil {
			return unknown, err
		}
		is = r.place(o, f)
	}
	return is, nil
}

// findBug finds out which bug an attachment hangs on.
func (s *Switchover) findBug(ctx context.Context, t *table, q *question, o *object, f *facts) error {
	if o.kind != attachmentObject {
		return nil
	}
	answer, err := s.look(ctx, t, q, f, lookup{what: lookAttachment, object: *o})
	f.outcome, f.said, f.place.Bug = answer.outcome, answer.said, answer.place.Bug
	f.placeTried = f.place.Bug == 0
	return err
}

// findPlace finds out where a bug belongs.
func (s *Switchover) findPlace(ctx context.Context, t *table, q *question, o *object, f *facts) error {
	bug := *o
	if o.kind == attachmentObject {
		bug = object{kind: bugObject, id: f.place.Bug}
	}
	answer, err := s.look(ctx, t, q, f, lookup{what: lookBug, object: bug})
	f.outcome, f.said = answer.outcome, answer.said
	if answer.outcome == present {
		f.place = answer.place
	}
	return err
}

// who digests the caller's credential once.
func (s *Switchover) who(q *question) digest {
	if !q.digested {
		q.digested, q.who = true, s.memory.digest(q.caller)
	}
	return q.who
}

// listed names objects in an error, not too many of them.
func listed(objects []string) string {
	const most = 10
	if more := len(objects) - most; more > 0 {
		objects = append(objects[:most:most], "others")
	}
	return strings.Join(objects, ", ")
}
