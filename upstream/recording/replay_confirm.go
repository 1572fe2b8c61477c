package recording

import (
	"context"
	"slices"
	"time"

	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/canary/writes"
)

const (
	// minConfirmed is how often a difference is confirmed by asking again; after that it is believed.
	minConfirmed = 3
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
// asked, so that noise is where that one contradicts itself; a candidate that replies as the recording says in the end was wrong
// before. It gives the differences that are still there, or went away although nothing explains it, and whether others were noise.
// reason is why the replies cannot be compared.
func (r *replay) confirm(ctx context.Context, e Exchange, want, have side, found []compare.Difference) (confirmed []compare.Difference, noisy bool, reason string) {
	began := time.Now()
	if !upstream.Pause(ctx, r.ConfirmAfter) {
		return nil, false, string(verdict.DropClosed)
	}
	wantNow, haveNow, reason := r.look(ctx, e)
	if reason != "" {
		return nil, false, reason
	}
	left := compare.Remaining(want.Reply, wantNow.Reply, found, r.differences(e, wantNow, haveNow))
	left = slices.DeleteFunc(left, func(d compare.Difference) bool {
		return d.Unstable && writes.ChangedSince(d, began.Add(-maxReplicationDelay))
	})
	changed := r.between(e, want, wantNow)
	varied := changed
	if r.isRecorded() {
		varied = slices.DeleteFunc(r.between(e, have, haveNow), func(v compare.Difference) bool {
			return slices.ContainsFunc(left, func(d compare.Difference) bool { return d.Unstable && d.Pointer == v.Pointer })
		})
	}
	judged, dropped := canary.Confirmation{
		Left: left, Changed: changed, Varied: varied,
		Again:  func() ([]compare.Difference, verdict.DropReason) { return r.againstItself(ctx, e, wantNow) },
		Enough: func([]compare.Difference, int) bool { return r.isRecorded() },
	}.Judge()
	switch {
	case dropped != "":
		return nil, false, string(dropped)
	case slices.ContainsFunc(judged.Noise, func(d compare.Difference) bool { return d.Path == "$" }): // anything may be behind it
		reason = string(verdict.DropDigestNoise)
	}
	return judged.Confirmed, len(judged.Noise) > 0, reason
}

// againstItself asks the reference once more. A recording has no other reply.
func (r *replay) againstItself(ctx context.Context, e Exchange, before side) ([]compare.Difference, verdict.DropReason) {
	if r.isRecorded() {
		return nil, ""
	}
	again := r.ask(ctx, r.Against, e)
	if again.reason != "" || again.Failure != "" {
		return nil, verdict.DropOtherFailed
	}
	return r.between(e, before, again), ""
}
