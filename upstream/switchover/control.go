package switchover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"portico/upstream/state"
)

// What the audit trail calls changes.
const (
	actionChange = "switchover.change"
	actionKill   = "switchover.kill"
	actionRevive = "switchover.revive"
)

// Change makes other rules count, here at once and in other replicas when they ask
// next. version is the one that the change was made on. The kill switch stays as
// it is. Errors are *ConflictError, *InvalidError, *UnsignedError, or those of the
// store; with any of them nothing changes.
func (s *Switchover) Change(ctx context.Context, version int64, next Table, actor, reason string) error {
	if wrong := faults(next.Problems(s.options.CallerNames)); len(wrong) > 0 {
		return &InvalidError{Problems: wrong}
	}
	return s.change(ctx, actionChange, actor, reason, func(present *table) (int64, Table) {
		next.Killed = present.source.Killed
		return version, next
	})
}

// Kill takes everything back to the old tracker at once. It does so here even when
// the store cannot be told; the error says that other replicas do not know yet,
// and the store is told as soon as it can be.
func (s *Switchover) Kill(ctx context.Context, actor, reason string) error {
	if unsigned(actor, reason) {
		return &UnsignedError{}
	}
	kill := &Kill{Actor: actor, Reason: reason, At: s.now().UTC()}
	s.changing.Lock()
	s.pending = kill
	present := s.table.Load()
	killed := present.source
	killed.Killed = kill
	s.install(newTable(killed, present.revision))
	s.changing.Unlock()
	return s.deliverKill(ctx)
}

// deliverKill tells the ledger of a kill that it does not know.
func (s *Switchover) deliverKill(ctx context.Context) error {
	s.changing.Lock()
	kill := s.pending
	s.changing.Unlock()
	if kill == nil {
		return nil
	}
	err := s.retried(ctx, actionKill, kill.Actor, kill.Reason, func(present *table) (int64, Table) {
		next := present.source
		next.Killed = kill
		return present.revision.Version, next
	})
	if err != nil {
		return fmt.Errorf("all goes to the old tracker, but only here: %w", err)
	}
	return nil
}

// Revive ends a kill; the rules count again. Without one it does nothing.
func (s *Switchover) Revive(ctx context.Context, actor, reason string) error {
	if unsigned(actor, reason) {
		return &UnsignedError{}
	}
	if err := s.refresh(ctx); err != nil {
		return err
	}
	if s.table.Load().killed == nil {
		return nil
	}
	return s.retried(ctx, actionRevive, actor, reason, func(present *table) (int64, Table) {
		next := present.source
		next.Killed = nil
		return present.revision.Version, next
	})
}

// mostRetries bounds how often a change is tried again while others change too.
const mostRetries = 20

// retried makes a change that does not depend on what others change.
func (s *Switchover) retried(ctx context.Context, action, actor, reason string, make func(*table) (int64, Table)) error {
	for left := mostRetries; ; left-- {
		err := s.change(ctx, action, actor, reason, make)
		if _, faster := errors.AsType[*ConflictError](err); !faster || left == 0 {
			return err
		}
	}
}

// change makes a revision of what make gives, and takes it over. When somebody was
// faster it takes over what that one made.
func (s *Switchover) change(ctx context.Context, action, actor, reason string, make func(*table) (int64, Table)) error {
	if unsigned(actor, reason) {
		return &UnsignedError{}
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	version, next := make(s.table.Load())
	made, err := s.revise(ctx, version, state.SourceAdmin, next, actor, reason)
	if conflict, ok := errors.AsType[*state.ConflictError](err); ok {
		s.takeLogged(conflict.Present)
		return &ConflictError{
			Expected: version, Present: conflict.Present.Version,
			Actor: conflict.Present.Actor, At: conflict.Present.At, Err: err,
		}
	}
	if err != nil {
		return fmt.Errorf("store the changed rules: %w", err)
	}
	if action == actionKill || action == actionRevive {
		s.pending = nil
	}
	s.audit(ctx, action, made)
	return s.take(made)
}

// audit adds a change to the audit trail. The revision itself has it too, so that
// a failure here is no reason to say that the change failed.
func (s *Switchover) audit(ctx context.Context, action string, made state.Revision) {
	err := s.ledger.Append(context.WithoutCancel(ctx), state.Record{
		At: made.At, Actor: made.Actor, Action: action, Reason: made.Reason,
		Subject: fmt.Sprintf("version %d", made.Version), Detail: made.Table,
	})
	if err != nil {
		s.options.Logger.Error("a change of the rules is not in the audit trail", "version", made.Version, "cause", err)
	}
}

func unsigned(actor, reason string) bool {
	return strings.TrimSpace(actor) == "" || strings.TrimSpace(reason) == ""
}

func (s *Switchover) takeLogged(revision state.Revision) {
	if err := s.take(revision); err != nil {
		s.options.Logger.Error("rules that another process stored cannot be used", "cause", err)
	}
}

// refresh takes over what other processes have changed.
func (s *Switchover) refresh(ctx context.Context) error {
	present, known, err := s.ledger.CurrentRevision(ctx)
	s.noteStale(err)
	if err != nil || !known {
		return err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if present.Version > s.table.Load().revision.Version {
		s.takeLogged(present)
	}
	return nil
}

func (s *Switchover) noteStale(err error) {
	var text string
	if err != nil {
		text = err.Error()
	}
	if former := s.stale.Swap(&text); err != nil && (former == nil || *former == "") {
		s.options.Logger.Warn("the store of the rules does not answer; the last ones known count", "cause", err)
	}
}

// watch asks for changes made elsewhere, and forgets what nobody needs.
func (s *Switchover) watch(life context.Context) {
	tick := time.NewTicker(s.options.Poll)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(life, max(s.options.Poll, 5*time.Second))
		if err := s.refresh(ctx); err == nil {
			if err := s.deliverKill(ctx); err != nil {
				s.options.Logger.Warn("the store could not be told of the kill switch", "cause", err)
			}
		}
		cancel()
		s.memory.sweep(s.now().Add(-s.options.Follow))
	}
}

// Status tells what counts and how often.
func (s *Switchover) Status(context.Context) Status {
	t := s.table.Load()
	status := Status{
		Callers: append([]string{}, s.options.CallerNames...),
		Old:     s.names[oldSide], New: s.names[newSide], Version: t.revision.Version, Source: t.revision.Source, Base: s.base,
		Actor: t.revision.Actor, Reason: t.revision.Reason, Changed: t.revision.At, Killed: t.killed,
		Passthrough: t.passthrough, Table: t.source, Rules: make([]RuleStatus, len(t.rules)),
		Followed: s.followed.Load(), Split: s.split.Load(), Refused: s.refusals.Load(), Lookups: s.lookups.Load(),
	}
	for i := range t.rules {
		hits := map[string]int64{}
		for side, name := range s.names {
			hits[name] = t.rules[i].hits[side].Load()
		}
		status.Rules[i] = RuleStatus{Rule: t.rules[i].Rule, Hits: hits}
	}
	if stale := s.stale.Load(); stale != nil {
		status.Stale = *stale
	}
	return status
}

// History gives the last revisions, the newest first.
func (s *Switchover) History(ctx context.Context, limit int) ([]state.Revision, error) {
	return s.ledger.Revisions(ctx, limit)
}

// DecodeTable reads a table as the admin API has it. Members that it does not
// know are an error, so that no condition is lost by a slip.
func DecodeTable(text []byte) (Table, error) {
	var t Table
	if err := json.Unmarshal(text, &t, json.RejectUnknownMembers(true)); err != nil {
		return Table{}, fmt.Errorf("read the rules: %w", err)
	}
	return t, nil
}
