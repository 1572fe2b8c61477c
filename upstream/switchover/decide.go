package switchover

import (
	"context"
	"slices"
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
}

// facts is what is known of an object that its request does not say.
type facts struct {
	place mapping.Place
	// bugTried and placeTried say that there is no more to find out.
	bugTried, placeTried bool
	// outcome and said are those of the last lookup that found nothing.
	outcome outcome
	said    error
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
// know what is compared, which is no reason to fail.
func (s *Switchover) decideOpen(ctx context.Context, t *table, q *question, o object, first int, sameSide bool) (choice, error) {
	var f facts
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
	made.absent = f.outcome == absent
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
	answer, err := s.lookBoth(ctx, t, q, lookup{what: lookAttachment, object: *o})
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
	answer, err := s.lookBoth(ctx, t, q, lookup{what: lookBug, object: bug})
	f.outcome, f.said = answer.outcome, answer.said
	if answer.outcome == present {
		f.place = answer.place
	}
	return err
}

// follow has a read go where the caller wrote the object last, if that was not
// long ago.
func (s *Switchover) follow(ctx context.Context, t *table, q *question, made choice) (choice, error) {
	if s.memory.written.Load() == 0 || t.killed != nil || s.options.Follow < 0 || q.caller.Anonymous() {
		return made, nil
	}
	writes := s.memory.since(s.who(q), s.now().Add(-s.options.Follow))
	elsewhere := s.names[made.side.other()]
	least := slices.IndexFunc(writes, func(w written) bool { return w.tracker == elsewhere })
	if least < 0 {
		return made, nil
	}
	// The last write of the object counts; those before the first one elsewhere
	// change nothing.
	for i := len(writes) - 1; i >= least; i-- {
		is, err := s.concerns(ctx, q, &writes[i], &made.object)
		if err != nil {
			return made, err
		}
		if is && writes[i].tracker == elsewhere {
			made.side, made.followed, made.phase = made.side.other(), true, plainPhase(made.side.other())
		}
		if is {
			break
		}
	}
	return made, nil
}

// plainPhase is the phase in which a side answers and nothing is compared, as
// what was just written on one side is not on the other.
func plainPhase(s side) Phase {
	if s == newSide {
		return PhaseNew
	}
	return PhaseOld
}

// concerns tells whether a write shows in a read of an object.
func (s *Switchover) concerns(ctx context.Context, q *question, w *written, o *object) (bool, error) {
	switch {
	case o.kind == typesObject:
		return w.object.kind == allTypes || w.object.kind == typesObject && sameName(w.object.product, o.product), nil
	case o.kind == attachmentObject:
		return w.object.kind == attachmentObject && w.object.id == o.id, nil
	case w.object.kind == attachmentObject:
		hangsOn, err := s.lookAt(ctx, q, w.tracker, lookup{what: lookAttachment, object: w.object})
		if err != nil || hangsOn.place.Bug == 0 {
			return false, err
		}
		return s.sameBug(ctx, q, w.tracker, &object{kind: bugObject, id: hangsOn.place.Bug}, o)
	case w.object.kind == bugObject:
		return s.sameBug(ctx, q, w.tracker, &w.object, o)
	default:
		return false, nil
	}
}

// sameBug compares two bugs of which each may be named by an alias.
func (s *Switchover) sameBug(ctx context.Context, q *question, tracker string, a, b *object) (bool, error) {
	if a.alias == "" && b.alias == "" || a.alias == b.alias {
		return a.id == b.id, nil
	}
	left, err := s.bugID(ctx, q, tracker, a)
	if err != nil || left == 0 {
		return false, err
	}
	right, err := s.bugID(ctx, q, tracker, b)
	return left == right, err
}

func (s *Switchover) bugID(ctx context.Context, q *question, tracker string, o *object) (int64, error) {
	if o.alias == "" {
		return o.id, nil
	}
	answer, err := s.lookAt(ctx, q, tracker, lookup{what: lookBug, object: *o})
	return answer.place.Bug, err
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
