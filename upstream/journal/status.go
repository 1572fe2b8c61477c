package journal

import (
	"context"
	"time"

	"portico/upstream"
	"portico/upstream/state"
)

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
