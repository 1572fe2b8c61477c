package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portico/upstream"
	"portico/upstream/state"
)

// Operator changes entries by hand. It needs no running journal.
type Operator struct {
	Store *state.Store
	// Actor and Reason go into the audit trail. The caller has asked for both.
	Actor, Reason string
}

// StatusError says why an entry is not changed as an operator wants.
type StatusError struct{ Why string }

// Error implements error.
func (e *StatusError) Error() string { return e.Why }

// Retry has a parked entry tried again. A create whose outcome at the target is not known is looked for there again; any other write is
// copied, unless it would overwrite a later one.
func (o *Operator) Retry(ctx context.Context, seq int64) error {
	return o.change(ctx, seq, "retry", state.JournalParked, func(e *state.JournalEntry) {
		e.Status, e.Reason, e.Attempts, e.Next = state.JournalPending, "", 0, time.Time{}
		if e.Operation.IsCreate() && e.Made == "" {
			e.Status = state.JournalBegun
		}
	})
}

// Skip leaves out a parked entry for ever, so that the lane goes on. Its content is removed.
func (o *Operator) Skip(ctx context.Context, seq int64) error {
	return o.change(ctx, seq, "skip", state.JournalParked, func(e *state.JournalEntry) {
		e.Status, e.Reason = state.JournalSkipped, o.Reason
	})
}

// Park stops a lane at an entry that is not copied yet.
func (o *Operator) Park(ctx context.Context, seq int64) error {
	return o.change(ctx, seq, "park", state.JournalPending, func(e *state.JournalEntry) {
		e.Status, e.Reason = state.JournalParked, "parked by "+o.Actor+": "+o.Reason
	})
}

// change changes an entry that has a status.
func (o *Operator) change(ctx context.Context, seq int64, verb string, from state.JournalStatus, change func(*state.JournalEntry)) error {
	e, err := o.Store.JournalEntry(ctx, seq)
	if err != nil {
		return err
	}
	if e.Status != from {
		return &StatusError{fmt.Sprintf("entry %d is %s; there is nothing to %s", seq, e.Status, verb)}
	}
	change(&e)
	record := state.Record{Actor: o.Actor, Action: verb + " an entry of the journal", Reason: o.Reason}
	err = o.Store.PutJournal(ctx, e, from, record)
	if errors.Is(err, state.ErrNotFound) {
		return &StatusError{fmt.Sprintf("entry %d is no longer %s; there is nothing to %s", seq, from, verb)}
	}
	if later, overtaken := errors.AsType[*state.OvertakenError](err); overtaken {
		return &StatusError{fmt.Sprintf("%s has got a later write of %s, entry %d, which a copy of entry %d would overwrite: make by hand there what is missing, then skip it",
			e.Receiver, e.Lane, later.By, seq)}
	}
	return err
}

// Start begins a new starting point: copying is paused in all processes while writes are recorded, and what was lost before is forgotten, since the operator copies the data.
func (o *Operator) Start(ctx context.Context) error {
	return o.Store.StartJournal(ctx, state.Record{Actor: o.Actor, Reason: o.Reason})
}

// Resume has copying go on, after Start or a kill.
func (o *Operator) Resume(ctx context.Context) error {
	return o.Store.ResumeJournal(ctx, state.Record{Actor: o.Actor, Reason: o.Reason})
}

// Status is the state of the journal as operators see it.
type Status struct {
	// Read is when the store was asked.
	Read   time.Time `json:"-"`
	Paused bool      `json:"paused"`
	// Pending, Unresolved and Parked are how many entries wait to be copied, have an unknown outcome at the target, or wait for an operator.
	Pending    int64 `json:"pending"`
	Unresolved int64 `json:"unresolved"`
	Parked     int64 `json:"parked"`
	// ParkedLanes is how many lanes have stopped.
	ParkedLanes int64 `json:"parked_lanes"`
	// Lag is the age of the oldest entry that is not copied, in seconds.
	Lag float64 `json:"lag_seconds"`
	// Missed counts writes that this process let pass unrecorded, Late outcomes that it could not commit in time.
	Missed int64 `json:"missed"`
	Late   int64 `json:"late"`
	// Rate is how many entries a second were copied in the last minute.
	Rate float64 `json:"copied_per_second"`
	// Rules are the figures by rule, receiver and status.
	Rules []state.JournalCount `json:"rules"`
	// Stopped are the entries that are parked or have an unknown outcome, and Losses what is never copied; both are bounded.
	Stopped []state.JournalEntry `json:"stopped"`
	Losses  []state.JournalLoss  `json:"losses"`
	// unread says that the store did not tell all of it, or not lately, so that nothing is known to be safe.
	unread bool
}

// maxStopped bounds the entries and losses of a status.
const maxStopped = 100

// StatusOf reads the status of a journal from its store.
func StatusOf(ctx context.Context, store *state.Store) (status Status, err error) {
	read := time.Now()
	all, err := store.JournalOverview(ctx, maxStopped)
	status = Status{
		Read: read, Paused: all.Paused, Rules: all.Counts, Stopped: all.Stopped, Losses: all.Losses, Rate: float64(all.Applied) / 60, unread: err != nil,
	}
	for _, count := range status.Rules {
		switch count.Status {
		case state.JournalParked:
			status.Parked += count.Entries
			status.ParkedLanes += count.Lanes
		case state.JournalBegun:
			status.Unresolved += count.Entries
		default:
			status.Pending += count.Entries
		}
		status.Lag = max(status.Lag, time.Since(count.Oldest).Seconds())
	}
	return status, err
}

// reportEvery is how often the status is reported.
const reportEvery = 2 * time.Second

// report reports the status until life ends.
func (j *Journal) report(life context.Context) {
	for {
		j.storeLosses(life)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(life, storeTimeout)
		status, err := j.Status(ctx)
		cancel()
		wait := max(reportEvery, 10*time.Since(begun)) // many entries take long to count
		if last := j.last.Load(); err != nil && last != nil {
			former := *last
			former.Missed, former.Late, former.unread = status.Missed, status.Late, true // this process counts these itself
			status, err = former, nil
		}
		if err == nil {
			j.last.Store(&status)
			j.observe(status)
		}
		if !upstream.Pause(life, wait) {
			return
		}
	}
}

// Last returns the status as it was last reported, nil before that. Without the store its figures stay, and nothing is safe.
func (j *Journal) Last() *Status { return j.last.Load() }

// Status reads the status.
func (j *Journal) Status(ctx context.Context) (Status, error) {
	status, err := StatusOf(ctx, j.store)
	status.Missed, status.Late = j.missed.Load(), j.late.Load()
	return status, err
}
