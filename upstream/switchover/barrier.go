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

	"portico/upstream/state"
)

// A change of the rules that moves writes is two revisions. In the first one the writes that move wait (Table.Moving). The second one, with the
// rules that come, is made when each process that is alive has reported the first one, which it does when it has ended such writes, and when
// the journal has copied theirs. A process without a heartbeat does not write, so nothing waits for it.

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
	// rules are the names of those that decide them now.
	rules []string
	// to are the trackers that get them.
	to []string
}

// movedWrites returns the writes that another table sends to another tracker. Where the conditions differ, that may be any of them.
func movedWrites(before Table, from [2]string, after Table, to [2]string) (m moving) {
	sameScopes := before.Killed == nil && after.Killed == nil && slices.EqualFunc(before.Rules, after.Rules, func(a, b Rule) bool {
		return slices.Equal(a.Conditions(), b.Conditions())
	})
	present, next := before.writers(from), after.writers(to)
	all := slices.Sorted(slices.Values(slices.Concat(present, next)))
	if all[0] == all[len(all)-1] {
		return moving{}
	}
	for i, rule := range before.Rules {
		if !sameScopes || present[i] != next[i] {
			m.rules = append(m.rules, rule.Name)
		}
		if sameScopes && present[i] != next[i] {
			m.to = append(m.to, next[i])
		}
	}
	if !sameScopes {
		m.to = next
	}
	m.to = slices.Compact(slices.Sorted(slices.Values(m.to)))
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

// move makes the revision after present, whose table is source. Writes that move wait meanwhile. With a *BarrierError the rules
// are as before, in another revision.
func (s *Switchover) move(
	ctx context.Context, present state.Revision, source Table, moved moving, action string, next Table, revision state.Revision,
) (state.Revision, error) {
	next.Moving = nil
	if len(moved.rules) == 0 {
		return s.revise(ctx, present.Version, action, next, revision)
	}
	if err := s.cannotMove(ctx, moved); err != nil {
		return state.Revision{}, err
	}
	parked, err := s.parked(ctx, moved)
	if err != nil {
		return state.Revision{}, err
	}
	source.Moving = moved.rules
	announced := revision
	announced.Base, announced.Reason = present.Base, revision.Reason+" (writes are about to move)"
	announced, err = s.revise(ctx, present.Version, "", source, announced)
	if err == nil && s.rules.Load() != nil {
		err = s.take(announced)
	}
	if err != nil {
		return state.Revision{}, err
	}
	err = s.drain(ctx, announced.Version, moved)
	if now, failed := s.parked(ctx, moved); err == nil && (failed != nil || now > parked) {
		// The operator has not agreed to move without these.
		err = &BarrierError{fmt.Sprintf("%d lanes of the journal wait for an operator that did not before: portico migrate journal list", now-parked)}
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timing.store)
		defer cancel()
		return state.Revision{}, errors.Join(err, s.giveUp(ctx, announced, source, err.Error()))
	}
	return s.revise(ctx, announced.Version, action, next, revision)
}

// cannotMove returns a reason why a barrier would not end, so that no write waits for it in vain.
func (s *Switchover) cannotMove(ctx context.Context, moved moving) error {
	if rules := s.rules.Load(); rules != nil {
		if _, unknown := s.left(rules, moved.rules); unknown.After(s.now().Add(s.timing.barrier)) {
			return &BarrierError{fmt.Sprintf("a tracker may still carry out a write, whose outcome is unknown, until %s", unknown.UTC().Format(time.RFC3339))}
		}
	}
	paused, err := s.store.JournalPaused(ctx)
	if err == nil && paused {
		var open int64
		if open, _, err = s.uncopied(ctx, moved, math.MaxInt64); err == nil && open > 0 {
			return &BarrierError{fmt.Sprintf("%d writes are not copied to the other tracker, and copying is paused: portico migrate journal resume", open)}
		}
	}
	return err
}

// uncopied counts the entries of the journal up to a number that the trackers which get writes have still to get, and returns the highest number.
func (s *Switchover) uncopied(ctx context.Context, moved moving, upTo int64) (n, last int64, err error) {
	for _, tracker := range moved.to {
		open, highest, err := s.store.JournalOpen(ctx, tracker, upTo)
		if err != nil {
			return 0, 0, err
		}
		n, last = n+open, highest
	}
	return n, last, nil
}

// parked counts the lanes of the journal that wait for an operator, for the trackers which get writes.
func (s *Switchover) parked(ctx context.Context, moved moving) (n int64, err error) {
	for _, tracker := range moved.to {
		count, err := s.store.JournalParked(ctx, tracker)
		if err != nil {
			return 0, err
		}
		n += count
	}
	return n, nil
}

// drain waits until each process that is alive has reported a revision, and until what it has written before is copied.
func (s *Switchover) drain(ctx context.Context, version int64, moved moving) error {
	ctx, cancel := context.WithTimeout(ctx, s.timing.barrier)
	defer cancel()
	why, upTo := "", int64(math.MaxInt64)
	for {
		if s.rules.Load() != nil {
			_ = s.beat(ctx) // an error is noted in the status, and this process does not report the revision
		}
		behind, err := s.store.Behind(ctx, version)
		var open, last int64
		if err == nil && len(behind) == 0 {
			open, last, err = s.uncopied(ctx, moved, upTo)
			upTo = min(upTo, last)
		}
		switch {
		case err != nil:
			return &BarrierError{cmp.Or(why, err.Error())}
		case len(behind) > 0:
			why = "these processes have not ended writes that move: " + strings.Join(behind, ", ")
		case open > 0:
			why = fmt.Sprintf("%d writes are not copied to the other tracker", open)
		default:
			return nil
		}
		if s.pendingKill() != nil {
			return &BarrierError{"the kill switch is thrown"}
		}
		select {
		case <-ctx.Done():
			return &BarrierError{why}
		case <-time.After(barrierPoll):
		}
	}
}

// giveUp ends a barrier with the rules as before. Another process may have done so already.
func (s *Switchover) giveUp(ctx context.Context, announced state.Revision, source Table, why string) error {
	source.Moving = nil
	back := announced
	back.Reason = why
	made, err := s.revise(ctx, announced.Version, "", source, back)
	if _, faster := errors.AsType[*state.ConflictError](err); faster {
		return nil
	}
	if err == nil && s.rules.Load() != nil {
		err = s.take(made)
	}
	return err
}

// beat renews the heartbeat, which says that this process has ended the writes that move by the rules in force, and then asks for other rules: what
// another process has changed before the heartbeat counted is in force then. So this process may write for a while.
func (s *Switchover) beat(ctx context.Context) error {
	began, rules := s.now(), s.rules.Load()
	version := rules.revision.Version
	if len(rules.source.Moving) > 0 {
		if count, unknown := s.left(rules, rules.source.Moving); count > 0 || unknown.After(began) {
			version--
		}
	}
	err := s.store.Beat(ctx, s.process, version, s.timing.lease)
	if err != nil {
		s.unread(err)
		return err
	}
	if err = s.refresh(ctx); err == nil || errors.Is(err, errForeign) {
		s.alive.Store(new(began.Add(s.timing.lease)))
	}
	return err
}

// giveUpAfter gives up the barrier of rules that this process has seen since a time: the process that has begun it has ended.
func (s *Switchover) giveUpAfter(ctx context.Context, rules *ruleSet, since time.Time) {
	if len(rules.source.Moving) == 0 || s.now().Before(since.Add(s.timing.barrier+s.timing.lease)) {
		return
	}
	if err := s.giveUp(ctx, rules.revision, rules.source, "the process that moved writes has not finished"); err != nil {
		rules.Logger.Warn("a change of the rules that no process finishes could not be taken back", "cause", err)
	}
}
