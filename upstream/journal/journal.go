package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/state"
)

// Pairs knows under which ids the trackers have an object.
type Pairs interface {
	// Pair is the pair of a tracker that shows an object of a kind under the id shown, and of the id by which clients know it. The kinds
	// are attachment, flag and flag_type. The error says that there can be no such pair.
	Pair(kind string, client int64, tracker string, shown int64) (state.IDPair, error)
	// Born reports whether an id that a tracker shows is one of those that it gives. A copy has the id of the object that it is of.
	Born(kind, tracker string, shown int64) bool
	// Added is told of pairs that the store has got.
	Added(pairs []state.IDPair)
}

// Section is what the configuration has: package config reads it by its tags.
type Section struct {
	// Mode is required, or best-effort: then writes pass while the store is away. They are counted, and never copied.
	Mode string `key:"mode" default:"required" oneof:"required|best-effort"`
	// Spool is the directory for content that is longer than MaxInline, in base64. All processes that share the store share it.
	Spool     string `key:"spool" default:"portico-spool"`
	MaxInline int64  `key:"max_inline" default:"64KiB" is:"size" min:"0"`
	// Keep is how long finished entries are kept.
	Keep time.Duration `key:"keep" default:"720h" min:"1m"`
	// MaxFailures is how many attempts fail before a lane is parked.
	MaxFailures int `key:"failures" default:"10" min:"1" max:"1000"`
	// Workers is the maximum number of lanes that are copied at a time.
	Workers int `key:"workers" default:"4" min:"1" max:"256" change:"restart"`
}

// Settings are what Set may replace.
type Settings struct {
	Section
	// Trackers are both of them by their names. They take and give the ids that clients know.
	Trackers map[string]upstream.Tracker
	// Caller gives the caller in whose name a tracker is asked for a write of the caller with a label, who has shown itself as shown; nil
	// means that this is not known any more. own says that it is that caller; else it is a service. ok is false where there is no key.
	Caller func(tracker, label string, shown *upstream.Caller) (caller upstream.Caller, own, ok bool)
	// Comments returns the comments on an attachment of a tracker by their ids.
	Comments func(ctx context.Context, tracker string, caller upstream.Caller, attachment int64) (map[int64]upstream.Comment, error)
	// Pairs learns the ids that the receivers give. Nil means that both trackers have to give the same ones.
	Pairs Pairs
	// Keys encrypt what is kept. Required.
	Keys *Keys
	// Timeout bounds one call of a tracker. A lease lasts longer, so no process takes over while the tracker may still carry out a write.
	Timeout time.Duration
	// Settle is how long a tracker may still carry out a write whose outcome is unknown.
	Settle time.Duration
	// Split bounds what reading responses and contents may cost in memory.
	Split jsonblob.SplitOptions
}

func (s *Settings) spool() spool { return spool{dir: s.Spool, keys: s.Keys} }

// lease is how long one lasts without being kept.
func (s *Settings) lease() time.Duration { return 3 * s.Timeout }

// Options are what stays the same for the life of a Journal.
type Options struct {
	Store    *state.Store
	Settings Settings
	Logger   *slog.Logger
	// Observe gets the status every few seconds.
	Observe func(Status)
}

// Journal records writes and copies them to the other tracker. It is safe for concurrent use.
type Journal struct {
	store   *state.Store
	logger  *slog.Logger
	observe func(Status)
	last    atomic.Pointer[Status]
	// holder is this process in the leases.
	holder   string
	settings atomic.Pointer[Settings]
	leases   locks
	accepted acceptedCallers
	losses   losses
	// callers are those of writes that are not copied yet, as they have shown themselves, by the numbers of entries. They are never stored.
	callers *otter.Cache[int64, *upstream.Caller]
	// missed counts writes that passed unrecorded, and late counts outcomes that could not be committed in time.
	missed, late atomic.Int64
	// wake names lanes in which something may be due.
	wake chan string
	// away is whether the store could not be read at the last attempt.
	away atomic.Bool

	end  context.CancelFunc
	work sync.WaitGroup
}

const (
	// storeTimeout bounds how long a write waits for the store, outcomeTimeout how long a client waits for its response while the store is away.
	storeTimeout   = 5 * time.Second
	outcomeTimeout = 3 * storeTimeout
	// callerTime is how long a caller is remembered for the copy of its write, maxCallers bounds those that are.
	callerTime = time.Minute
	maxCallers = 10_000
)

// New opens a journal and begins to copy what is due. Close ends that.
func New(options Options) *Journal {
	j := &Journal{
		store: options.Store, logger: options.Logger, observe: options.Observe, holder: rand.Text(), wake: make(chan string, maxDue),
		leases: locks{held: map[string]chan struct{}{}}, accepted: newAcceptedCallers(), losses: losses{pending: map[state.JournalLoss]state.JournalLoss{}, storing: make(chan struct{}, 1)},
		callers: otter.Must(&otter.Options[int64, *upstream.Caller]{
			MaximumSize: maxCallers, ExpiryCalculator: otter.ExpiryWriting[int64, *upstream.Caller](callerTime),
		}),
	}
	j.Set(options.Settings)
	life, end := context.WithCancel(context.Background())
	j.end = end
	j.work.Go(func() { j.keepLeases(life) })
	j.work.Go(func() { j.replicate(life) })
	j.work.Go(func() { j.report(life) })
	return j
}

// Set replaces the settings. Writes under way end by the former ones.
func (j *Journal) Set(settings Settings) { j.settings.Store(&settings) }

// Close ends copying. What is not finished is copied by another process, or after the next start.
func (j *Journal) Close() {
	j.end()
	j.work.Wait()
	j.callers.StopAllGoroutines()
	j.storeLosses(context.Background())
}

// keepLeases keeps the leases of this process while it lives.
func (j *Journal) keepLeases(life context.Context) {
	for upstream.Pause(life, j.settings.Load().lease()/4) {
		names := j.leases.names()
		if len(names) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(life, storeTimeout)
		if err := j.store.KeepLeases(ctx, names, j.holder, j.settings.Load().lease()); err != nil && life.Err() == nil {
			j.logger.Warn("leases of the journal could not be kept", "cause", err)
		}
		cancel()
	}
}

// Intent is a write that is about to be sent.
type Intent struct {
	Call upstream.Call
	// Bugs are those of an attachment create, by id where it is known.
	Bugs []string
	// Target is the tracker that gets the call, Receiver the one that it is copied to.
	Target, Receiver string
	// Rule is the name of the rule that decides, Caller the label of the caller.
	Rule, Caller string
	// Shown is the caller as it has shown itself. It is kept in memory only, and for a minute at most.
	Shown upstream.Caller
	// Unrecorded says that the rule does not replicate: the write is only counted.
	Unrecorded bool
}

// Done takes the response to a write. The client must not get the response before it has returned.
type Done func(ctx context.Context, response upstream.Response)

// Begin commits the intent of a write. It waits while another write of the same objects is under way, and for the turn of
// the caller. The caller sends nothing after an error, which is a *mapping.Error with the reason journal-unavailable or too-large, or that of ctx. Otherwise it calls done once.
func (j *Journal) Begin(ctx context.Context, intent Intent) (Done, error) {
	if intent.Unrecorded {
		return j.lost(ctx, intent, state.LossUnrecorded), nil
	}
	w := &write{journal: j, settings: j.settings.Load(), intent: intent}
	err := w.prepare()
	if err == nil {
		err = w.begin(ctx)
	}
	if err != nil {
		return w.unrecorded(ctx, err)
	}
	if late := ctx.Err(); errors.Is(late, context.DeadlineExceeded) { // it is not sent
		w.done(ctx, upstream.Response{Err: Unavailable(late)})
		return nil, Unavailable(late)
	}
	return w.done, nil
}

// Unavailable is the error of a write that is not sent, because it cannot be recorded.
func Unavailable(cause error) error {
	return mapping.TryLater(upstream.ReasonJournal, cause, "This write could not be recorded for the other tracker, so nothing was changed. Try again later.")
}
