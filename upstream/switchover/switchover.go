package switchover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// Switchover is a Tracker that sends each call to one of two Trackers, as the
// first rule that matches it says.
type Switchover struct {
	options  Options
	names    [2]string
	trackers [2]upstream.Tracker
	memory   *Memory
	ledger   ledger
	// base is the digest of the configured rules, with the trackers that they are about.
	base string
	now  func() time.Time

	table atomic.Pointer[table]
	// stale is why the ledger could not be asked of late, empty when it could.
	stale atomic.Pointer[string]

	followed, split, refusals, lookups atomic.Int64

	// life ends when the switchover is closed, and work with it.
	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup
}

var _ upstream.Tracker = (*Switchover)(nil)

// New makes a switchover. The stored rules count when they were made on the
// configured ones; else the configured ones count from now on. A kill that the
// memory has and the store has not counts on. Errors are *InvalidError, or those of
// the store, which may take as long as a change. Close ends what it started.
func New(ctx context.Context, options Options) (*Switchover, error) {
	return open(ctx, options, time.Now)
}

func open(ctx context.Context, options Options, now func() time.Time) (*Switchover, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	s := &Switchover{
		options: options, memory: options.Memory, now: now,
		names:    [2]string{options.Old, options.New},
		trackers: [2]upstream.Tracker{options.Trackers[options.Old], options.Trackers[options.New]},
		ledger:   &options.Memory.local,
	}
	if options.Store != nil {
		s.ledger = options.Store
	}
	var err error
	if s.base, err = base(&options); err != nil {
		return nil, err
	}
	s.base += " " + s.pair()
	starting, cancel := context.WithTimeout(ctx, options.StoreTimeout)
	defer cancel()
	s.memory.enter(s)
	if err := s.start(starting); err != nil {
		s.memory.leave(s)
		return nil, err
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.work.Go(s.watch)
	return s, nil
}

// start takes over the stored rules, or stores the configured ones.
func (s *Switchover) start(ctx context.Context) error {
	for {
		present, known, err := s.ledger.CurrentRevision(ctx)
		if err != nil {
			return fmt.Errorf("read the rules that count: %w", err)
		}
		stored := killedIn(present)
		primary := s.names[oldSide]
		if err := cmp.Or(stored.unturned(primary), s.memory.Unturned(primary)); err != nil {
			return err
		}
		if known && s.mine(present) {
			s.adopt(present.Version)
			return s.take(present)
		}
		next := s.options.Table
		next.Killed = stored
		made, err := s.revise(ctx, present.Version, state.Revision{
			Base: s.base, Source: state.SourceConfig, Actor: "configuration", Reason: "the configured rules",
		}, next)
		if _, faster := errors.AsType[*state.ConflictError](err); faster {
			continue
		}
		if err != nil {
			return fmt.Errorf("store the configured rules: %w", err)
		}
		s.adopt(made.Version)
		return s.take(made)
	}
}

// killedIn is the kill switch as a revision has it. Other rules do not release it.
func killedIn(revision state.Revision) *Kill {
	t, err := tableOf(revision)
	if err != nil {
		return nil
	}
	return t.Killed
}

// take makes a revision the one that counts, unless it is older.
func (s *Switchover) take(revision state.Revision) error {
	source, err := tableOf(revision)
	if err != nil {
		return err
	}
	if s.foreign(revision) {
		return fmt.Errorf("take over version %d of the rules: %w", revision.Version, errForeign)
	}
	if wrong := faults(source.Problems(callersIn(source))); len(wrong) > 0 {
		return fmt.Errorf("take over version %d of the rules: %w", revision.Version, &InvalidError{Problems: wrong})
	}
	s.memory.rules.Lock()
	defer s.memory.rules.Unlock()
	if former := s.table.Load(); former != nil && former.revision.Version > revision.Version {
		return nil
	}
	if pending := s.memory.pending; pending != nil && pending.known(s.ledger, source.Killed) {
		s.memory.pending = nil
	}
	s.install(newTable(source, revision))
	return nil
}

// mine tells whether a revision was made on the configured rules. Bases once were digests only.
func (s *Switchover) mine(revision state.Revision) bool {
	digest, _, _ := strings.Cut(s.base, " ")
	return revision.Base == s.base || revision.Base == digest
}

// foreign tells whether a revision is about other trackers, or about the same ones the other way
// round: its phases mean something else.
func (s *Switchover) foreign(revision state.Revision) bool {
	_, pair, named := strings.Cut(revision.Base, " ")
	return named && pair != s.pair()
}

// pair names both trackers, the old one first.
func (s *Switchover) pair() string { return s.names[oldSide] + " " + s.names[newSide] }

// callersIn are the names that a table uses. One that this process does not know
// matches nobody here, which is no reason to go by other rules than the others do.
func callersIn(t Table) []string {
	var names []string
	for _, rule := range t.Rules {
		names = append(names, rule.Callers...)
	}
	return names
}

// install makes a table the one that counts, for the requests that are still in the
// house of a former configuration too. Whoever calls has the lock of the rules.
func (s *Switchover) install(next *table) {
	s.swap(next)
	for _, other := range s.memory.switchovers {
		if other != s {
			other.keepUp(next, s.ledger)
		}
	}
	s.memory.inForce = inForce{next.killed, s.ledger}
}

// keepUp goes by what another switchover over the same memory has come to know. One that
// has another ledger, or other trackers, has rules of its own, but heeds a kill that takes
// everything to where its own would.
func (s *Switchover) keepUp(next *table, at ledger) {
	switch present := s.table.Load(); {
	case present == nil: // it is about to begin
	case at == s.ledger && !s.foreign(next.revision) && next.revision.Version > present.revision.Version:
		s.swap(newTable(next.source, next.revision))
	case next.killed != present.killed && next.killed.unturned(s.names[oldSide]) == nil:
		s.swap(newTable(present.source, present.revision).killedBy(next.killed))
	}
}

// swap puts in a table, with the kill that the ledger may not know of.
func (s *Switchover) swap(next *table) {
	if pending := s.memory.pending; pending != nil && pending.kill.unturned(s.names[oldSide]) == nil {
		next.pending = pending
		next.killedBy(pending.kill)
	}
	s.memory.flights.mu.Lock()
	former := s.table.Swap(next)
	s.memory.flights.mu.Unlock()
	if former != nil {
		former.replace() // whoever waits or asks by it decides again
	}
	s.options.Logger.Info("rules taken over", "version", next.revision.Version, "source", next.revision.Source,
		"killed", next.killed != nil)
	if s.options.Observer.Changed != nil {
		s.options.Observer.Changed(next.revision.Version, next.killed != nil)
	}
}

// Close ends what the switchover started. Calls that are under way go on.
func (s *Switchover) Close() error {
	s.memory.leave(s)
	s.end()
	s.work.Wait()
	return nil
}

// count counts and tells where a call goes.
func (s *Switchover) count(t *table, operation mapping.Operation, made choice) {
	t.rules[made.rule].hits[made.side].Add(1)
	if made.followed {
		s.followed.Add(1)
	}
	if s.options.Observer.Routed != nil {
		s.options.Observer.Routed(operation, t.rules[made.rule].Name, s.names[made.side])
	}
}

func (s *Switchover) countRefusal(operation mapping.Operation, err error) {
	said, ok := errors.AsType[*mapping.Error](err)
	if !ok || said.Reason != mapping.ReasonSwitchover {
		return
	}
	s.refusals.Add(1)
	if s.options.Observer.Refused != nil {
		s.options.Observer.Refused(operation)
	}
}

// Passthrough names the tracker for a path that is none of the seven operations:
// that of the last rule, or of the rule of their own.
func (s *Switchover) Passthrough(_ upstream.Caller, write bool) string {
	t := s.table.Load()
	phase := t.passthrough.Reads
	if write {
		phase = t.passthrough.Writes
	}
	return s.names[phase.side()]
}
