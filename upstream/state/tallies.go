package state

import (
	"cmp"
	"context"
	"encoding/json"
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
	t.AnsweredLatency = addBuckets(t.AnsweredLatency, more.AnsweredLatency)
	t.OtherLatency = addBuckets(t.OtherLatency, more.OtherLatency)
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

// addBuckets leaves both lists as they are.
func addBuckets(a, b []int64) []int64 {
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
	sums := map[tallyKey]Tally{}
	for _, t := range tallies {
		sums[keyOf(t)] = sums[keyOf(t)].Add(t)
	}
	if len(sums) == 0 {
		return nil
	}
	// All processes lock the rows in the same order, or they could wait for each other for ever.
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b tallyKey) int {
		return cmp.Or(cmp.Compare(a.minute, b.minute), cmp.Compare(a.answered, b.answered), cmp.Compare(a.other, b.other), cmp.Compare(a.operation, b.operation))
	})
	return s.write(ctx, "adding tallies", func(tx session) error {
		if err := tx.campaign(ctx, tx.forShare); err != nil {
			return err
		}
		since, err := tx.evidence(ctx)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := tx.addTally(ctx, key.after(since), sums[key]); err != nil {
				return err
			}
		}
		return nil
	})
}

// addTally adds the numbers and, now that the row is locked, merges the rest.
func (s session) addTally(ctx context.Context, key tallyKey, t Tally) error {
	var present Tally
	var texts [4][]byte
	err := s.row(ctx, `INSERT INTO portico_tallies
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
		key.minute, key.answered, key.other, string(key.operation), t.Compared, t.Same, t.Noisy, t.Transient, t.Confirmed, t.Accepted, t.Failed,
	).Scan(&texts[0], &texts[1], &texts[2], &texts[3])
	if err != nil {
		return err
	}
	if err := present.decode(texts); err != nil {
		return err
	}
	merged, err := present.Add(t).encode()
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, `UPDATE portico_tallies SET mismatches = ?, dropped = ?, answered_latency = ?, other_latency = ?
		WHERE minute = ? AND answered = ? AND other = ? AND operation = ?`,
		merged[0], merged[1], merged[2], merged[3], key.minute, key.answered, key.other, string(key.operation))
	return err
}

// encode gives what is kept as JSON.
func (t Tally) encode() (texts [4]string, err error) {
	for i, value := range []any{t.Mismatches, t.Dropped, t.AnsweredLatency, t.OtherLatency} {
		text, err := json.Marshal(value)
		if err != nil {
			return texts, err
		}
		texts[i] = string(text)
	}
	return texts, nil
}

// decode is the reverse of encode.
func (t *Tally) decode(texts [4][]byte) error {
	for i, into := range []any{&t.Mismatches, &t.Dropped, &t.AnsweredLatency, &t.OtherLatency} {
		if err := json.Unmarshal(texts[i], into); err != nil {
			return err
		}
	}
	if len(t.Mismatches) == 0 {
		t.Mismatches = nil
	}
	return nil
}

func (s *Store) pruneTallies(ctx context.Context) error {
	return s.write(ctx, "removing old tallies", func(tx session) error {
		if err := tx.campaign(ctx, tx.forUpdate); err != nil {
			return err
		}
		_, err := tx.exec(ctx, "DELETE FROM portico_tallies WHERE minute < ?", micros(s.now().Add(-tallyAge)))
		return err
	})
}

// Tallies gives the tallies of the minute of since and later, by time, operation
// and trackers.
func (s *Store) Tallies(ctx context.Context, since time.Time) ([]Tally, error) {
	all, err := list(ctx, s.read(), scanTally, `SELECT minute, answered, other, operation, compared, same, noisy, transient, confirmed, accepted, failed,
			mismatches, dropped, answered_latency, other_latency
		FROM portico_tallies WHERE minute >= ? ORDER BY minute, operation, answered, other`, micros(since.Truncate(time.Minute)))
	return all, s.failed("reading the tallies", err)
}

func scanTally(scan scanner) (Tally, error) {
	var t Tally
	var minute int64
	var texts [4][]byte
	err := scan(&minute, &t.Answered, &t.Other, &t.Operation, &t.Compared, &t.Same, &t.Noisy, &t.Transient, &t.Confirmed, &t.Accepted, &t.Failed,
		&texts[0], &texts[1], &texts[2], &texts[3])
	if err != nil {
		return t, err
	}
	t.At = fromMicros(minute)
	return t, t.decode(texts)
}
