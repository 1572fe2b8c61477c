package switchover

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"portico/upstream"
	"portico/upstream/state"
)

// A change of the rules that moves writes is two revisions. In the first one the writes that move wait (Table.Moving; Switchover.begin lets them
// wait). The second one, with the rules that come, is made when each process that is alive has reported the first one, which it does when it has
// ended such writes, and when the journal has copied theirs. A process without a heartbeat does not write, so nothing waits for it.

// barrierPoll is how often a change that moves writes looks who has still to report.
const barrierPoll = 50 * time.Millisecond

// BarrierError says that writes could not be moved, and the rules are as before.
type BarrierError struct{ Why string }

// Error implements error.
func (e *BarrierError) Error() string { return "writes cannot be moved now: " + e.Why }

// processName tells operators which process something is about.
func processName() string {
	host, _ := os.Hostname() // without it, the rest will do
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()[:8])
}

// moving are writes that another table sends to other trackers.
type moving struct {
	// rules are the names of those that decide them now, staying those of the other rules.
	rules, staying []string
	// to are the trackers that get them.
	to []string
}

// movedWrites returns the writes that another table sends to another tracker. Where the conditions differ, that may be any of them.
func movedWrites(before Table, from [2]string, after Table, to [2]string) (m moving) {
	sameScopes := before.Killed == nil && after.Killed == nil && slices.EqualFunc(before.Rules, after.Rules, func(a, b Rule) bool {
		return slices.Equal(a.Conditions(), b.Conditions())
	})
	present, next := before.writers(from), after.writers(to)
	all := slices.Concat(present, next)
	if !slices.ContainsFunc(all, func(tracker string) bool { return tracker != all[0] }) {
		return moving{}
	}
	for i, rule := range before.Rules {
		if !sameScopes {
			m.rules = append(m.rules, rule.Name)
		} else if present[i] != next[i] {
			m.rules, m.to = append(m.rules, rule.Name), append(m.to, next[i])
		} else {
			m.staying = append(m.staying, rule.Name)
		}
	}
	if !sameScopes {
		m.to = next
	}
	slices.Sort(m.to)
	m.to = slices.Compact(m.to)
	return m
}

// writers lists the trackers that get the writes of each rule.
func (t Table) writers(names [2]string) (all []string) {
	for _, rule := range t.Rules {
		if t.Killed != nil {
			rule.Writes = PhaseOld
		}
		all = append(all, names[rule.Writes.side()])
	}
	return all
}

// move makes the revision after present, whose table is source, and puts it in force. Writes that move wait meanwhile, except for a kill. With a
// *BarrierError the rules are as before, in another revision. Lanes that are parked before stay behind.
func (s *Switchover) move(
	ctx context.Context, present state.Revision, source Table, action string, next Table, revision state.Revision,
) (state.Revision, error) {
	next.Moving = nil
	old, candidate := TrackersOf(present)
	moved := movedWrites(source, [2]string{old, candidate}, next, s.names)
	if len(moved.rules) == 0 || next.Killed != nil {
		return s.revise(ctx, present.Version, action, next, revision)
	}
	if rules := s.rules.Load(); rules != nil { // or writes would wait in vain
		if _, unknown := s.left(rules, moved.rules); unknown.After(s.now().Add(s.timing.barrier)) {
			return state.Revision{}, &BarrierError{"a tracker may still carry out a write, whose outcome is unknown, until " + unknown.UTC().Format(time.RFC3339)}
		}
	}
	before, err := s.toCopy(ctx, moved, 0)
	if err != nil {
		return state.Revision{}, err
	}
	source.Moving = moved.rules
	announced := revision
	announced.Base, announced.Reason = present.Base, revision.Reason+" (writes are about to move)"
	if announced, err = s.revise(ctx, present.Version, "", source, announced); err != nil {
		return state.Revision{}, err
	}
	if err = s.drain(ctx, announced.Version, moved, before.Parked); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timing.store)
		defer cancel()
		return state.Revision{}, errors.Join(err, s.giveUp(ctx, announced, source, err.Error()))
	}
	return s.revise(ctx, announced.Version, action, next, revision)
}

// toCopy counts the entries of the journal up to a number for the trackers that get writes, the lanes that wait for an operator, and returns the
// highest number.
func (s *Switchover) toCopy(ctx context.Context, moved moving, upTo int64) (all state.ToCopy, err error) {
	for _, tracker := range moved.to {
		one, err := s.store.JournalToCopy(ctx, tracker, moved.staying, upTo)
		if err != nil {
			return all, err
		}
		one.Open, one.Parked = one.Open+all.Open, one.Parked+all.Parked
		all = one
	}
	return all, nil
}

// drain waits until each process that is alive has reported a revision, and until what it has written before is copied. So many lanes were parked
// before, and no others may stay behind.
func (s *Switchover) drain(ctx context.Context, version int64, moved moving, parked int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timing.barrier)
	defer cancel()
	why, upTo := "", int64(math.MaxInt64)
	for {
		if s.rules.Load() != nil {
			_ = s.beat(ctx) // an error is noted in the status, and this process does not report the revision
		}
		behind, err := s.store.Behind(ctx, version)
		var left state.ToCopy
		if err == nil && len(behind) == 0 {
			left, err = s.toCopy(ctx, moved, upTo)
			upTo = min(upTo, left.Last)
		}
		switch {
		case err != nil:
			return &BarrierError{cmp.Or(why, err.Error())}
		case s.pending.Load() != nil:
			return &BarrierError{"the kill switch is thrown"}
		case len(behind) > 0:
			why = "these processes have not ended writes that move: " + strings.Join(behind, ", ")
		case left.Open > 0:
			why = fmt.Sprintf("writes that are not copied to the other tracker: %d", left.Open)
			if left.Paused {
				return &BarrierError{why + ", and copying is paused: portico migrate journal resume"}
			}
		case left.Parked > parked:
			return &BarrierError{fmt.Sprintf("%d lanes of the journal wait for an operator that did not before: portico migrate journal list", left.Parked-parked)}
		default:
			for _, tracker := range moved.to { // a late copy could undo what is written there from now on
				err = errors.Join(err, s.store.ParkBehind(ctx, tracker, moved.staying))
			}
			return err
		}
		if !upstream.Pause(ctx, barrierPoll) {
			return &BarrierError{why}
		}
	}
}

// giveUp ends a barrier with the rules as before. Another process may have done so already.
func (s *Switchover) giveUp(ctx context.Context, announced state.Revision, source Table, why string) error {
	source.Moving, announced.Reason = nil, why
	_, err := s.revise(ctx, announced.Version, "", source, announced)
	if _, faster := errors.AsType[*state.ConflictError](err); faster {
		return nil
	}
	return err
}

// aliveTime is a time without a gap between heartbeats, until when the process may write without another one. In a gap others may have moved what was
// decided before since.
type aliveTime struct{ since, until time.Time }

// beat renews the heartbeat, which says that this process has ended the writes that move by the rules in force, and then asks for other rules: what
// another process has changed before the heartbeat counted is in force then. So this process may write for a while.
func (s *Switchover) beat(ctx context.Context) error {
	began, rules := s.now(), s.rules.Load()
	version := rules.revision.Version
	if count, unknown := s.left(rules, rules.source.Moving); count > 0 || unknown.After(began) {
		version-- // which does not matter where nothing is moving
	}
	err := s.store.Beat(ctx, s.process, version, s.timing.lease)
	if err != nil {
		s.noteStore(err)
		return err
	}
	if err = s.refresh(ctx); err == nil || errors.Is(err, errForeign) {
		next := aliveTime{s.now(), began.Add(s.timing.lease)}
		if former := s.alive.Load(); former != nil && next.since.Before(former.until) {
			next.since = former.since
		}
		s.alive.Store(&next)
	}
	return err
}
