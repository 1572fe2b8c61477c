package switchover

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"portico/upstream"
	"portico/upstream/state"
)

// baseOf is the digest of configured rules, with the names of the trackers that they are about.
func (s *Switchover) baseOf(table Table) string {
	text, _ := json.Marshal(struct {
		Old, New string
		Table    Table
	}{s.names[oldSide], s.names[newSide], table}, json.Deterministic(true)) // rules that cannot be written cannot be stored either
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]) + " " + s.names[oldSide] + " " + s.names[newSide]
}

// TrackersOf names the trackers that a revision is about, the old one first. Without a revision both are empty.
func TrackersOf(revision state.Revision) (old, candidate string) {
	_, pair, _ := strings.Cut(revision.Base, " ")
	old, candidate, _ = strings.Cut(pair, " ")
	return old, candidate
}

// tableOf reads the table of a revision. One about other trackers, or about the same ones the other way round, is
// errForeign: its phases mean something else.
func (s *Switchover) tableOf(revision state.Revision) (t Table, err error) {
	if old, candidate := TrackersOf(revision); s.names != [2]string{old, candidate} {
		return Table{}, errForeign
	}
	if err = json.Unmarshal(revision.Table, &t); err == nil && len(t.Rules) == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		return Table{}, fmt.Errorf("read version %d of the rules: %w", revision.Version, err)
	}
	return t, nil
}

// configured gives the stored rules if they were made on the configured ones, and else stores the
// configured ones. Only Revive ends a kill.
func (s *Switchover) configured(ctx context.Context, base string, table Table) (state.Revision, Table, error) {
	present, err := s.store.CurrentRevision(ctx)
	if err != nil {
		return present, Table{}, err
	}
	if present.Base == base {
		source, err := s.tableOf(present)
		return present, source, err
	}
	var stored Table
	_ = json.Unmarshal(present.Table, &stored) // without a table there is no kill either
	if killed := stored.Killed; killed != nil && killed.Old != s.names[oldSide] {
		return present, Table{}, fmt.Errorf("the kill switch takes everything to %q since %s (%s: %s), and not to %q: revive the rules before the primary tracker becomes another one",
			killed.Old, killed.At.Format(time.RFC3339), killed.Actor, killed.Reason, s.names[oldSide])
	}
	next := table
	next.Killed, next.Revived = stored.Killed, stored.Revived
	made, err := s.move(ctx, present, stored, "", next, state.Revision{
		Base: base, Source: state.SourceConfig, Actor: "configuration", Reason: "the configured rules",
	})
	return made, next, err
}

// revise makes the revision of a table that comes after the expected one, and puts it in force. With a *state.ConflictError another process was
// faster, and its revision is in force.
func (s *Switchover) revise(ctx context.Context, expected int64, action string, table Table, next state.Revision) (state.Revision, error) {
	text, err := json.Marshal(table)
	if err != nil {
		return next, err
	}
	next.Table, next.At = text, s.now().UTC()
	made, err := s.store.Revise(ctx, expected, next, action)
	if conflict, faster := errors.AsType[*state.ConflictError](err); faster {
		return made, cmp.Or(lostRules(state.Revision{Version: expected}, conflict.Present), s.take(conflict.Present), err)
	}
	if err == nil {
		err = s.take(made)
	}
	return made, err
}

// take puts a stored revision in force, unless it is older than the present one. Before the first one nothing is in force, and a revision may be
// about the trackers of a former configuration.
func (s *Switchover) take(revision state.Revision) error {
	if s.rules.Load() == nil {
		return nil
	}
	source, err := s.tableOf(revision)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules.Load().revision.Version < revision.Version {
		s.install(source, revision)
	}
	return nil
}

// lostRules returns an error if what the store has does not follow a revision that it had.
func lostRules(had, present state.Revision) error {
	if present.Version > had.Version || present.Version == had.Version && present.At.Equal(had.At) {
		return nil
	}
	return fmt.Errorf("the store has lost version %d of the rules, which is in force here: it was restored, or has failed over without its last changes; stop all processes, "+
		"compare both trackers, and start Portico again", had.Version)
}

// refresh takes over what other processes have changed, and notes why it cannot. Without rules that were in force this process does not write, since
// others may go by the rules before.
func (s *Switchover) refresh(ctx context.Context) error {
	former := s.rules.Load().revision
	present, err := s.store.CurrentRevision(ctx)
	if err == nil {
		if err = lostRules(former, present); err != nil {
			s.alive.Store(&aliveTime{})
		} else {
			err = s.take(present)
		}
	}
	s.noteStore(err)
	return err
}

// noteStore notes why the store could not be asked, nil if it could.
func (s *Switchover) noteStore(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	former := s.stale
	s.stale = ""
	if err != nil {
		s.stale = err.Error()
	}
	switch {
	case former == "" && err != nil:
		s.settings.Logger.Warn("rules of other processes are unknown here; the last known ones stay in force, and soon writes are refused", "cause", err)
	case former != "" && err == nil:
		s.settings.Logger.Info("rules of other processes are known again")
	}
}

// watch renews the heartbeat, asks for changes made elsewhere and tells the store of a kill that it does not have.
func (s *Switchover) watch() {
	for {
		rules, wait := s.rules.Load(), s.timing.poll
		moving := len(rules.source.Moving) > 0
		if moving {
			wait = barrierPoll
		}
		if !upstream.Pause(s.life, wait) {
			return
		}
		s.synchronize(rules, moving)
	}
}

// synchronize is what watch does each time. moving says that writes wait by the rules.
func (s *Switchover) synchronize(rules *ruleSet, moving bool) {
	ctx, cancel := context.WithTimeout(s.life, 3*time.Second)
	defer cancel()
	renew := s.refresh
	if moving || s.alive.Load().until.Before(s.now().Add(s.timing.lease/2)) {
		renew = s.beat
	}
	if renew(ctx) != nil {
		return
	}
	_ = s.deliver(ctx) // the status says why not
	// The process that has begun a barrier has ended when its rules have been in force for so long.
	if !moving || s.now().Before(rules.since.Add(s.timing.barrier+s.timing.lease)) {
		return
	}
	if err := s.giveUp(ctx, rules.revision, rules.source, "the process that moved writes has not finished"); err != nil {
		rules.Logger.Warn("a change of the rules that no process finishes could not be taken back", "cause", err)
	}
}

// change makes one change at a time, and bounds how long the store may take with it. It is tried again while other processes are faster.
func (s *Switchover) change(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timing.store+s.timing.barrier)
	defer cancel()
	select {
	case s.changing <- struct{}{}:
		defer func() { <-s.changing }()
	case <-ctx.Done():
		return fmt.Errorf("wait for another change of the rules: %w", ctx.Err())
	}
	for {
		err := try(ctx)
		if _, faster := errors.AsType[*state.ConflictError](err); !faster {
			return err
		}
	}
}

// Actions of the audit trail.
const (
	actionChange = "switchover.change"
	actionKill   = "switchover.kill"
	actionRevive = "switchover.revive"
)

// put makes a table the revision after the present one, when the writes that it moves have ended. The base stays that of the present rules, which
// need not be the one of this process.
func (s *Switchover) put(ctx context.Context, action string, present *ruleSet, next Table, actor, reason string) error {
	_, err := s.move(ctx, present.revision, present.source, action, next, state.Revision{
		Base: present.revision.Base, Source: state.SourceAdmin, Actor: actor, Reason: reason,
	})
	return err
}

// Change puts other rules in force, here at once and in other processes when they ask
// next. version is the one that the change was made on. The kill switch stays as it is. Errors are *state.ConflictError, *InvalidError, *BarrierError,
// or those of the store; with any of them nothing changes.
func (s *Switchover) Change(ctx context.Context, version int64, next Table, actor, reason string) error {
	rules := s.rules.Load()
	wrong := faults(next.Problems(rules.CallerNames))
	for i, rule := range next.Rules {
		if rule.Replicate && rules.Journal == nil {
			wrong = append(wrong, Problem{Rule: i, Field: "replicate", Message: errNoJournal.Error()})
		}
	}
	if len(wrong) > 0 {
		return &InvalidError{Problems: wrong}
	}
	var late error
	err := s.change(ctx, func(ctx context.Context) error {
		// Another process may have made the version a moment ago.
		if err := s.refresh(ctx); err != nil {
			return err
		}
		present := s.rules.Load()
		if version != present.revision.Version {
			late = &state.ConflictError{Present: present.revision}
			return nil
		}
		next.Killed, next.Revived = present.source.Killed, present.source.Revived
		return s.put(ctx, actionChange, present, next, actor, reason)
	})
	return cmp.Or(err, late)
}

// History gives the last revisions, the newest first.
func (s *Switchover) History(ctx context.Context, limit int) ([]state.Revision, error) {
	return s.store.Revisions(ctx, limit)
}

// Audit gives the last records of the audit trail, the newest first.
func (s *Switchover) Audit(ctx context.Context, limit int) ([]state.Record, error) {
	return s.store.Audit(ctx, limit)
}
