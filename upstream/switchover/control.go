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
	if unsigned(actor, reason) {
		return &UnsignedError{}
	}
	return s.inTurn(ctx, func(ctx context.Context) error {
		// Another process may have made the version a moment ago.
		if version != s.table.Load().revision.Version {
			if err := s.refresh(ctx); err != nil {
				return fmt.Errorf("read the rules that count: %w", err)
			}
		}
		present := s.table.Load()
		if version != present.revision.Version {
			return conflict(version, present.revision, nil)
		}
		next.Killed = present.source.Killed
		return s.put(ctx, actionChange, version, next, actor, reason)
	})
}

func conflict(expected int64, present state.Revision, cause error) *ConflictError {
	return &ConflictError{Expected: expected, Present: present.Version, Actor: present.Actor, At: present.At, Err: cause}
}

// turn is a lock that is waited for no longer than a context lasts. Make it with
// room for one.
type turn chan struct{}

func (t turn) enter(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another change of the rules: %w", ctx.Err())
	}
}

func (t turn) leave() { <-t }

// inTurn makes one change at a time, and none that the store makes wait for ever.
// What counts here does not depend on it: a kill waits for nobody.
func (s *Switchover) inTurn(ctx context.Context, change func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.StoreTimeout)
	defer cancel()
	if err := s.memory.storing.enter(ctx); err != nil {
		return err
	}
	defer s.memory.storing.leave()
	return change(ctx)
}

// mostRetries bounds how often a change is tried again while others change too.
const mostRetries = 20

// retried makes a change that does not depend on what others change.
func (s *Switchover) retried(ctx context.Context, change func(context.Context) error) error {
	for left := mostRetries; ; left-- {
		err := change(ctx)
		if _, faster := errors.AsType[*ConflictError](err); !faster || left == 0 {
			return err
		}
	}
}

// put makes the revision after a version and takes it over. When somebody was
// faster it takes over what that one made. The configuration that it counts for
// is that of the rules it changes, which need not be the one of this process.
func (s *Switchover) put(ctx context.Context, action string, version int64, next Table, actor, reason string) error {
	made, err := s.revise(ctx, version, state.Revision{
		Base: s.table.Load().revision.Base, Source: state.SourceAdmin, Actor: actor, Reason: reason,
	}, next)
	if faster, ok := errors.AsType[*state.ConflictError](err); ok {
		s.takeLogged(faster.Present)
		return conflict(version, faster.Present, err)
	}
	if err != nil {
		return fmt.Errorf("store the changed rules: %w", err)
	}
	err = s.take(made)
	s.audit(ctx, action, made)
	return err
}

// audit adds a change to the audit trail. The revision itself has it too, so that
// a failure here is no reason to say that the change failed.
func (s *Switchover) audit(ctx context.Context, action string, made state.Revision) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.StoreTimeout)
	defer cancel()
	err := s.ledger.Append(ctx, state.Record{
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
	if err == nil && known && s.foreign(present) {
		err = errForeign
	}
	s.noteStale(err)
	if err != nil || !known {
		return err
	}
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
		s.options.Logger.Warn("what others change of the rules is not known here; the last ones known count", "cause", err)
	}
}

// watch asks for changes made elsewhere, and forgets what nobody needs.
func (s *Switchover) watch() {
	tick := time.NewTicker(s.options.Poll)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(s.life, max(s.options.Poll, 5*time.Second))
		if err := s.refresh(ctx); err == nil {
			if err := s.deliver(ctx); err != nil {
				s.options.Logger.Warn("the store could not be told of the kill switch", "cause", err)
			}
		}
		cancel()
		now := s.now()
		s.memory.sweep(now.Add(-s.options.Follow), now)
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
	if t.pending != nil {
		status.Undelivered = t.pending.reason()
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
