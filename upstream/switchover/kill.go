package switchover

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"portico/upstream/state"
)

// undelivered is a kill that counts here and that the ledger may not know of.
type undelivered struct {
	kill *Kill
	// at is the ledger that is to be told.
	at ledger
	// since is the version of the rules that was known when it was thrown.
	since int64
	// why is why the ledger could not be told at the last attempt.
	why atomic.Pointer[string]
}

// inForce is a kill, or none, as it counts by what one ledger says.
type inForce struct {
	kill *Kill
	at   ledger
}

// reason tells why the ledger does not know of a kill.
func (u *undelivered) reason() string {
	if why := u.why.Load(); why != nil {
		return *why
	}
	return "it is being told"
}

// known tells whether what a ledger has makes the kill needless: it is there, or a
// later one is.
func (u *undelivered) known(at ledger, stored *Kill) bool {
	return u.at == at && stored != nil && !stored.At.Before(u.kill.At)
}

// killGrace is how long a kill, which counts already, waits for the ledger before
// it is answered.
const killGrace = time.Second

// Kill takes everything back to the old tracker at once. It does so here even when
// the store cannot be told: an *UndeliveredError says that other processes do not
// know yet. The store is told as soon as it can be.
func (s *Switchover) Kill(ctx context.Context, actor, reason string) error {
	if unsigned(actor, reason) {
		return &UnsignedError{}
	}
	s.throw(&Kill{Actor: actor, Reason: reason, At: s.now().UTC(), Old: s.names[oldSide]})
	// The store is told even when whoever threw the switch hangs up.
	told := make(chan error, 1)
	s.work.Go(func() { told <- s.deliver(s.life) })
	grace := time.NewTimer(killGrace)
	defer grace.Stop()
	var err error
	select {
	case err = <-told:
	case <-grace.C:
		err = errNoAnswerYet
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return &UndeliveredError{Err: err}
	}
	return nil
}

// errNoAnswerYet says that a store takes its time.
var errNoAnswerYet = errors.New("it has not answered yet")

// throw makes a kill count here.
func (s *Switchover) throw(kill *Kill) {
	s.memory.rules.Lock()
	defer s.memory.rules.Unlock()
	present := s.table.Load()
	s.memory.pending = &undelivered{kill: kill, at: s.ledger, since: present.revision.Version}
	s.install(newTable(present.source, present.revision))
}

// adopt has a kill told to the ledger that a reload of the configuration has chosen, whether the
// former one knew of it or not.
func (s *Switchover) adopt(version int64) {
	s.memory.rules.Lock()
	defer s.memory.rules.Unlock()
	kill, at := s.memory.inForce.kill, s.memory.inForce.at
	if former := s.memory.pending; former != nil {
		kill, at = former.kill, former.at
	}
	if kill != nil && at != s.ledger {
		s.memory.pending = &undelivered{kill: kill, at: s.ledger, since: version}
	}
}

// Unturned refuses a primary tracker while a kill is in force that takes everything to another
// one, as whoever threw it meant. Errors are *TurnedError.
func (m *Memory) Unturned(primary string) error {
	m.rules.Lock()
	defer m.rules.Unlock()
	return m.inForce.kill.unturned(primary)
}

// unturned is nil where there is no kill.
func (k *Kill) unturned(primary string) error {
	if k != nil && k.Old != "" && k.Old != primary {
		return &TurnedError{Kill: *k, Old: primary}
	}
	return nil
}

// settle ends a kill that only this process knows of.
func (s *Switchover) settle(pending *undelivered) {
	s.memory.rules.Lock()
	defer s.memory.rules.Unlock()
	if s.memory.pending == pending {
		s.memory.pending = nil
	}
	if present := s.table.Load(); present.pending == pending {
		s.install(newTable(present.source, present.revision))
	}
}

// deliver tells the ledger of a kill that it does not know.
func (s *Switchover) deliver(ctx context.Context) error {
	pending := s.memory.undelivered()
	if pending == nil || pending.at != s.ledger {
		return nil
	}
	err := s.inTurn(ctx, func(ctx context.Context) error { return s.retried(ctx, s.deliverOnce) })
	if err != nil {
		pending.why.Store(new(err.Error()))
	}
	return err
}

// deliverOnce is called in turn, so that no revival comes in between.
func (s *Switchover) deliverOnce(ctx context.Context) error {
	pending, present := s.memory.undelivered(), s.table.Load()
	if pending == nil || pending.at != s.ledger {
		return nil
	}
	over, err := s.revivedSince(ctx, pending, present.revision.Version)
	if err != nil {
		return fmt.Errorf("read what was changed meanwhile: %w", err)
	}
	if over {
		s.options.Logger.Warn("a kill that only this process knew of is over: the rules were revived elsewhere after it",
			"actor", pending.kill.Actor, "reason", pending.kill.Reason)
		s.settle(pending)
		return nil
	}
	next := present.source
	next.Killed = pending.kill
	return s.put(ctx, actionKill, present.revision.Version, next, pending.kill.Actor, pending.kill.Reason)
}

// mostLookedBack bounds how many revisions are searched for a revival.
const mostLookedBack = 1000

// revivedSince tells whether somebody has revived the rules after a kill that the
// ledger does not know of. Who did so has judged later than whoever threw it.
func (s *Switchover) revivedSince(ctx context.Context, pending *undelivered, version int64) (bool, error) {
	if version <= pending.since {
		return false, nil
	}
	revisions, err := s.ledger.Revisions(ctx, int(min(version-pending.since+1, mostLookedBack)))
	if err != nil {
		return false, err
	}
	for i := 0; i+1 < len(revisions); i++ {
		if revives(revisions[i+1], revisions[i]) && revisions[i].At.After(pending.kill.At) {
			return true, nil
		}
	}
	return false, nil
}

// revives tells whether a revision ends the kill of the one before.
func revives(before, after state.Revision) bool {
	return killedIn(before) != nil && killedIn(after) == nil
}

// Revive ends a kill; the rules count again. Without one it does nothing. One that
// only this process knows of ends even when the store does not answer.
func (s *Switchover) Revive(ctx context.Context, actor, reason string) error {
	if unsigned(actor, reason) {
		return &UnsignedError{}
	}
	return s.inTurn(ctx, func(ctx context.Context) error {
		asked := s.refresh(ctx)
		pending := s.memory.undelivered()
		switch stored := s.table.Load().source.Killed; {
		case stored == nil && pending == nil, stored != nil && asked != nil:
			return asked
		case stored != nil:
			err := s.retried(ctx, func(ctx context.Context) error { return s.reviveOnce(ctx, actor, reason) })
			if err != nil {
				return err
			}
		}
		if pending != nil {
			s.settle(pending)
			s.options.Logger.Info("a kill that only this process knew of is taken back", "actor", actor, "reason", reason)
		}
		return nil
	})
}

func (s *Switchover) reviveOnce(ctx context.Context, actor, reason string) error {
	present := s.table.Load()
	next := present.source
	if next.Killed == nil {
		return nil
	}
	next.Killed = nil
	return s.put(ctx, actionRevive, present.revision.Version, next, actor, reason)
}
