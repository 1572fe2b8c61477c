package journal

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"portico/upstream"
	"portico/upstream/state"
)

// losses are counts of writes that are never copied, and that the store does not have yet.
type losses struct {
	mu      sync.Mutex
	pending map[state.JournalLoss]state.JournalLoss // by what they are, without figures
	// storing is held while the store gets them.
	storing chan struct{}
}

// add adds to the count of a kind of writes, whose last one was at loss.Last.
func (l *losses) add(loss state.JournalLoss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := withoutFigures(loss)
	known := l.pending[kind]
	if known.Last.After(loss.Last) {
		loss.Last = known.Last
	}
	loss.Entries += known.Entries
	l.pending[kind] = loss
	if loss.Entries == 0 {
		delete(l.pending, kind)
	}
}

// take removes all counts.
func (l *losses) take() (all []state.JournalLoss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all = slices.Collect(maps.Values(l.pending))
	clear(l.pending)
	return all
}

// full reports whether the store has been away for so many kinds that the next ones are counted together.
func (l *losses) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending) >= maxStopped
}

// unknownOutcome is added to what a write is until its outcome is known.
const unknownOutcome = ", whose outcome is not known"

// Lose counts a write that is never copied to the receiver, and is called before it is sent. The first one of its kind is committed then, if the store
// responds: from then on it is known that going back is not safe, even if this process is killed. over is called once, with whether something
// may have been written, before the client gets the response. The figures of loss are ignored.
func (j *Journal) Lose(ctx context.Context, loss state.JournalLoss) (over func(written bool)) {
	ctx = context.WithoutCancel(ctx)
	last := j.last.Load()
	if !last.counts(loss) && (last != nil && len(last.Losses) >= maxStopped || j.losses.full()) {
		loss.What = "other"
	}
	known := last.counts(loss)
	count := func(what string, entries int64) {
		counted := loss
		counted.What, counted.Entries, counted.Last = what, entries, time.Now()
		j.losses.add(counted)
	}
	if !known {
		count(loss.What+unknownOutcome, 1)
		j.storeLosses(ctx)
	}
	return func(written bool) {
		if written {
			count(loss.What, 1)
		}
		if !known {
			count(loss.What+unknownOutcome, -1)
			j.storeLosses(ctx)
		}
	}
}

// counts reports whether a kind of loss is known already.
func (s *Status) counts(loss state.JournalLoss) bool {
	return s != nil && slices.ContainsFunc(s.Losses, func(known state.JournalLoss) bool { return withoutFigures(known) == withoutFigures(loss) })
}

// withoutFigures is a kind of loss.
func withoutFigures(loss state.JournalLoss) state.JournalLoss {
	return state.JournalLoss{Receiver: loss.Receiver, Rule: loss.Rule, Kind: loss.Kind, What: loss.What}
}

// storeLosses stores what was counted, also by those that store it at the same time. Without the store the counts wait.
func (j *Journal) storeLosses(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	select {
	case j.losses.storing <- struct{}{}: // one at a time, or what is taken back could be stored before it was counted
		defer func() { <-j.losses.storing }()
	case <-ctx.Done():
		return
	}
	all := j.losses.take()
	if len(all) == 0 {
		return
	}
	if err := j.store.AddJournalLosses(ctx, all); err != nil {
		j.logger.Warn("writes that are not copied could not be counted yet", "cause", err)
		for _, loss := range all {
			j.losses.add(loss)
		}
	}
}

// lost counts a write that is not recorded.
func (j *Journal) lost(ctx context.Context, intent Intent, kind string) Done {
	over := j.Lose(ctx, state.JournalLoss{Receiver: intent.Receiver, Rule: intent.Rule, Kind: kind, What: string(intent.Call.Operation)})
	return func(_ context.Context, response upstream.Response) {
		written := !upstream.NotWritten(response.Err)
		over(written)
		if written && kind == state.LossMissed {
			j.missed.Add(1)
		}
	}
}
