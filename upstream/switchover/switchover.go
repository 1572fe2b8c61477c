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

// Journal records writes, so that they are copied to the other tracker. *journal.Journal implements it.
type Journal interface {
	// Begin commits an intent before the tracker is asked. After an error, which is a *mapping.Error, the write is not sent. done commits the
	// outcome before the client gets the response.
	Begin(ctx context.Context, intent journal.Intent) (done journal.Done, err error)
	// Last returns the status as it was some seconds ago, nil before the first.
	Last() *journal.Status
}

// Observer receives what the switchover does. Every text is from a small
// fixed set or from the configuration.
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
	Store    *state.Store
	Settings Settings
}

// Settings are what Set may replace. Of the functions and interfaces only Journal may be nil.
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
	Split    jsonblob.SplitOptions
	Logger   *slog.Logger
	Observer Observer
}

// Switchover is a Tracker that sends each call to one of two Trackers, as the
// first rule that matches it says. It is safe for concurrent use.
type Switchover struct {
	names  [2]string
	store  *state.Store
	timing timing
	memory *memory

	rules atomic.Pointer[ruleSet]
	// inFlight counts the writes under way that a rule may have decided, by its name, and unknown is until when a tracker may still carry out one whose
	// outcome is unknown. A change of the rules that moves writes waits for them. writing is held while they or rules change.
	inFlight map[string]int
	unknown  map[string]time.Time
	writing  sync.Mutex
	// process is this process in the heartbeats, alive is when it may write.
	process string
	alive   atomic.Pointer[aliveTime]

	// changing is held while the store is told of a change. A kill is in force without it.
	changing chan struct{}

	// pending is a kill that the store may not have, undelivered why it does not.
	pending     atomic.Pointer[Kill]
	undelivered atomic.Pointer[string]

	mu sync.Mutex // held while rules is replaced, and never during I/O
	// settings are the last that Set got, base is the digest of its table.
	settings Settings
	base     string
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
		inFlight: map[string]int{}, unknown: map[string]time.Time{}, changing: make(chan struct{}, 1), process: processName(),
	}
	err := s.Set(ctx, options.Settings)
	if err == nil {
		err = s.beat(ctx)
	}
	if err != nil {
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
	killed, pending := source.Killed, s.pending.Load()
	if pending != nil && (killed == nil || killed.At.Before(pending.At)) {
		killed = pending
	} else {
		s.pending.CompareAndSwap(pending, nil) // the store has it, or a later one
	}
	next := newRuleSet(s.settings, source, revision, killed)
	next.since = s.now()
	s.writing.Lock()
	former := s.rules.Swap(next)
	s.writing.Unlock()
	if former != nil {
		former.replace() // calls that wait or look up by it decide again
	}
	next.Logger.Info("rules in force", "version", revision.Version, "source", revision.Source, "killed", killed != nil)
	next.Observer.Changed(s.status(next))
}

// Close ends what the switchover started. Calls that are under way go on; without any, other processes need not wait for the end of the heartbeat.
func (s *Switchover) Close() {
	s.end()
	s.work.Wait()
	s.memory.places.StopAllGoroutines()
	rules := s.rules.Load()
	if count, _ := s.left(rules, nil); count > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timing.kill)
	defer cancel()
	_ = s.store.Beat(ctx, s.process, rules.revision.Version, 0) // without it, others wait
}

func (s *Switchover) now() time.Time { return s.timing.now() }

// count counts and reports where a call goes.
func (s *Switchover) count(rules *ruleSet, operation mapping.Operation, chosen route) {
	rules.hits[chosen.rule][chosen.side].Add(1)
	if chosen.followed {
		s.followed.Add(1)
	}
	rules.Observer.Routed(operation, rules.source.Rules[chosen.rule].Name, s.names[chosen.side])
}

// Passthrough names the tracker for a path outside the seven operations, by the table's
// passthrough or else by the last rule.
func (s *Switchover) Passthrough(write bool) string {
	return s.names[s.rules.Load().passthrough.of(write).side()]
}

// Replicates reports whether a rule in use has writes recorded for the other tracker.
func (s *Switchover) Replicates() bool {
	return slices.ContainsFunc(s.rules.Load().source.Rules, func(rule Rule) bool { return rule.Replicate })
}
