package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

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
