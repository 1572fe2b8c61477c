package switchover

import (
	"context"
	"slices"
	"strings"
	"time"

	"portico/upstream"
)

// Bounds of what one read may look up to find out which bugs its caller's writes
// were about. Most of the time that is known.
const (
	maxWriteLookups = 32
	lookupsTime     = 3 * time.Second
)

// followOwnWrites sends reads to where their caller wrote the objects last, if that was within Follow. What cannot be found out about a write is no
// reason to fail a read of something else. The only error is upstream.ErrNotLocal, of a peek that would have to ask the store.
func (s *Switchover) followOwnWrites(ctx context.Context, info *callInfo, routes []route, peek bool) error {
	after := s.now().Add(-info.Follow)
	if s.forgotten(info, routes, after) {
		if peek {
			return upstream.ErrNotLocal
		}
		if uncopied, err := s.ownUncopied(ctx, info); err == nil {
			s.memory.recall(info.identity(), uncopied, s.now())
		}
	} else if info.killed != nil || s.memory.lastWrite.Load() <= after.UnixNano() && len(info.uncopied) == 0 {
		return nil
	}
	writes := info.uncopied
	if !info.caller.Anonymous() {
		own, _ := s.memory.callers.GetIfPresent(info.identity())
		elsewhere := func(w written) bool {
			return slices.ContainsFunc(routes, func(chosen route) bool { return chosen.side != w.side })
		}
		if len(writes) == 0 && !slices.ContainsFunc(own.writes, elsewhere) {
			return nil // without a copy of them, since there may be thousands
		}
		writes = slices.DeleteFunc(slices.Concat(writes, own.writes), func(w written) bool { return !w.at.After(after) })
	}
	ctx, cancel := context.WithTimeout(ctx, lookupsTime)
	defer cancel()
	for i := range routes {
		s.followWrites(ctx, info, writes, &routes[i])
	}
	return nil
}

// followWrites sends one read to where the last of some writes that shows in it went.
func (s *Switchover) followWrites(ctx context.Context, info *callInfo, writes []written, chosen *route) {
	elsewhere := chosen.side.other()
	// Writes before the first one elsewhere change nothing.
	for len(writes) > 0 && writes[0].side != elsewhere {
		writes = writes[1:]
	}
	hasAll := info.isWriter(chosen) // except where the bug of a write has moved to another product
	if hasAll && chosen.object.kind == typesObject {
		return
	}
	for i := len(writes) - 1; i >= 0; i-- {
		if !s.concerns(ctx, info, &writes[i], chosen) {
			continue
		}
		if writes[i].side == elsewhere && (!hasAll || s.isUncopied(ctx, info, &writes[i])) {
			// What was just written at one tracker is not at the other, so nothing is compared.
			chosen.side, chosen.phase, chosen.followed = elsewhere, [...]Phase{PhaseOld, PhaseNew}[elsewhere], true
		}
		return
	}
}

// isUncopied reports whether a write is not copied yet. The journal is asked once for a call.
func (s *Switchover) isUncopied(ctx context.Context, info *callInfo, w *written) bool {
	is := func(one written) bool { return one.side == w.side && one.object == w.object }
	if info.waiting == nil {
		own, _ := s.ownUncopied(ctx, info)
		info.waiting = append([]written{}, own...)
	}
	return slices.ContainsFunc(info.uncopied, is) || slices.ContainsFunc(info.waiting, is)
}

// concerns reports whether a write shows in a read of an object.
func (s *Switchover) concerns(ctx context.Context, info *callInfo, w *written, read *route) bool {
	switch o := &read.object; {
	case o.kind == typesObject:
		return w.object.kind == typesObject && (w.object.product == "" || sameName(w.object.product, o.product))
	case w.object == *o:
		return true
	case o.kind == attachmentObject, w.object.kind == typesObject:
		return false
	}
	if w.bug == 0 {
		w.bug = s.lookupBug(ctx, info, w.side, w.object)
	}
	if w.bug > 0 && read.bugID() == 0 && !read.tried[w.side] {
		read.tried[w.side] = true
		read.place.Bug = s.lookupBug(ctx, info, w.side, read.object)
	}
	return w.bug > 0 && w.bug == read.bugID()
}

// lookupBug asks which bug an object is or belongs to. It returns 0 when that cannot be found out.
func (s *Switchover) lookupBug(ctx context.Context, info *callInfo, at side, o object) int64 {
	if place, known := s.memory.places.GetIfPresent(placeKey{info.identity(), at, o}); known {
		return place.Bug
	}
	info.writeLookups++
	if info.writeLookups > maxWriteLookups {
		return 0
	}
	return s.lookup(ctx, info, at, o).place.Bug
}

// forgotten reports whether the caller may have written what a read shows at the tracker that does not respond, with this process knowing nothing
// of it: it began after that, or the caller comes from another process.
func (s *Switchover) forgotten(info *callInfo, routes []route, after time.Time) bool {
	mayLack := func(chosen route) bool { return info.source.Rules[chosen.rule].Replicate && !info.isWriter(&chosen) }
	if info.killed != nil || info.Follow <= 0 || info.caller.Anonymous() || !slices.ContainsFunc(routes, mayLack) {
		return false
	}
	own, _ := s.memory.callers.GetIfPresent(info.identity())
	return !own.recalled.After(after)
}

// ownUncopied reads which writes of the caller are not copied yet. Without the store, reads go on.
func (s *Switchover) ownUncopied(ctx context.Context, info *callInfo) ([]written, error) {
	writes, err := s.inJournal(ctx, info.label())
	if err != nil {
		info.Logger.Warn("the journal could not be asked for a caller's writes; reads may not show them", "cause", err)
	}
	return writes, err
}

// inJournal reads from the journal which writes of a caller, or which creates of some attachments, are not copied yet.
func (s *Switchover) inJournal(ctx context.Context, caller string, attachments ...string) (writes []written, err error) {
	var lanes []string
	for _, named := range attachments {
		lanes = append(lanes, attachmentNamed(named).String())
	}
	entries, err := s.store.JournalUncopied(ctx, maxOwnWrites/2, caller, lanes...)
	for _, e := range entries {
		one := written{object: writtenObject(e.Lane), at: s.now()}
		if e.Target == s.names[newSide] {
			one.side = newSide
		}
		writes = append(writes, one)
		if made := writtenObject(e.Made); made.kind == attachmentObject {
			one.object, one.bug = made, ofNoBug
			writes = append(writes, one)
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
	return object{kind: typesObject}
}

// remember notes what was written for the reads that follow.
func (s *Switchover) remember(info *callInfo, routes []route, created []object) {
	if info.caller.Anonymous() {
		return
	}
	now, to := s.now(), routes[0].side
	var writes []written
	for _, one := range routes {
		writes = append(writes, written{one.object.remembered(), to, now, one.bugID()})
	}
	for _, o := range created {
		writes = append(writes, written{o, to, now, ofNoBug})
	}
	s.memory.note(info.identity(), writes, now)
}
