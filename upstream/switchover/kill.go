package switchover

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"portico/upstream/state"
)

// Kill takes everything back to the old tracker at once. It does so here even when
// the store cannot be told: an *UndeliveredError says that other processes do not
// know yet. The store is told as soon as it can be.
func (s *Switchover) Kill(ctx context.Context, actor, reason string) error {
	at := s.now().UTC()
	if revived := s.rules.Load().source.Revived; revived.After(at) { // by the clock of another process
		at = revived
	}
	s.undelivered.Store(new("it is being told"))
	s.pending.Store(&Kill{Actor: actor, Reason: reason, At: at, Old: s.names[oldSide]})
	s.reinstall()
	// A store that is not told in time is told by watch.
	ctx, cancel := context.WithTimeout(ctx, s.timing.kill)
	defer cancel()
	if err := s.deliver(ctx); err != nil {
		return &UndeliveredError{Err: err}
	}
	return nil
}

// reinstall puts the present rules in force again, after a kill that only this process knows of or the end of one.
func (s *Switchover) reinstall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	present := s.rules.Load()
	s.install(present.source, present.revision)
}

// endLocalKill ends a kill that only this process knows of, if there is one.
func (s *Switchover) endLocalKill(pending *Kill) {
	if pending != nil && s.pending.CompareAndSwap(pending, nil) {
		s.rules.Load().Logger.Warn("a kill that only this process knew of is over: the rules were revived", "actor", pending.Actor, "reason", pending.Reason)
		s.reinstall()
	}
}

// deliver tells the store of a kill that it does not have. A kill from before the last revival elsewhere
// is over.
func (s *Switchover) deliver(ctx context.Context) error {
	if s.pending.Load() == nil {
		return nil
	}
	err := s.change(ctx, func(ctx context.Context) error {
		pending, present := s.pending.Load(), s.rules.Load()
		if pending == nil || present.source.Revived.After(pending.At) {
			s.endLocalKill(pending)
			return nil
		}
		next, killed := present.source, *pending
		killed.Missing = s.missing(ctx, present)
		next.Killed = &killed
		if present.Journal != nil { // what the old tracker does not have yet would now overwrite later writes there
			if err := s.store.KillJournal(ctx, killed.Old, state.Record{Actor: killed.Actor, Action: actionKill, Reason: killed.Reason}); err != nil {
				return err
			}
		}
		return s.put(ctx, actionKill, present, next, pending.Actor, pending.Reason)
	})
	if err != nil {
		s.undelivered.Store(new(err.Error()))
	}
	return err
}

// maxNamedLosses bounds the kinds of writes of one rule that missing names.
const maxNamedLosses = 100

// missing says which writes the old tracker will not have.
func (s *Switchover) missing(ctx context.Context, rules *ruleSet) (lines []string) {
	all, err := s.store.JournalOverview(ctx, maxNamedLosses)
	if err != nil {
		return []string{"what is missing is not known: " + err.Error()}
	}
	open := map[string]int64{}
	for _, count := range all.Counts {
		if count.Receiver == s.names[oldSide] {
			open[count.Rule] += count.Entries
		}
	}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		lines = append(lines, fmt.Sprintf("rule %q: writes that are not copied from %s: at least %d", name, s.names[newSide], open[name]))
	}
	for _, loss := range all.Losses {
		if loss.Receiver == s.names[oldSide] && (loss.Kind != state.LossPassed || !rules.source.PassedCopied) {
			lines = append(lines, fmt.Sprintf("%s %s, never copied: at least %d", loss.Kind, loss.What, loss.Entries))
		}
	}
	for _, rule := range rules.source.Rules {
		if rule.Writes.New() && !rule.Replicate {
			lines = append(lines, fmt.Sprintf("rule %q: all writes at %s, which are not copied", rule.Name, s.names[newSide]))
		}
	}
	return lines
}

// Revive ends a kill; the rules are in force again. Without a kill it does nothing. One that
// only this process knows of ends even when the store does not respond.
func (s *Switchover) Revive(ctx context.Context, actor, reason string) error {
	return s.change(ctx, func(ctx context.Context) error {
		unread, pending, present := s.refresh(ctx), s.pending.Load(), s.rules.Load()
		next := present.source
		switch {
		case next.Killed == nil && pending == nil:
			return unread
		case next.Killed != nil:
			if err := s.store.ParkKilled(ctx); err != nil {
				return err
			}
			next.Killed, next.Revived = nil, s.now().UTC()
			if err := s.put(ctx, actionRevive, present, next, actor, reason); err != nil {
				return err
			}
		}
		s.endLocalKill(pending)
		return nil
	})
}
