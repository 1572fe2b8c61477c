package journal

import (
	"context"
	"errors"
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

// copyLease names the lease for copying a lane.
func copyLease(lane string) string { return "copy " + lane }

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
			names := []string{copyLease(e.Lane)}
			if e.Status == state.JournalBegun { // what a write makes meanwhile could be taken for what is looked for
				names = append(names, state.WriteLease(e.Lane))
			}
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
				if j.advance(life, e, names) {
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
	paused, err := j.store.JournalPaused(ctx)
	if err != nil || paused {
		return nil
	}
	due, err := j.store.DueJournal(ctx, maxDue)
	if err != nil && life.Err() == nil {
		j.logger.Warn("the journal could not be read", "cause", err)
	}
	return due
}

// advance takes the leases of a lane and does what its first entry needs. It reports whether the entry has come further.
func (j *Journal) advance(life context.Context, e state.JournalEntry, leases []string) bool {
	settings := j.settings.Load()
	ctx, cancel := context.WithTimeout(life, 2*settings.Timeout)
	defer cancel()
	var held []string
	defer func() { j.release(ctx, held) }()
	for _, lease := range leases {
		taken, err := j.store.TakeLease(ctx, lease, j.holder, settings.lease())
		if err != nil || !taken {
			return false
		}
		held = append(held, lease)
	}
	e, status, err := j.again(ctx, e)
	if err != nil {
		return false
	}
	from := e
	s := &step{journal: j, settings: settings, entry: &e}
	if status == state.JournalBegun {
		s.resolve(ctx)
	} else {
		s.copy(ctx)
	}
	if err := j.put(ctx, e, status, state.Record{}); err != nil {
		j.logger.Warn("what was copied could not be noted; it will be read back", "entry", e.Seq, "cause", err)
		return false
	}
	if e.Status == state.JournalParked {
		j.logger.Warn("a lane of the journal is parked", "entry", e.Seq, "lane", e.Lane, "reason", e.Reason)
	}
	if e.Status.Finished() {
		s.remove(from.Spool)
		j.shown.forget(e.Seq)
	}
	return e.Status != status
}

// release gives leases back.
func (j *Journal) release(ctx context.Context, leases []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	for _, lease := range leases {
		if err := j.store.ReleaseLease(ctx, lease, j.holder); err != nil {
			j.logger.Warn("a lease of the journal could not be released", "cause", err)
		}
	}
}

// again reads an entry under the lease: another process may have finished it meanwhile.
func (j *Journal) again(ctx context.Context, seen state.JournalEntry) (state.JournalEntry, state.JournalStatus, error) {
	e, err := j.store.JournalEntry(ctx, seen.Seq)
	if err == nil && e.Status != seen.Status {
		err = errors.New("the entry has changed")
	}
	return e, e.Status, err
}

// put stores an entry.
func (j *Journal) put(ctx context.Context, e state.JournalEntry, from state.JournalStatus, record state.Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return j.store.PutJournal(ctx, e, from, record)
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
