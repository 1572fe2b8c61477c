package canary

import (
	"sync/atomic"

	"portico/mapping"
)

// DropReason says why a comparison was not made. The set is closed, so it may label
// a metric.
type DropReason string

// The reasons. Those of the first group are decided before anything is asked.
const (
	// DropQueueFull: all workers were busy and the queue was full.
	DropQueueFull DropReason = "queue-full"
	// DropRateLimit: there were more samples than Options.PerSecond.
	DropRateLimit DropReason = "rate-limit"
	// DropMemory: the answers that wait already take as much memory as they may.
	DropMemory DropReason = "memory-full"
	// DropSpool: the answers that wait already take as much room in files as they may.
	DropSpool DropReason = "spool-full"
	// DropSpoolFailed: a file for an answer could not be written or read.
	DropSpoolFailed DropReason = "spool-failed"
	// DropUnread: the client hung up, or did not read the answer to its end.
	DropUnread DropReason = "unread"
	// DropNotModified: the answer was a 304, which has no content.
	DropNotModified DropReason = "not-modified"
	// DropAnsweredFailed: the tracker that was to answer did not, or not soundly. Of
	// the candidate it is DropCandidateFailed.
	DropAnsweredFailed DropReason = "answered-failed"
	// DropOwnError: Portico made the answer, which says nothing of the tracker.
	DropOwnError DropReason = "own-error"
	// DropUnreadable: the client's answer is not JSON that can be compared.
	DropUnreadable DropReason = "unreadable"
	// DropCredentials: there is nothing by which the trackers would know the caller.
	DropCredentials DropReason = "no-credentials"
	// DropUnknown: one of the two trackers is not configured.
	DropUnknown DropReason = "unknown-tracker"

	// DropUnreachable: no connection to the candidate.
	DropUnreachable DropReason = "other-unreachable"
	// DropBreaker: the candidate's breaker is open.
	DropBreaker DropReason = "other-breaker-open"
	// DropOverload: the candidate has as many comparisons as it may.
	DropOverload DropReason = "other-overload"
	// DropCandidateFailed: the candidate was to answer the client and did not, or not
	// soundly; or it did not when it was asked again about a difference.
	DropCandidateFailed DropReason = "candidate-failed"
	// DropOtherFailed: the tracker that is not the candidate gave no sound answer.
	DropOtherFailed DropReason = "other-failed"

	// DropConfirmFull: too many differences were waiting to be confirmed.
	DropConfirmFull DropReason = "confirm-full"
	// DropConfirmLimit: confirming would have asked the trackers too often.
	DropConfirmLimit DropReason = "confirm-limit"
	// DropDigestNoise: the answers were compared by their digests only, and that of the
	// reference is another one each time, so that nothing can be told of the candidate.
	DropDigestNoise DropReason = "digest-noise"

	// DropNotIsolated: the marker has not proved that the candidate is isolated.
	DropNotIsolated DropReason = "not-isolated"
	// DropPayload: the payload of a write is too large to be kept for a replay.
	DropPayload DropReason = "payload-too-large"
	// DropNothingToRead: nobody can say what a write has touched.
	DropNothingToRead DropReason = "nothing-to-read"
	// DropPlanFailed: a write could not be rendered for one of the trackers.
	DropPlanFailed DropReason = "plan-failed"

	// DropClosed: the comparison was closed meanwhile.
	DropClosed DropReason = "closed"
	// DropInternal: a mistake in the comparison itself; the log has more.
	DropInternal DropReason = "internal"
)

// DropReasons lists all reasons.
func DropReasons() []DropReason {
	return []DropReason{
		DropQueueFull, DropRateLimit, DropMemory, DropSpool, DropSpoolFailed, DropUnread, DropNotModified, DropAnsweredFailed,
		DropOwnError, DropUnreadable, DropCredentials, DropUnknown, DropUnreachable, DropBreaker, DropOverload, DropCandidateFailed, DropOtherFailed,
		DropConfirmFull, DropConfirmLimit, DropDigestNoise, DropNotIsolated, DropPayload, DropNothingToRead, DropPlanFailed, DropClosed, DropInternal,
	}
}

// isCandidates tells the drops that are the candidate's fault. How long a queue is,
// and how much memory and how many calls a comparison may take, is nobody's.
func (r DropReason) isCandidates() bool {
	switch r {
	case DropUnreachable, DropBreaker, DropOverload, DropCandidateFailed:
		return true
	default:
		return false
	}
}

// drop says of one call that it is not compared. It costs a client's call next to
// nothing.
func (c *Canary) drop(about subject, reason DropReason) {
	c.ledger.dropped(about, reason)
}

// budget is an amount that several share. The zero value has nothing to give.
type budget struct {
	left atomic.Int64
}

// take gives true when there was enough left.
func (b *budget) take(n int64) bool {
	if b.left.Add(-n) >= 0 {
		return true
	}
	b.left.Add(n)
	return false
}

func (b *budget) give(n int64) { b.left.Add(n) }

// subject is what the numbers are kept by.
type subject struct {
	reference, candidate string
	operation            mapping.Operation
}
