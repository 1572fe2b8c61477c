package state

import (
	"context"
	"maps"
	"slices"
	"time"
)

// tallyAge is how long tallies are kept.
const tallyAge = 30 * 24 * time.Hour

// Add sums up two tallies of the same key and leaves both as they are.
func (t Tally) Add(more Tally) Tally {
	t.Compared += more.Compared
	t.Same += more.Same
	t.Noisy += more.Noisy
	t.Transient += more.Transient
	t.Confirmed += more.Confirmed
	t.Accepted += more.Accepted
	t.Failed += more.Failed
	t.Mismatches = addMismatches(t.Mismatches, more.Mismatches)
	t.Dropped = addCounts(t.Dropped, more.Dropped)
	t.AnsweredLatency = AddBuckets(t.AnsweredLatency, more.AnsweredLatency)
	t.OtherLatency = AddBuckets(t.OtherLatency, more.OtherLatency)
	return t
}

// addCounts leaves both maps as they are.
func addCounts(a, b map[string]int64) map[string]int64 {
	sum := map[string]int64{}
	maps.Copy(sum, a)
	for reason, count := range b {
		sum[name(reason)] += count
	}
	return sum
}

// AddBuckets adds up the counts of two histograms, and leaves both lists as they are.
func AddBuckets(a, b []int64) []int64 {
	if len(a) < len(b) {
		a, b = b, a
	}
	sum := slices.Clone(a)
	for i, count := range b {
		sum[i] += count
	}
	return sum
}

// AddTallies adds to what is kept, all of it or, with an error, nothing. The seconds
// of At are cut off. Tallies that are older than 30 days are removed, as they are by Open.
func (s *Store) AddTallies(ctx context.Context, tallies []Tally) error {
	if len(tallies) == 0 {
		return nil
	}
	return s.write(ctx, "adding tallies", func(tx *session) {
		tx.lockCampaign(tx.forUpdate)
		tx.removeTallies(s.now())
		since := tx.evidence()
		for _, t := range tallies {
			t.At, t.Answered, t.Other = t.At.Truncate(time.Minute), name(t.Answered), name(t.Other)
			// What was counted in a minute before the evidence began anew in it keeps its own row.
			if began := since[t.Operation]; began.Truncate(time.Minute).Equal(t.At) {
				t.At = began
			}
			tx.addTally(t)
		}
	})
}

// removeTallies removes those that are older than 30 days.
func (s *session) removeTallies(now time.Time) {
	s.exec("DELETE FROM portico_tallies WHERE minute < ?", now.Add(-tallyAge)) // the key begins with the minute
}

// tallyColumns are the columns of a Tally.
const tallyColumns = "minute, answered, other, operation, compared, same, noisy, transient, confirmed, accepted, failed, mismatches, dropped, answered_latency, other_latency"

// addTally adds the numbers and, now that the row is locked, merges the rest.
func (s *session) addTally(t Tally) {
	sum := one[Tally](s, `INSERT INTO portico_tallies
		(minute, answered, other, operation, compared, same, noisy, transient, confirmed, accepted, failed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (minute, answered, other, operation) DO UPDATE SET
			compared = portico_tallies.compared + excluded.compared,
			same = portico_tallies.same + excluded.same,
			noisy = portico_tallies.noisy + excluded.noisy,
			transient = portico_tallies.transient + excluded.transient,
			confirmed = portico_tallies.confirmed + excluded.confirmed,
			accepted = portico_tallies.accepted + excluded.accepted,
			failed = portico_tallies.failed + excluded.failed
		RETURNING `+tallyColumns,
		t.At, t.Answered, t.Other, t.Operation, t.Compared, t.Same, t.Noisy, t.Transient, t.Confirmed, t.Accepted, t.Failed).Add(t)
	s.exec(`UPDATE portico_tallies SET mismatches = ?, dropped = ?, answered_latency = ?, other_latency = ?
		WHERE minute = ? AND answered = ? AND other = ? AND operation = ?`,
		jsonColumn{sum.Mismatches}, jsonColumn{sum.Dropped}, jsonColumn{sum.AnsweredLatency}, jsonColumn{sum.OtherLatency},
		t.At, t.Answered, t.Other, t.Operation)
}

// Tallies gives the tallies of the minute of since and later, by time, operation
// and trackers.
func (s *Store) Tallies(ctx context.Context, since time.Time) ([]Tally, error) {
	return read[Tally](ctx, s, "reading the tallies", "SELECT "+tallyColumns+" FROM portico_tallies WHERE minute >= ? ORDER BY minute, operation, answered, other", since.Truncate(time.Minute))
}
