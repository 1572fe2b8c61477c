package recording

import (
	"context"
	"slices"
	"time"

	"portico/upstream/canary"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

const (
	// minConfirmed is how often a difference is confirmed by asking again; after that it is believed.
	minConfirmed = 3
	// maxAsked is how often the reference is asked about a difference, until it contradicts itself there.
	maxAsked = 6
	// maxReplicationDelay is how long after a change a tracker may show what was there before it.
	maxReplicationDelay = time.Minute
)

// believed reports whether all differences were confirmed often enough.
func (r *replay) believed(e Exchange, found []compare.Difference) bool {
	return !slices.ContainsFunc(found, func(d compare.Difference) bool {
		return r.findings[d.Signature(e.Operation)].Count < minConfirmed
	})
}

// confirm asks again, and judges as the comparison of live traffic does. Against a recording there is only the candidate to be
// asked, so that noise is where that one contradicts itself. Else the reference is asked until it explains all differences. It gives the differences that are still there, or went away although
// nothing explains it, and whether others were noise. reason is why the replies cannot be compared.
func (r *replay) confirm(ctx context.Context, e Exchange, want, have side, found []compare.Difference) (confirmed []compare.Difference, noisy bool, reason string) {
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, false, string(verdict.DropClosed)
	case <-time.After(r.ConfirmAfter):
	}
	wantNow, haveNow, reason := r.look(ctx, e)
	if reason != "" {
		return nil, false, reason
	}
	left := compare.Remaining(
		compare.Reported{Reference: want.Reply, Differences: found},
		compare.Reported{Reference: wantNow.Reply, Differences: r.differences(e, wantNow, haveNow)},
	)
	changed := r.between(e, want, wantNow)
	isChanged, varied := compare.Changed(changed), changed
	if r.isRecorded() {
		varied = r.between(e, have, haveNow)
	}
	for n := 1; n < maxAsked && !r.isRecorded() && len(canary.Steady(left, varied)) > 0; n++ {
		again := r.ask(ctx, r.Against, e)
		if again.reason != "" || again.Failure != "" {
			break
		}
		varied = append(varied, r.between(e, wantNow, again)...)
	}
	for _, d := range left {
		switch {
		// A candidate that replies as the recording says in the end was wrong before.
		case !(d.Unstable && r.isRecorded()) && len(canary.Steady([]compare.Difference{d}, varied)) == 0:
			if noisy = true; d.Path == "$" { // anything may be behind it
				reason = string(verdict.DropDigestNoise)
			}
		case isChanged(d) || d.Unstable && compare.ChangedSince(d, began.Add(-maxReplicationDelay)):
		default:
			confirmed = append(confirmed, d)
		}
	}
	return confirmed, noisy, reason
}
