package journal

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"portico/upstream"
	"portico/upstream/state"
)

const (
	// poll is how often the store is asked for all that is due: what other processes have written, and what is due again.
	poll = 250 * time.Millisecond
	// gather is how long the replicator waits for more lanes after one, so that many writes at a time cost one question.
	gather = 5 * time.Millisecond
	// maxDue is the maximum number of lanes of one question.
	maxDue = 100
	// maxTurn is how many entries of a lane are copied before other lanes get their turn.
	maxTurn = 20
	// tidyEvery is how often old entries and files are removed.
	tidyEvery = 10 * time.Minute
	// endTime is how long a copy under way may take once life has ended. A call that is cut off has an unknown outcome.
	endTime = 5 * time.Second
)

// replicate copies what is due, lanes in parallel, until life ends.
func (j *Journal) replicate(life context.Context) {
	var copying errgroup.Group
	copying.SetLimit(j.settings.Load().Workers)
	defer func() { _ = copying.Wait() }()
	var lanes []string
	var tidied, all time.Time
	for {
		if time.Since(tidied) > tidyEvery {
			j.tidy(life)
			tidied = time.Now()
		}
		begun := time.Now()
		if begun.After(all) {
			lanes = nil
		}
		due := j.due(life, lanes...)
		if lanes == nil {
			all = time.Now().Add(max(poll, 10*time.Since(begun))) // many entries take long to look through
		}
		for _, e := range due {
			names := state.CopyLeases(e)
			if j.leases.try(names) != nil {
				continue // this process copies the lane already
			}
			copying.Go(func() error {
				j.copyLane(life, e, names)
				return nil
			})
		}
		if lanes = j.woken(life, time.Until(all)); life.Err() != nil {
			return
		}
	}
}

// woken waits for lanes in which something may be due, at most for a time.
func (j *Journal) woken(life context.Context, limit time.Duration) (lanes []string) {
	select {
	case <-life.Done():
	case <-time.After(limit):
	case lane := <-j.wake:
		lanes = []string{lane}
		upstream.Pause(life, gather)
		for len(j.wake) > 0 {
			lanes = append(lanes, <-j.wake)
		}
	}
	return lanes
}

// poke has the replicator look at a lane. If it is too busy to listen, it finds the lane later.
func (j *Journal) poke(lane string) {
	select {
	case j.wake <- lane:
	default:
	}
}

// due returns the entries to copy, of some lanes or of all. There is none while copying is paused or the store is away.
func (j *Journal) due(life context.Context, lanes ...string) []state.JournalEntry {
	ctx, cancel := context.WithTimeout(life, storeTimeout)
	defer cancel()
	due, err := j.store.DueJournal(ctx, maxDue, lanes...)
	away := err != nil
	if life.Err() != nil || j.away.Swap(away) == away {
		return due
	}
	if away {
		j.logger.Warn("the journal cannot be read, and nothing is copied", "cause", err)
	} else {
		j.logger.Info("the journal is read again")
	}
	return due
}

// copyLane does what an entry needs, for which it has the leases, and then what follows in its lane.
func (j *Journal) copyLane(life context.Context, e state.JournalEntry, leases []string) {
	for turn := 0; turn < maxTurn && life.Err() == nil; turn++ {
		noted := j.advance(life, e)
		j.leases.unlock(leases)
		if !noted {
			return
		}
		if e.Made != "" {
			j.poke(e.Made)
		}
		next := j.due(life, e.Lane)
		if len(next) == 0 {
			return
		}
		e, leases = next[0], state.CopyLeases(next[0])
		if j.leases.try(leases) != nil {
			return
		}
	}
	j.leases.unlock(leases)
	j.poke(e.Lane)
}

// advance does what the first entry of a lane needs. It reports whether what became of that was noted.
func (j *Journal) advance(life context.Context, e state.JournalEntry) bool {
	settings := j.settings.Load()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(life), 2*settings.Timeout)
	defer cancel()
	defer context.AfterFunc(life, func() { time.AfterFunc(endTime, cancel) })()
	s := &step{journal: j, settings: settings, from: e, entry: &e}
	// What another process has begun may still be under way, so nothing is looked at before its lease is over.
	if open := e.Attempt != nil || e.Status == state.JournalBegun; open && !s.begin(ctx) {
		return false
	}
	if err := s.run(ctx); err != nil {
		s.failed(err)
	}
	if !s.begun && !s.begin(ctx) {
		return false
	}
	if err := s.end(ctx); err != nil {
		j.logger.Warn("what was copied could not be noted; it will be read back", "entry", e.Seq, "cause", err)
		return false
	}
	if e.Status == state.JournalParked {
		j.logger.Warn("a lane of the journal is parked", "entry", e.Seq, "lane", e.Lane, "reason", e.Reason)
	}
	if e.Status.Finished() {
		if s.from.Spool != "" {
			// Other entries of the same write may need the content. One that stays is removed with what has no entry.
			if used, err := j.store.JournalSpooled(ctx, s.from.Spool); err == nil && !used {
				j.removeContent(settings, s.from.Spool)
			}
		}
		j.callers.Invalidate(e.Seq)
	}
	return true
}

// tidy removes finished entries that are old, and files without an entry.
func (j *Journal) tidy(life context.Context) {
	settings := j.settings.Load()
	ctx, cancel := context.WithTimeout(life, storeTimeout)
	defer cancel()
	if err := j.store.PruneJournal(ctx, time.Now().Add(-settings.Keep)); err != nil && life.Err() == nil {
		j.logger.Warn("old entries of the journal could not be removed", "cause", err)
	}
	for _, name := range settings.spool().orphans() {
		used, err := j.store.JournalSpooled(ctx, name)
		if err == nil && !used {
			err = settings.spool().remove(name)
		}
		if err != nil {
			j.logger.Warn("an old spool file could not be removed", "cause", err)
			return // nor could the others
		}
	}
}
