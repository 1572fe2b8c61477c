package verdict

import "slices"

// DropReason says why a comparison was not made. The set is closed, so it may label a metric.
type DropReason string

// The reasons.
const (
	// DropQueueFull: all workers were busy and the queue was full, or too many differences waited to be confirmed.
	DropQueueFull DropReason = "queue-full"
	// DropRateLimit: there were more samples than Options.PerSecond, or more differences to confirm than half of that.
	DropRateLimit DropReason = "rate-limit"
	// DropMemory: the responses that wait already take the maximum of memory.
	DropMemory DropReason = "memory-full"
	// DropUnread: the client hung up, or did not read the response to its end.
	DropUnread DropReason = "unread"
	// DropNotModified: the response was a 304, which has no content.
	DropNotModified DropReason = "not-modified"
	// DropAnsweredFailed: the reference gave the client no valid response. Of
	// the candidate it is DropCandidateFailed.
	DropAnsweredFailed DropReason = "answered-failed"
	// DropOwnError: the response is an error of Portico's own.
	DropOwnError DropReason = "own-error"
	// DropUnreadable: the client's response is not JSON that can be compared.
	DropUnreadable DropReason = "unreadable"
	// DropCredentials: there is nothing by which the trackers would know the caller.
	DropCredentials DropReason = "no-credentials"

	// DropUnreachable: no connection to the candidate.
	DropUnreachable DropReason = "other-unreachable"
	// DropBreaker: the candidate's breaker is open.
	DropBreaker DropReason = "other-breaker-open"
	// DropOverload: the candidate has as many comparisons as it may.
	DropOverload DropReason = "other-overload"
	// DropCandidateFailed: the candidate gave the client no valid response, or none to the second request about a difference.
	DropCandidateFailed DropReason = "candidate-failed"
	// DropOtherFailed: the reference gave no valid response to the comparison.
	DropOtherFailed DropReason = "other-failed"

	// DropDigestNoise: the responses were compared by their digests only, and that of the reference is another one each time, so
	// that nothing is known of the candidate.
	DropDigestNoise DropReason = "digest-noise"

	// DropNotIsolated: the marker has not proved that the candidate is isolated.
	DropNotIsolated DropReason = "not-isolated"
	// DropPayload: the payload of a write is too large to be kept for a replay.
	DropPayload DropReason = "payload-too-large"
	// DropPlanFailed: a write could not be rendered for one of the trackers.
	DropPlanFailed DropReason = "plan-failed"

	// DropClosed: the comparison was closed meanwhile.
	DropClosed DropReason = "closed"
	// DropInternal: a file for the content of a response failed, or the comparison itself, of which the log has more.
	DropInternal DropReason = "internal"
)

// isCandidates reports whether the candidate caused a drop. Full queues, memory and rate limits do not count.
func (r DropReason) isCandidates() bool {
	return slices.Contains([]DropReason{DropUnreachable, DropBreaker, DropOverload, DropCandidateFailed}, r)
}
