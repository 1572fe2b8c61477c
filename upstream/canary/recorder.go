package canary

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"portico/mapping"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// Outcome is what came of one comparison.
type Outcome string

// The outcomes. A comparison has one, the last of these that fits any of its
// differences.
const (
	OutcomeSame Outcome = "same"
	// OutcomeNoisy: it differs only where one tracker differs from itself, and plans
	// of writes only in their form.
	OutcomeNoisy Outcome = "noisy"
	// OutcomeTransient: a write explains the difference.
	OutcomeTransient Outcome = "transient"
	// OutcomeAccepted: all that differs was accepted.
	OutcomeAccepted Outcome = "accepted"
	// OutcomeConfirmed: a difference lasts, or has gone although nothing was written.
	OutcomeConfirmed Outcome = "confirmed"
)

const (
	// flushEvery is how often a batch is written.
	flushEvery = time.Second
	// flushTimeout bounds the writing of one batch.
	flushTimeout = 10 * time.Second
	// maxFindings bounds one batch, maxSamples its findings with samples, and maxWritten a transaction.
	maxFindings, maxSamples, maxWritten = 10_000, 1000, 500
)

// recorder counts, and writes a batch to the store from time to time. mu is held for moments only, never while the store
// is read or written.
type recorder struct {
	options *Options
	forget  func() // drops what others know of the campaign before

	flushing sync.Mutex      // guards writing and accepted
	writing  batch           // what could not be written yet
	accepted map[string]bool // the findings that are, by signature

	mu    sync.Mutex
	made  []*job // comparisons since the last flush
	batch batch
	// campaign is when the campaign began, zero when that is not known yet, and evidence when the comparisons of an operation
	// started again from zero. What began before does not count.
	campaign time.Time
	evidence map[mapping.Operation]time.Time
	speeds   map[mapping.Operation]*speeds
}

// batch is what was counted since the last flush.
type batch struct {
	tallies  map[mapping.Operation]state.Tally
	findings map[string]*state.Sighting
	uses     map[string]state.RuleUse
}

func newBatch() batch {
	return batch{tallies: map[mapping.Operation]state.Tally{}, findings: map[string]*state.Sighting{}, uses: map[string]state.RuleUse{}}
}

// count adds to the tally of an operation, which belongs to the minute in which it began.
func (b *batch) count(more state.Tally) {
	more.At = time.Now().UTC()
	if sum, known := b.tallies[more.Operation]; known {
		more = sum.Add(more)
	}
	b.tallies[more.Operation] = more
}

// find takes a finding, unless it is one too many.
func (b *batch) find(f *state.Sighting) (kept bool) {
	known := b.findings[f.Signature]
	if len(b.findings) >= maxSamples {
		f.Sample = nil
	}
	switch {
	case known != nil:
		known.Count += f.Count
		for _, scope := range f.Scopes {
			if !slices.Contains(known.Scopes, scope) {
				known.Scopes = append(known.Scopes, scope)
			}
		}
		known.Note = cmp.Or(f.Note, known.Note)
		if f.Last.After(known.Last) {
			known.Last = f.Last
		}
		if known.Sample == nil {
			known.Sample = f.Sample
		}
	case len(b.findings) < maxFindings:
		b.findings[f.Signature] = f
	default:
		return false
	}
	return true
}

// drop counts a comparison that is not made.
func (r *recorder) drop(operation mapping.Operation, reason verdict.DropReason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tally := r.tally(operation)
	tally.Dropped = map[string]int64{string(reason): 1}
	r.batch.count(tally)
	r.options.Observer.Dropped(operation, reason)
}

// tally is an empty one of an operation.
func (r *recorder) tally(operation mapping.Operation) state.Tally {
	return state.Tally{Answered: r.options.Reference, Other: r.options.Candidate, Operation: operation}
}

// used counts a difference that a rule has excused.
func (r *recorder) used(rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batch.uses[rule] = state.RuleUse{Name: rule, Hits: r.batch.uses[rule].Hits + 1, Last: time.Now().UTC()}
}

// compared takes a comparison that was made. It is counted by the next flush, which knows what other processes have said. It
// gives the difference when the candidate turns out to be too slow.
func (r *recorder) compared(j *job) []compare.Difference {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, j)
	if j.observed.known() && r.counts(j) {
		return r.timed(j)
	}
	return nil
}

// counts reports whether a job began when the numbers counted already. The lock is held.
func (r *recorder) counts(j *job) bool {
	return !j.began.Before(r.campaign) && !j.began.Before(r.evidence[j.operation])
}

// found counts a finding that no comparison has.
func (r *recorder) found(f *state.Sighting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batch.find(f)
}

// count counts a comparison. The lock is held.
func (r *recorder) count(j *job) {
	tally := r.tally(j.operation)
	tally.Compared = 1
	outcome, counted := OutcomeSame, &tally.Same
	switch {
	case j.transient:
		outcome, counted = OutcomeTransient, &tally.Transient
	case j.noisy:
		outcome, counted = OutcomeNoisy, &tally.Noisy
	}
	var signatures []string
	for _, f := range j.found {
		if !r.accepted[f.Signature] {
			outcome, counted = OutcomeConfirmed, &tally.Confirmed
		} else if outcome != OutcomeConfirmed {
			outcome, counted = OutcomeAccepted, &tally.Accepted
		}
		signature := f.Signature
		if !r.batch.find(f) {
			signature = state.UnlistedMismatch
		}
		signatures = append(signatures, signature)
	}
	if len(signatures) > 0 {
		tally.Mismatch(signatures, 1)
	}
	*counted = 1
	if j.failed {
		tally.Failed = 1
	}
	if j.observed.known() {
		tally.AnsweredLatency, tally.OtherLatency = verdict.CountLatency(nil, j.observed.reference), verdict.CountLatency(nil, j.observed.candidate)
	}
	r.batch.count(tally)
	r.options.Observer.Compared(j.operation, outcome)
}

// follow finds out whether another process has reset the comparison, or marked a finding as fixed. What began here before that
// is of the time before.
func (r *recorder) follow(ctx context.Context) error {
	store := r.options.Store
	campaign, err := store.CurrentCampaign(ctx)
	if err != nil {
		return err
	}
	evidence, err := store.Evidence(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.campaign.IsZero() && !r.campaign.Equal(campaign.Started) {
		r.forget()
		r.batch, r.writing = newBatch(), newBatch()
		clear(r.speeds)
	}
	r.campaign, r.evidence = campaign.Started, evidence
	return nil
}

// flush counts and writes what was compared, and keeps what could not be written.
func (r *recorder) flush(ctx context.Context) error {
	r.flushing.Lock()
	defer r.flushing.Unlock()
	err := r.follow(ctx)
	r.mu.Lock()
	made := r.made
	r.made = nil
	r.mu.Unlock()
	if err == nil && slices.ContainsFunc(made, func(j *job) bool { return len(j.found) > 0 }) {
		err = r.readJudgements(ctx)
	}
	r.mu.Lock()
	for _, j := range made {
		if r.counts(j) {
			r.count(j)
		}
	}
	r.mu.Unlock()
	for range 2 { // what could not be written before, and what has come since
		if err == nil {
			err = r.write(ctx)
		}
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.writing, r.batch = r.batch, newBatch()
		r.mu.Unlock()
	}
	return nil
}

// write takes out of writing what it has written. Findings go first: it turns out which of them are too many.
func (r *recorder) write(ctx context.Context) error {
	store, b := r.options.Store, r.writing
	for some := range slices.Chunk(slices.Collect(maps.Values(b.findings)), maxWritten) {
		refused, err := store.RecordFindings(ctx, some, r.options.KeepSamples)
		if err != nil {
			return err
		}
		for _, f := range some {
			if slices.Contains(refused, f.Signature) {
				b.tallies[f.Operation].Unlist(f.Signature)
			}
			delete(b.findings, f.Signature)
		}
	}
	if err := store.AddTallies(ctx, slices.Collect(maps.Values(b.tallies))); err != nil {
		return err
	}
	clear(b.tallies)
	if err := store.AddRuleUses(ctx, slices.Collect(maps.Values(b.uses))); err != nil {
		return err
	}
	clear(b.uses)
	return nil
}

// keepRecords writes what was compared, once in a second.
func (c *Canary) keepRecords() {
	failed := false
	c.every(flushEvery, flushTimeout, func(ctx context.Context) {
		err := c.recorder.flush(ctx)
		fails := err != nil && !errors.Is(err, context.Canceled)
		if fails && !failed {
			c.options.Logger.Warn("writing the results of comparisons failed; they are kept and tried again", "error", err)
		} else if failed && !fails {
			c.options.Logger.Info("the results of comparisons are written again")
		}
		failed = fails
	})
}

// readJudgements learns what operators, and other processes, have accepted.
func (r *recorder) readJudgements(ctx context.Context) error {
	list, err := r.options.Store.Findings(ctx)
	if err != nil {
		return err
	}
	r.accepted = map[string]bool{}
	for _, f := range list {
		r.accepted[f.Signature] = f.Status == state.StatusAccepted
	}
	return nil
}
