package switchover

import (
	"context"
	"slices"
	"time"
)

// Bounds of what one read may look up to find out which bugs its caller's writes
// were about. Most of the time that is known.
const (
	mostFollowLooks = 32
	followPatience  = 3 * time.Second
	// silence is how long a tracker that did not answer is not asked again.
	silence = 5 * time.Second
)

// follow has a read go where the caller wrote the object last, if that was not
// long ago. It never fails: what cannot be found out about a write is no reason to
// fail a read of something else.
func (s *Switchover) follow(ctx context.Context, t *table, q *question, made choice) choice {
	if s.memory.written.Load() == 0 || t.killed != nil || s.options.Follow < 0 || q.caller.Anonymous() {
		return made
	}
	writes := s.memory.since(s.who(q), s.now().Add(-s.options.Follow))
	elsewhere := s.names[made.side.other()]
	least := slices.IndexFunc(writes, func(w written) bool { return w.tracker == elsewhere })
	if least < 0 {
		return made
	}
	// Those before the first one elsewhere change nothing.
	return s.afterWrites(ctx, q, writes[least:], made)
}

// afterWrites has the last write of the object count.
func (s *Switchover) afterWrites(ctx context.Context, q *question, writes []written, made choice) choice {
	elsewhere := s.names[made.side.other()]
	for i := len(writes) - 1; i >= 0; i-- {
		if !s.concerns(ctx, q, &writes[i], &made) {
			continue
		}
		if writes[i].tracker == elsewhere {
			made.side, made.followed, made.phase = made.side.other(), true, plainPhase(made.side.other())
		}
		break
	}
	return made
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
func (s *Switchover) concerns(ctx context.Context, q *question, w *written, read *choice) bool {
	o := &read.object
	switch {
	case o.kind == typesObject:
		return w.object.kind == allTypes || w.object.kind == typesObject && sameName(w.object.product, o.product)
	case o.kind == attachmentObject:
		return w.object.kind == attachmentObject && w.object.id == o.id
	case w.object.kind == bugObject && w.object.alias == o.alias:
		return w.object.id == o.id
	case w.object.kind == bugObject, w.object.kind == attachmentObject && !w.made:
		bug := s.bugOf(ctx, q, w)
		return bug != 0 && bug == s.bugRead(ctx, q, w.tracker, read)
	default:
		return false
	}
}

// bugOf is the bug that a write shows in, 0 when that cannot be told. It is looked
// up once at most.
func (s *Switchover) bugOf(ctx context.Context, q *question, w *written) int64 {
	switch {
	case w.object.kind == bugObject && w.object.alias == "":
		return w.object.id
	case w.bug != 0 || w.looked:
		return w.bug
	}
	what := lookBug
	if w.object.kind == attachmentObject {
		what = lookAttachment
	}
	bug, told := s.followLook(ctx, q, w.tracker, lookup{what: what, object: w.object})
	if told {
		s.memory.learn(s.who(q), w, bug)
	}
	return bug
}

// bugRead is the id of the bug that is read, as the tracker of a write has it.
func (s *Switchover) bugRead(ctx context.Context, q *question, tracker string, read *choice) int64 {
	at := oldSide
	if tracker == s.names[newSide] {
		at = newSide
	}
	if read.bugID() == 0 && !read.tried[at] {
		read.tried[at] = true
		read.bug, _ = s.followLook(ctx, q, tracker, lookup{what: lookBug, object: read.object})
	}
	return read.bugID()
}

// followLook asks which bug something is or hangs on, 0 for none. It tells whether
// there was an answer.
func (s *Switchover) followLook(ctx context.Context, q *question, tracker string, l lookup) (bug int64, told bool) {
	if q.followLooks >= mostFollowLooks || s.memory.silent(tracker, s.now()) {
		return 0, false
	}
	if q.followLooks++; q.followLooks == 1 {
		q.followUntil = time.Now().Add(followPatience).UnixNano()
	}
	patient, cancel := context.WithDeadline(ctx, time.Unix(0, q.followUntil))
	defer cancel()
	answer, err := s.lookAt(patient, q, tracker, l)
	if err != nil {
		// A client that hung up says nothing of the tracker.
		if ctx.Err() == nil {
			s.memory.silence(tracker, s.now().Add(silence))
		}
		return 0, false
	}
	return answer.place.Bug, true
}
