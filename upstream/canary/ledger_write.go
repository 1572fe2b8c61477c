package canary

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"portico/upstream/state"
)

// writeTallies empties the book's tallies when they are written.
func (l *ledger) writeTallies(ctx context.Context, b *book) error {
	if len(b.tallies) == 0 {
		return nil
	}
	list := make([]state.Tally, 0, len(b.tallies))
	for _, t := range b.tallies {
		list = append(list, *t)
	}
	if err := l.store.AddTallies(ctx, list); err != nil {
		return err
	}
	l.observe(*b)
	clear(b.tallies)
	return nil
}

// writeFindings writes one finding after the other and ends with the first failure.
func (l *ledger) writeFindings(ctx context.Context, b *book) error {
	for signature, f := range b.findings {
		err := l.store.RecordFinding(ctx, f.Finding, f.sample, l.samples)
		if err != nil && !errors.Is(err, state.ErrFull) { // beyond that bound no other one is kept
			return err
		}
		delete(b.findings, signature)
	}
	return nil
}

func (l *ledger) writeUses(ctx context.Context, b *book) error {
	if len(b.uses) == 0 {
		return nil
	}
	list := make([]state.RuleUse, 0, len(b.uses))
	for _, use := range b.uses {
		list = append(list, *use)
	}
	if err := l.store.AddRuleUses(ctx, list); err != nil {
		return err
	}
	clear(b.uses)
	return nil
}

// giveBack puts what could not be written to what has come meanwhile.
func (l *ledger) giveBack(old book) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, t := range old.tallies {
		into := l.tally(key.subject, time.Unix(key.minute, 0))
		addTally(into, t)
	}
	for signature, f := range old.findings {
		if known := l.book.findings[signature]; known != nil {
			known.merge(f)
		} else if len(l.book.findings) < mostFindings {
			l.book.findings[signature] = f
		}
	}
	for name, use := range old.uses {
		if known := l.book.uses[name]; known != nil {
			known.Hits += use.Hits
		} else {
			l.book.uses[name] = use
		}
	}
}

func addTally(sum, more *state.Tally) {
	sum.Compared += more.Compared
	for _, outcome := range Outcomes() {
		*counterOf(sum, outcome) += *counterOf(more, outcome)
	}
	for mismatch, n := range more.Mismatches {
		sum.Mismatch(state.Signatures(mismatch), n)
	}
	for reason, n := range more.Dropped {
		sum.Dropped[reason] += n
	}
	sum.AnsweredLatency = sumHistograms(sum.AnsweredLatency, more.AnsweredLatency)
	sum.OtherLatency = sumHistograms(sum.OtherLatency, more.OtherLatency)
}

// merge adds another sighting of the same finding.
func (f *found) merge(more *found) {
	f.Count += more.Count
	f.Note = cmp.Or(more.Note, f.Note)
	if more.Last.After(f.Last) {
		f.Last = more.Last
	}
	f.times++
	if more.sample != nil && rand.IntN(f.times) == 0 {
		f.sample = more.sample
	}
}

// readJudgements learns what people, and other processes, have accepted.
func (l *ledger) readJudgements(ctx context.Context) error {
	list, err := l.store.Findings(ctx)
	if err != nil {
		return err
	}
	accepted := map[string]time.Time{}
	for _, f := range list {
		if f.Status == state.StatusAccepted {
			accepted[f.Signature] = f.Until
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted = accepted
	return nil
}
