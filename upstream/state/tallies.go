package state

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"portico/mapping"
)

// How long tallies are kept, and how often those that are older are removed.
const (
	tallyAge   = 30 * 24 * time.Hour
	tallyPrune = time.Hour
)

// tallyKey is what a tally is a sum of.
type tallyKey struct {
	minute          int64
	answered, other string
	operation       mapping.Operation
}

func keyOf(t Tally) tallyKey {
	return tallyKey{micros(t.At.Truncate(time.Minute)), name(t.Answered), name(t.Other), mapping.Operation(name(string(t.Operation)))}
}

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
	sum := maps.Clone(a)
	if sum == nil {
		sum = make(map[string]int64, len(b))
	}
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
// of At are cut off. Tallies that are older than 30 days are removed now and then.
func (s *Store) AddTallies(ctx context.Context, tallies []Tally) error {
	if s.due("tallies", tallyPrune) {
		if err := s.pruneTallies(ctx); err != nil {
			return err
		}
	}
	if len(tallies) == 0 {
		return nil
	}
	// All processes lock the rows in the same order, or they could wait for each other for ever.
	sorted := slices.SortedFunc(slices.Values(tallies), func(one, other Tally) int {
		a, b := keyOf(one), keyOf(other)
		return cmp.Or(cmp.Compare(a.minute, b.minute), cmp.Compare(a.answered, b.answered), cmp.Compare(a.other, b.other), cmp.Compare(a.operation, b.operation))
	})
	return s.write(ctx, "adding tallies", func(tx *session) {
		tx.campaign(tx.forShare)
		since := tx.evidence()
		for _, t := range sorted {
			tx.addTally(keyOf(t).after(since), t)
		}
	})
}

// addTally adds the numbers and, now that the row is locked, merges the rest.
func (s *session) addTally(key tallyKey, t Tally) {
	type merged struct {
		Mismatches, Dropped           map[string]int64
		AnsweredLatency, OtherLatency []int64
	}
	rest := one[merged](s, `INSERT INTO portico_tallies
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
		RETURNING mismatches, dropped, answered_latency, other_latency`,
		key.minute, key.answered, key.other, key.operation, t.Compared, t.Same, t.Noisy, t.Transient, t.Confirmed, t.Accepted, t.Failed)
	s.exec(`UPDATE portico_tallies SET mismatches = ?, dropped = ?, answered_latency = ?, other_latency = ?
		WHERE minute = ? AND answered = ? AND other = ? AND operation = ?`,
		jsonColumn{addMismatches(rest.Mismatches, t.Mismatches)}, jsonColumn{addCounts(rest.Dropped, t.Dropped)},
		jsonColumn{AddBuckets(rest.AnsweredLatency, t.AnsweredLatency)}, jsonColumn{AddBuckets(rest.OtherLatency, t.OtherLatency)},
		key.minute, key.answered, key.other, key.operation)
}

func (s *Store) pruneTallies(ctx context.Context) error {
	return s.write(ctx, "removing old tallies", func(tx *session) {
		tx.campaign(tx.forUpdate)
		tx.exec("DELETE FROM portico_tallies WHERE minute < ?", s.now().Add(-tallyAge))
	})
}

// Tallies gives the tallies of the minute of since and later, by time, operation
// and trackers.
func (s *Store) Tallies(ctx context.Context, since time.Time) ([]Tally, error) {
	return read[Tally](ctx, s, "reading the tallies", `SELECT minute, answered, other, operation, compared, same, noisy, transient, confirmed, accepted, failed,
			mismatches, dropped, answered_latency, other_latency
		FROM portico_tallies WHERE minute >= ? ORDER BY minute, operation, answered, other`, since.Truncate(time.Minute))
}
