package journal

import (
	"context"
	"time"

	"portico/upstream/state"
)

const (
	// poll is how often the store is asked for what is due.
	poll = 250 * time.Millisecond
	// gather is how long the replicator waits for more once something is due, so that many writes at a time cost one question.
	gather = 10 * time.Millisecond
	// maxDue is the maximum number of lanes of one question.
	maxDue = 100
	// tidyEvery is how often old entries and files are removed.
	tidyEvery = 10 * time.Minute
)

// replicate copies what is due, lanes in parallel, until life ends.
func (j *Journal) replicate(life context.Context) {
	slots := make(chan struct{}, max(1, j.settings.Load().Workers))
	defer func() { // waits for those who still copy
		for range cap(slots) {
			slots <- struct{}{}
		}
	}()
	tidied := time.Time{}
	for {
		if time.Since(tidied) > tidyEvery {
			j.tidy(life)
			tidied = time.Now()
		}
		for _, e := range j.due(life) {
			names := state.CopyLeases(e)
			if j.leases.try(names) != nil {
				continue // this process copies the lane already
			}
			select {
			case <-life.Done():
				j.leases.unlock(names)
				return
			case slots <- struct{}{}:
			}
			go func() {
				if j.advance(life, e) {
					j.poke()
				}
				j.leases.unlock(names)
				<-slots
			}()
		}
		select {
		case <-life.Done():
			return
		case <-j.wake:
			pause(life, gather)
		case <-time.After(poll):
		}
	}
}

// poke has the replicator look again.
func (j *Journal) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// due returns the entries to copy, none while copying is paused or the store is away.
func (j *Journal) due(life context.Context) []state.JournalEntry {
	ctx, cancel := context.WithTimeout(life, storeTimeout)
	defer cancel()
	due, err := j.store.DueJournal(ctx, maxDue)
	if err != nil && life.Err() == nil {
		j.logger.Warn("the journal could not be read", "cause", err)
	}
	return due
}

// advance does what the first entry of a lane needs. It reports whether the entry has come further.
func (j *Journal) advance(life context.Context, e state.JournalEntry) bool {
	settings := j.settings.Load()
	ctx, cancel := context.WithTimeout(life, 2*settings.Timeout)
	defer cancel()
	s := &step{journal: j, settings: settings, from: e, entry: &e}
	// What another process has begun may still be under way, so nothing is looked at before its lease is over.
	if open := e.Attempt != nil || e.Status == state.JournalBegun; open && !s.begin(ctx) {
		return false
	}
	if e.Status == state.JournalBegun {
		s.resolve(ctx)
	} else {
		s.copy(ctx)
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
		s.remove(s.from.Spool)
		j.shown.forget(e.Seq)
	}
	return e.Status != s.from.Status
}

// tidy removes finished entries that are old, and files without an entry.
func (j *Journal) tidy(life context.Context) {
	settings := j.settings.Load()
	ctx, cancel := context.WithTimeout(life, storeTimeout)
	defer cancel()
	if err := j.store.PruneJournal(ctx, time.Now().Add(-settings.Keep)); err != nil && life.Err() == nil {
		j.logger.Warn("old entries of the journal could not be removed", "cause", err)
	}
	for _, name := range settings.spool().orphans(time.Now()) {
		used, err := j.store.JournalSpooled(ctx, name)
		if err == nil && !used {
			err = settings.spool().remove(name)
		}
		if err != nil && life.Err() == nil {
			j.logger.Warn("an old spool file could not be removed", "cause", err)
		}
	}
}
