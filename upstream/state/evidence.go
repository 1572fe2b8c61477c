package state

import (
	"context"
	"time"

	"portico/mapping"
)

// Evidence tells since when the comparisons of an operation count, for those of which
// a finding was called fixed during the campaign. Tallies of the operation from before
// that are history.
func (s *Store) Evidence(ctx context.Context) (map[mapping.Operation]time.Time, error) {
	since, err := s.session().evidence(ctx)
	return since, s.failed("reading since when comparisons count", err)
}

func (s session) evidence(ctx context.Context) (map[mapping.Operation]time.Time, error) {
	since := map[mapping.Operation]time.Time{}
	type row struct {
		Operation mapping.Operation
		Since     time.Time
	}
	err := each(ctx, s, func(r row) error {
		since[r.Operation] = r.Since
		return nil
	}, "SELECT operation, since FROM portico_evidence")
	return since, err
}

// beginEvidence lets the comparisons count anew of the operation that a finding is of.
func (s session) beginEvidence(ctx context.Context, signature string, at time.Time) error {
	var operation string
	if err := s.row(ctx, "SELECT operation FROM portico_findings WHERE signature = ?", signature).Scan(&operation); err != nil {
		return err
	}
	_, err := s.exec(ctx, `INSERT INTO portico_evidence (operation, since) VALUES (?, ?)
		ON CONFLICT (operation) DO UPDATE SET since = excluded.since`, operation, micros(at))
	return err
}

// after gives the key of what was counted in the minute in which the evidence began
// anew. What was counted before it in that minute keeps its own row.
func (k tallyKey) after(since map[mapping.Operation]time.Time) tallyKey {
	if began, ok := since[k.operation]; ok && micros(began.Truncate(time.Minute)) == k.minute {
		k.minute = micros(began)
	}
	return k
}
