package switchover

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/journal"
	"portico/upstream/state"
)

// Store keeps the revisions of the rules. *state.Store implements it.
type Store interface {
	// CurrentRevision gives the revision in force; known is false when there is none yet.
	CurrentRevision(ctx context.Context) (revision state.Revision, known bool, err error)
	// Revise makes the next revision, unless expected is not the present version: then the error is a *state.ConflictError. An
	// action other than "" goes into the audit trail with it.
	Revise(ctx context.Context, expected int64, next state.Revision, action string) (state.Revision, error)
	// Revisions gives the last revisions, the newest first.
	Revisions(ctx context.Context, limit int) ([]state.Revision, error)
	// Beat has a process count as alive for a time. It has ended all writes that rules before the version would send to another tracker.
	Beat(ctx context.Context, process string, version int64, lasts time.Duration) error
	// Behind lists the processes that are alive and have not reported a version.
	Behind(ctx context.Context, version int64) ([]string, error)
	// JournalOpen counts the writes up to a number that are still to be copied to a tracker, without those that wait for an operator, and returns
	// the highest number of any.
	JournalOpen(ctx context.Context, receiver string, upTo int64) (open, last int64, err error)
	// JournalParked counts the lanes of a tracker that wait for an operator.
	JournalParked(ctx context.Context, receiver string) (int64, error)
	// JournalCounts counts all writes that are not copied.
	JournalCounts(ctx context.Context) ([]state.JournalCount, error)
	// JournalUncopied returns the writes of a caller that are not copied yet or, where there are any, those that have made the objects of lanes.
	JournalUncopied(ctx context.Context, limit int, caller string, made ...string) ([]state.JournalEntry, error)
	// JournalPaused reports whether copying is paused.
	JournalPaused(ctx context.Context) (bool, error)
	// KillJournal pauses copying because all writes go to a tracker from now on.
	KillJournal(ctx context.Context, tracker string, record state.Record) error
	// ParkKilled parks the copies to that tracker when the kill is over: they would overwrite later writes.
	ParkKilled(ctx context.Context) error
}

// Journal records writes, so that they are copied to the other tracker. *journal.Journal implements it.
type Journal interface {
	// Begin commits an intent before the tracker is asked. After an error, which is a *mapping.Error, the write is not sent. done commits the
	// outcome before the client gets the response.
	Begin(ctx context.Context, intent journal.Intent) (done journal.Done, err error)
	// Last returns the status as it was some seconds ago, nil before the first.
	Last() *journal.Status
}

// Observer receives what the switchover does. Every text is from a small
// fixed set or from the configuration. Functions that are nil are not called.
type Observer struct {
	// Routed gets each call, or part of one, with the rule that sent it to a
	// tracker.
	Routed func(operation mapping.Operation, rule, tracker string)
	// Refused gets each write that no one tracker could carry out.
	Refused func(operation mapping.Operation)
	// LookedUp gets each lookup: bug, attachment or flag_type, and found, absent,
	// hidden or failed.
	LookedUp func(what, outcome string)
	// Changed gets the status when other rules are in force. It must not call the Switchover.
	Changed func(Status)
}

// Options are what stays the same for the life of a Switchover. All are required.
type Options struct {
	// Old and New name the trackers that the phases speak of.
	Old, New string
	Store    Store
	Settings Settings
}

// Settings are what Set may replace. Trackers, Table and Shadow are required.
type Settings struct {
	// Trackers are both of them by their names.
	Trackers map[string]upstream.Tracker
	// Locate finds out where things belong in them, by the same names. Rules that need no lookups need none.
	Locate map[string]Locator
	// Table is the configured one.
	Table Table
	// CallerNames are the names that rules may use; Caller gives the one that a
	// caller has, empty for none.
	CallerNames []string
	Caller      func(upstream.Caller) string
	// Journal records the writes of rules that replicate. Nil where none does.
	Journal Journal
	// Shadow gets responses in the phases that compare.
	Shadow upstream.Shadow
	// Follow is how long a caller's reads follow its own writes, 0 for not at all.
	Follow time.Duration
	// UnknownOutcome is how long a tracker may still carry out a write whose outcome is unknown. Until
	// then the writes of its rule are not moved, unless by the kill switch.
	UnknownOutcome time.Duration
	// Split bounds what merging two replies may cost in memory.
	Split jsonblob.SplitOptions
	// Logger defaults to discarding.
	Logger   *slog.Logger
	Observer Observer
}

// Switchover is a Tracker that sends each call to one of two Trackers, as the
// first rule that matches it says. It is safe for concurrent use.
type Switchover struct {
	names  [2]string
	store  Store
	timing timing
	memory *memory

	rules    atomic.Pointer[ruleSet]
	inFlight inFlight
	// process is this process in the heartbeats. alive is until when it may write without another one.
	process string
	alive   atomic.Pointer[time.Time]

	// changing is held while the store is told of a change. A kill is in force without it.
	changing chan struct{}

	mu sync.Mutex // held while rules is replaced, and never during I/O
	// settings are the last that Set got, base is the digest of its table.
	settings Settings
	base     string
	// pending is a kill that the store may not have, undelivered why it does not.
	pending     *Kill
	undelivered string
	// stale is why the store could not be asked of late, empty when it could.
	stale string

	followed, split, refusals, lookups atomic.Int64

	life context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup
}

var _ upstream.Tracker = (*Switchover)(nil)

// timing is what tests change.
type timing struct {
	now func() time.Time
	// poll is how often the store is asked for changes made elsewhere, store how long it may take with one, and kill how
	// long a kill, which is in force already, waits for the store before it responds.
	poll, store, kill time.Duration
	// lease is how long a process may write after a heartbeat, hold how long a write waits that is being moved, and barrier how long a change
	// of the rules waits for writes.
	lease, hold, barrier time.Duration
}

// New makes a switchover. The stored rules are in force when they were made on the
// configured ones; else the configured ones are from now on. Errors are *InvalidError, a kill that names another old tracker, or those of
// the store, which may take ten seconds. Close ends what it started.
func New(ctx context.Context, options Options) (*Switchover, error) {
	return open(ctx, options, timing{
		now: time.Now, poll: time.Second, store: 10 * time.Second, kill: time.Second,
		lease: 6 * time.Second, hold: 10 * time.Second, barrier: 12 * time.Second,
	})
}

func open(ctx context.Context, options Options, timing timing) (*Switchover, error) {
	s := &Switchover{
		names: [2]string{options.Old, options.New}, store: options.Store, timing: timing, memory: newMemory(),
		inFlight: inFlight{rules: map[string]*inFlightWrites{}}, changing: make(chan struct{}, 1), process: processName(),
	}
	if err := s.Set(ctx, options.Settings); err != nil {
		return nil, err
	}
	if err := s.beat(ctx); err != nil {
		return nil, err
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.work.Go(s.watch)
	return s, nil
}

// Set replaces the settings. Calls under way end by the former ones. What operators have changed of the rules stays, unless the
// configured table is another one than before: then that is in force. With an error, as of New, nothing changes. Only one
// Set may run at a time.
func (s *Switchover) Set(ctx context.Context, settings Settings) error {
	if wrong := faults(settings.Table.Problems(settings.CallerNames)); len(wrong) > 0 {
		return &InvalidError{Problems: wrong}
	}
	if settings.Logger == nil {
		settings.Logger = slog.New(slog.DiscardHandler)
	}
	base := s.baseOf(settings.Table)
	var made state.Revision
	var source Table
	if base != s.base {
		err := s.change(ctx, func(ctx context.Context) (err error) {
			made, source, err = s.configured(ctx, base, settings.Table)
			return err
		})
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings, s.base = settings, base
	if present := s.rules.Load(); present != nil && present.revision.Version >= made.Version {
		made, source = present.revision, present.source
	}
	s.install(source, made)
	return nil
}

// install puts rules in force, with the kill that the store may not have. The caller holds mu.
func (s *Switchover) install(source Table, revision state.Revision) {
	killed := source.Killed
	if s.pending != nil && killed != nil && !killed.At.Before(s.pending.At) {
		s.pending = nil // the store has it, or a later one
	}
	if s.pending != nil {
		killed = s.pending
	}
	next := newRuleSet(s.settings, s.names, source, revision, killed)
	s.inFlight.mu.Lock()
	former := s.rules.Swap(next)
	s.inFlight.mu.Unlock()
	if former != nil {
		former.replace() // calls that wait or look up by it decide again
	}
	next.Logger.Info("rules in force", "version", revision.Version, "source", revision.Source, "killed", killed != nil)
	if next.Observer.Changed != nil {
		next.Observer.Changed(s.status(next))
	}
}

// Close ends what the switchover started. Calls that are under way go on; without any, other processes need not wait for the end of the heartbeat.
func (s *Switchover) Close() error {
	s.end()
	s.work.Wait()
	rules := s.rules.Load()
	if count, _ := s.left(rules, rules.names()); count > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timing.kill)
	defer cancel()
	if err := s.store.Beat(ctx, s.process, rules.revision.Version, 0); err != nil {
		rules.Logger.Warn("the store could not be told that this process ends", "cause", err)
	}
	return nil
}

func (s *Switchover) now() time.Time { return s.timing.now() }

// count counts and reports where a call goes.
func (s *Switchover) count(rules *ruleSet, operation mapping.Operation, chosen route) {
	rule := &rules.rules[chosen.rule]
	rule.hits[chosen.side].Add(1)
	if chosen.followed {
		s.followed.Add(1)
	}
	if rules.Observer.Routed != nil {
		rules.Observer.Routed(operation, rule.Name, s.names[chosen.side])
	}
}

// Passthrough names the tracker for a path outside the seven operations, by the table's
// passthrough or else by the last rule.
func (s *Switchover) Passthrough(write bool) string {
	rules := s.rules.Load()
	phase := rules.passthrough.Reads
	if write {
		phase = rules.passthrough.Writes
	}
	return s.names[phase.side()]
}

// Replicates reports whether a rule in use has writes recorded for the other tracker.
func (s *Switchover) Replicates() bool {
	return slices.ContainsFunc(s.rules.Load().source.Rules, func(rule Rule) bool { return rule.Replicate })
}
