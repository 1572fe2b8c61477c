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
	in := s.session(ctx)
	since := in.evidence()
	return since, failed("reading since when comparisons count", in.err)
}

func (s *session) evidence() map[mapping.Operation]time.Time {
	type row struct {
		Operation mapping.Operation
		Since     time.Time
	}
	since := map[mapping.Operation]time.Time{}
	for _, r := range list[row](s, "SELECT operation, since FROM portico_evidence") {
		since[r.Operation] = r.Since
	}
	return since
}

// beginEvidence lets the comparisons count anew of the operation that a finding is of.
func (s *session) beginEvidence(signature string, at time.Time) {
	s.exec(`INSERT INTO portico_evidence (operation, since) SELECT operation, CAST(? AS BIGINT) FROM portico_findings WHERE signature = ?
		ON CONFLICT (operation) DO UPDATE SET since = excluded.since`, at, signature)
}

// after gives the key of what was counted in the minute in which the evidence began
// anew. What was counted before it in that minute keeps its own row.
func (k tallyKey) after(since map[mapping.Operation]time.Time) tallyKey {
	if began, ok := since[k.operation]; ok && micros(began.Truncate(time.Minute)) == k.minute {
		k.minute = micros(began)
	}
	return k
}
