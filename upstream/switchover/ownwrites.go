package switchover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of what one read may look up to find out which bugs its caller's writes
// were about. Most of the time that is known.
const (
	maxWriteLookups = 32
	lookupsTime     = 3 * time.Second
)

// afterOwnWrites sends a read to where the caller wrote the object last, if that was within Follow. It never fails:
// what cannot be found out about a write is no reason to fail a read of something else. ctx limits the time for lookups.
func (s *Switchover) afterOwnWrites(ctx context.Context, rules *ruleSet, info *callInfo, chosen route) route {
	if s.memory.written.Load() == 0 && len(info.uncopied) == 0 || rules.killed != nil || rules.isWriter(&chosen) {
		return chosen
	}
	writes := info.uncopied
	if !info.caller.Anonymous() {
		writes = slices.Concat(writes, s.memory.since(info.identity(), s.now().Add(-rules.Follow)))
	}
	elsewhere := chosen.side.other()
	// Writes before the first one elsewhere change nothing.
	for len(writes) > 0 && writes[0].side != elsewhere {
		writes = writes[1:]
	}
	for i := len(writes) - 1; i >= 0; i-- {
		if !s.concerns(ctx, rules, info, &writes[i], &chosen) {
			continue
		}
		if writes[i].side == elsewhere {
			// What was just written at one tracker is not at the other, so nothing is compared.
			chosen.side, chosen.phase, chosen.followed = elsewhere, [...]Phase{PhaseOld, PhaseNew}[elsewhere], true
		}
		break
	}
	return chosen
}

// concerns reports whether a write shows in a read of an object.
func (s *Switchover) concerns(ctx context.Context, rules *ruleSet, info *callInfo, w *written, read *route) bool {
	switch o := &read.object; {
	case o.kind == typesObject:
		return w.object.kind == allTypes || w.object.kind == typesObject && sameName(w.object.product, o.product)
	case o.kind == attachmentObject:
		return w.object.kind == attachmentObject && w.object.id == o.id
	case w.object.kind == bugObject && w.object.alias == o.alias:
		return w.object.id == o.id
	case w.object.kind == bugObject, w.object.kind == attachmentObject && !w.created:
		if w.bug == 0 {
			w.bug = s.lookupBug(ctx, rules, info, w.side, w.object)
		}
		if w.bug != 0 && read.bugID() == 0 && !read.tried[w.side] {
			read.tried[w.side] = true
			read.place.Bug = s.lookupBug(ctx, rules, info, w.side, read.object)
		}
		return w.bug != 0 && w.bug == read.bugID()
	default:
		return false
	}
}

// lookupBug asks which bug an object is or belongs to. It returns 0 when that cannot be found out.
func (s *Switchover) lookupBug(ctx context.Context, rules *ruleSet, info *callInfo, at side, o object) int64 {
	if place, known := s.memory.place(placeKey{info.identity(), at, o}, s.now()); known {
		return place.Bug
	}
	if info.writeLookups++; info.writeLookups > maxWriteLookups {
		return 0
	}
	result, _ := s.lookup(ctx, rules, info, at, o)
	return result.place.Bug
}

// forgotten reports whether the caller may have written what a read shows at the tracker that does not respond, with this process knowing nothing
// of it: it began after that, or the caller comes from another process.
func (s *Switchover) forgotten(rules *ruleSet, info *callInfo, chosen *route) bool {
	now := s.now()
	return rules.rules[chosen.rule].Replicate && !rules.isWriter(chosen) && rules.killed == nil && rules.Follow > 0 && !info.caller.Anonymous() &&
		!s.memory.knows(info.identity(), now.Add(-rules.Follow), now)
}

// recall remembers which writes of the caller are not copied yet. Without the store, reads go on.
func (s *Switchover) recall(ctx context.Context, rules *ruleSet, info *callInfo) {
	label := ""
	if rules.Caller != nil {
		label = rules.Caller(*info.caller)
	}
	writes, err := s.inJournal(ctx, label)
	if err != nil {
		rules.Logger.Warn("the journal could not be asked for a caller's writes; reads may not show them", "cause", err)
		return
	}
	s.memory.recall(info.identity(), writes, s.now())
}

// inJournal reads from the journal which writes of a caller, or which creates of some attachments, are not copied yet.
func (s *Switchover) inJournal(ctx context.Context, caller string, attachments ...string) (writes []written, err error) {
	var lanes []string
	for _, named := range attachments {
		lanes = append(lanes, fmt.Sprint("attachment ", attachmentNamed(named).id))
	}
	entries, err := s.store.JournalUncopied(ctx, maxOwnWrites/2, caller, lanes...)
	for _, e := range entries {
		to, o := oldSide, writtenObject(e.Lane)
		if e.Target == s.names[newSide] {
			to = newSide
		}
		writes = append(writes, written{object: o, side: to, at: s.now()})
		if made := writtenObject(e.Made); made.kind == attachmentObject {
			writes = append(writes, written{object: made, side: to, at: s.now(), created: true, bug: o.id})
		}
	}
	return writes, err
}

// writtenObject is the object of a lane of the journal.
func writtenObject(lane string) object {
	switch kind, named, _ := strings.Cut(lane, " "); kind {
	case "attachment":
		return attachmentNamed(named)
	case "bug":
		return bugNamed(named)
	}
	return object{kind: allTypes}
}

// remember notes what was written for the reads that follow.
func (s *Switchover) remember(rules *ruleSet, info *callInfo, routes []route, created []object) {
	if rules.Follow <= 0 || info.caller.Anonymous() {
		return
	}
	now, to := s.now(), routes[0].side
	writes := make([]written, 0, len(routes)+len(created))
	for i := range routes {
		if o := routes[i].object.remembered(); o.plausible() {
			writes = append(writes, written{object: o, side: to, at: now, bug: routes[i].bugID()})
		}
	}
	var bug int64 // of new attachments, where it is known
	if len(routes) == 1 {
		bug = routes[0].bugID()
	}
	for _, o := range created {
		writes = append(writes, written{object: o, side: to, at: now, created: true, bug: bug})
	}
	s.memory.note(info.identity(), writes...)
}
