package canary

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"portico/mapping"
	"portico/upstream/state"
)

const (
	// flushEvery is how often what was found is written down.
	flushEvery = time.Second
	// judgedEvery is after how many writings the judgements are read again, and what was dropped is written though
	// nothing was compared: beside a sick candidate a transaction in each second would be most of the work.
	judgedEvery = 5
	// longestFlush and longestGoodbye bound one writing, the latter at Close.
	longestFlush   = 10 * time.Second
	longestGoodbye = 700 * time.Millisecond
	// mostFindings and mostTallies bound what is waiting to be written.
	mostFindings = 1000
	mostTallies  = 1000
)

// The kinds of findings.
const (
	kindReply    = "reply"
	kindPlan     = "plan"
	kindReadBack = "readback"
	kindLatency  = "latency"
	kindIsolated = "isolated"
)

// ledger counts, and writes what it has counted to the store from time to time. Its
// lock is held for moments only, never while something is written.
type ledger struct {
	store    *state.Store
	samples  int
	latency  LatencyTarget
	logger   *slog.Logger
	observer Observer

	writing sync.Mutex // held while something is written
	// started is when the campaign began in the store, the zero time when that is not
	// known. begunAnew is called when it is another one.
	started   time.Time
	begunAnew func(since time.Time)

	mu sync.Mutex
	// since is when the campaign began as far as is known here. What began before does
	// not count.
	since    time.Time
	book     book
	accepted map[string]time.Time // until when; the zero time has no end
	// anew is since when the evidence of an operation counts. What began before does not.
	anew   map[mapping.Operation]time.Time
	speeds map[subject]*speeds
	silent bool // the last writing failed, which was said

	refusals *refusals // those that are not in the book yet
}

// book is what was counted since the last time it was written.
type book struct {
	// fresh are comparisons that are counted when the book is written: until then
	// another process may have begun anew. held is how many findings they have.
	fresh    []concluded
	held     int
	tallies  map[tallyKey]*state.Tally
	findings map[string]*found
	uses     map[string]*state.RuleUse
}

type tallyKey struct {
	subject
	minute int64
}

// found is a finding of one comparison or of several, with one of their samples.
type found struct {
	state.Finding
	sample []byte
	// times is how often a sample was offered since the last writing.
	times int
}

func newBook() book {
	return book{tallies: map[tallyKey]*state.Tally{}, findings: map[string]*found{}, uses: map[string]*state.RuleUse{}}
}

func newLedger(o Options, begunAnew func(since time.Time)) *ledger {
	return &ledger{
		begunAnew: begunAnew,
		store:     o.Store, samples: o.Samples, latency: o.Latency, logger: o.Logger, observer: o.Observer,
		book: newBook(), accepted: map[string]time.Time{}, anew: map[mapping.Operation]time.Time{}, speeds: map[subject]*speeds{},
		refusals: newRefusals(),
	}
}

// tally gives the tally of this minute; the lock is held. When so many wait that the
// store must have been away for long, days take the place of minutes.
func (l *ledger) tally(about subject, now time.Time) *state.Tally {
	minute := now.Truncate(time.Minute)
	key := tallyKey{about, minute.Unix()}
	if l.book.tallies[key] == nil && len(l.book.tallies) >= mostTallies {
		minute = now.Truncate(24 * time.Hour)
		key.minute = minute.Unix()
	}
	t := l.book.tallies[key]
	if t == nil {
		t = &state.Tally{
			At: minute.UTC(), Answered: key.reference, Other: key.candidate, Operation: key.operation, Dropped: map[string]int64{},
		}
		l.book.tallies[key] = t
	}
	return t
}

// dropped counts a comparison that is not made.
func (l *ledger) dropped(about subject, reason DropReason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally(about, time.Now()).Dropped[string(reason)]++
}

// countRefused counts those that were refused; the lock is held.
func (l *ledger) countRefused(now time.Time) {
	l.refusals.take(func(about subject, n int64) {
		l.tally(about, now).Dropped[string(DropBreaker)] += n
	})
}

// used counts a difference that a rule has excused.
func (l *ledger) used(rule string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	use := l.book.uses[rule]
	if use == nil {
		use = &state.RuleUse{Name: rule}
		l.book.uses[rule] = use
	}
	use.Hits++
	use.Last = time.Now().UTC()
}

// record takes a finding; the lock is held. Of the samples offered between two
// writings each is kept with the same likelihood. One too many is not kept, and the
// tally of its mismatch says so: nobody knows its signature.
func (l *ledger) record(f *found) {
	known := l.book.findings[f.Signature]
	switch {
	case known == nil && len(l.book.findings) >= mostFindings:
	case known == nil:
		f.times = 1
		l.book.findings[f.Signature] = f
	default:
		known.merge(f)
	}
}

func (l *ledger) isAccepted(signature string, now time.Time) bool {
	until, ok := l.accepted[signature]
	return ok && (until.IsZero() || until.After(now))
}

// keepBooks writes what was compared, once in a second, and reads now and then what
// other processes have judged.
func (c *Canary) keepBooks() {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for ticks := 0; ; ticks++ {
		ctx, cancel := context.WithTimeout(c.ctx, longestFlush)
		now := ticks%judgedEvery == 0
		err := c.ledger.keep(ctx, now)
		if err == nil && now {
			err = c.ledger.readJudgements(ctx)
		}
		cancel()
		c.ledger.report(err)
		select {
		case <-c.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// report logs that the store fails, and that it does no longer.
func (l *ledger) report(err error) {
	failed := err != nil && !errors.Is(err, context.Canceled)
	if failed && !l.silent {
		l.logger.Warn("what comparisons found cannot be written down; it is kept and tried again", "error", err)
	}
	if !failed && l.silent {
		l.logger.Info("what comparisons found can be written down again")
	}
	l.silent = failed
}

// keep writes what was compared, and what was dropped if that is due.
func (l *ledger) keep(ctx context.Context, due bool) error {
	if due || l.compares() {
		return l.flush(ctx)
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.follow(ctx)
}

// compares tells whether there is more to write than what was dropped.
func (l *ledger) compares() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.book.tallies {
		if t.Compared > 0 {
			return true
		}
	}
	return len(l.book.fresh)+len(l.book.findings)+len(l.book.uses) > 0
}

// flush writes what was counted, and keeps what could not be written.
func (l *ledger) flush(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.follow(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.countFresh(time.Now())
	l.countRefused(time.Now())
	now := l.book
	l.book = newBook()
	l.mu.Unlock()
	// Findings go first: a mismatch whose finding is not there is one of too many.
	err := errors.Join(l.writeFindings(ctx, &now), l.writeTallies(ctx, &now), l.writeUses(ctx, &now))
	if err != nil {
		l.giveBack(now)
	}
	return err
}

// follow finds out whether another process has begun anew. What began here before that
// is of the time before.
func (l *ledger) follow(ctx context.Context) error {
	campaign, err := l.store.CurrentCampaign(ctx)
	if err != nil {
		return err
	}
	if !l.started.IsZero() && !l.started.Equal(campaign.Started) {
		since := campaign.Started
		if now := time.Now(); now.Before(since) { // by the clock of another machine
			since = now
		}
		l.begunAnew(since)
	}
	l.started = campaign.Started
	return nil
}

// observe tells the observer of what has been written.
func (l *ledger) observe(b book) {
	if l.observer == nil {
		return
	}
	for _, t := range b.tallies {
		for _, outcome := range Outcomes() {
			if n := *counterOf(t, outcome); n > 0 {
				l.observer.Compared(t.Operation, outcome, n)
			}
		}
		for reason, n := range t.Dropped {
			l.observer.Dropped(t.Operation, DropReason(reason), n)
		}
	}
}
