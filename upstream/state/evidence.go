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
