package canary

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

// shadowRole is what trackers are told that a comparison's calls are for.
const shadowRole = "shadow"

// callerFor gives the caller in whose name a tracker is asked. Cookies belong to
// one tracker; a caller that is known by them alone would be anonymous without.
func (c *Canary) callerFor(caller upstream.Caller, tracker string) (upstream.Caller, bool) {
	asked, ok := c.options.Caller(caller, tracker)
	asked.Credentials.Cookies = ""
	asked.Role = shadowRole
	return asked, ok && (caller.Anonymous() || !asked.Anonymous())
}

// ask makes the call of one of the two trackers, and says why there is nothing to compare, if so.
func (c *Canary) ask(ctx context.Context, j *job, tracker string) (compare.Reply, time.Duration, verdict.DropReason) {
	caller, ok := c.callerFor(j.caller, tracker)
	if !ok {
		return compare.Reply{}, 0, verdict.DropCredentials
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	if j.maxReply > 0 && tracker == c.options.Candidate {
		ctx = upstream.WithMaxResponse(ctx, j.maxReply)
	}
	answer := j.call.Make(ctx, c.options.Trackers[tracker], caller)
	reply, err := c.replyOf(ctx, j.call.Operation, answer)
	var reason verdict.DropReason
	switch failed, own := errors.AsType[*mapping.Error](answer.Err); {
	case (err != nil || answer.Err != nil) && c.ctx.Err() != nil:
		reason = verdict.DropClosed
	case answer.Err != nil && !own:
		reason = verdict.DropInternal
	case err != nil:
		reason = keepReason(err)
	case tracker != c.options.Candidate && reply.Failure != "" && j.byCandidate:
		reason = verdict.DropOtherFailed
	case tracker != c.options.Candidate && reply.Failure != "":
		reason = verdict.DropAnsweredFailed
	case own && !failed.ConnectionLost:
		reason = unreachable[failed.Reason]
		if reason != "" && j.byCandidate {
			reason = verdict.DropCandidateFailed
		}
	}
	return reply, answer.Took, reason
}

// unreachable maps reasons for which the candidate got no request. One that took the connection and then lost it has responded
// badly, and that is compared.
var unreachable = map[mapping.Reason]verdict.DropReason{
	mapping.ReasonUnreachable: verdict.DropUnreachable, mapping.ReasonBreakerOpen: verdict.DropBreaker, mapping.ReasonOverload: verdict.DropOverload,
}

// askBoth asks the reference and then the candidate.
func (c *Canary) askBoth(ctx context.Context, j *job) (reference, candidate compare.Reply, reason verdict.DropReason) {
	j.pairedCalls = responseTimes{}
	if reference, j.pairedCalls.reference, reason = c.ask(ctx, j, c.options.Reference); reason == "" {
		candidate, j.pairedCalls.candidate, reason = c.ask(ctx, j, c.options.Candidate)
	}
	if !j.observed.known() {
		j.observed = j.pairedCalls
	}
	return reference, candidate, reason
}

// compare compares a read: the other tracker is asked, and both are asked again where they differ.
func (c *Canary) compare(ctx context.Context, j *job) verdict.DropReason {
	own, other := j.client, c.options.Reference
	if !j.byCandidate {
		const times, slack = 8, 1 << 20 // a candidate that floods costs no more
		other, j.maxReply = c.options.Candidate, times*j.size+slack
	}
	reply, took, reason := c.ask(ctx, j, other)
	if reason != "" {
		return reason
	}
	*j.observed.of(!j.byCandidate) = took
	j.first, j.second = own, reply
	if j.byCandidate {
		j.first, j.second = reply, own
	}
	c.releaseClient(j)
	if j.unexplained = c.unexplained(j, c.differences(j, j.first, j.second)); len(j.unexplained) == 0 {
		c.learnEarly(ctx, j)
		return c.conclude(j, nil, kindReply, OutcomeSame)
	}
	if !c.confirms.Allow() {
		return verdict.DropConfirmLimit
	}
	if !c.hold(j, len(j.first.Body)+len(j.second.Body)) {
		return verdict.DropMemory
	}
	if reason := c.pause(c.options.ConfirmAfter); reason != "" {
		return reason
	}
	return c.confirm(ctx, j)
}

// learnEarly asks the reference twice for some of the calls, to learn where it
// contradicts itself, and both once for all of them while the candidate seems to be slower.
func (c *Canary) learnEarly(ctx context.Context, j *job) {
	twice := rand.Float64() < c.options.NoiseShare
	if !twice && !c.recorder.seemsSlow(j.operation) || !c.confirms.Allow() {
		return
	}
	first, reference, reason := c.ask(ctx, j, c.options.Reference)
	if reason != "" {
		return
	}
	if j.observed.reference == 0 {
		j.observed.reference = reference
	}
	j.pairedCalls = responseTimes{reference, j.observed.candidate}
	if j.byCandidate { // on a busy machine a comparison waits where clients do not
		_, j.pairedCalls.candidate, _ = c.ask(ctx, j, c.options.Candidate)
	}
	if twice {
		_, _, _ = c.askAgain(ctx, j, first) // when it fails, nothing is learnt
	}
}

// unexplained gives the differences that neither a rule nor noise explains, and counts the uses of rules.
func (c *Canary) unexplained(j *job, all []compare.Difference) (unexplained []compare.Difference) {
	for _, d := range all {
		switch {
		case d.Rule != "":
			c.recorder.used(d.Rule)
		case c.isNoise(j, d):
			j.noisy = true
		default:
			unexplained = append(unexplained, d)
		}
	}
	return unexplained
}

// isNoise reports whether a difference is where the reference was seen to vary, or a time that an isolated candidate has later.
func (c *Canary) isNoise(j *job, d compare.Difference) bool {
	return c.noise.known(c.noise.callOf(j.call), d, time.Now()) || c.options.Isolated && c.repeated.Excuses(d)
}

// differences are those between two replies to the call of a job, by the rules that have not expired yet.
func (c *Canary) differences(j *job, before, after compare.Reply) []compare.Difference {
	return compare.Compare(j.call.Operation, before, after, c.options.Rules.At(time.Now()))
}

// confirm asks both again. The client's response may have come from a cache, or been
// older than a write; now both are asked by the comparison alone.
func (c *Canary) confirm(ctx context.Context, j *job) verdict.DropReason {
	reference, candidate, reason := c.askBoth(ctx, j)
	if reason == "" && candidate.IsBroken() && !j.second.IsBroken() && !reference.IsBroken() {
		reason = verdict.DropCandidateFailed // what differed may be gone or not
	}
	if reason != "" {
		return reason
	}
	before := j.first
	now := slices.DeleteFunc(c.differences(j, reference, candidate), func(d compare.Difference) bool { return d.Rule != "" })
	steady := slices.DeleteFunc(slices.Clone(j.unexplained), func(s compare.Difference) bool {
		return c.isNoise(j, s) || slices.ContainsFunc(now, func(d compare.Difference) bool { return s.SamePlace(d) && c.isNoise(j, d) })
	})
	j.noisy = j.noisy || len(steady) < len(j.unexplained)
	left := compare.Remaining(compare.Reported{Reference: before, Differences: steady}, compare.Reported{Reference: reference, Differences: now})
	j.failed, j.firstStatus = j.second.IsBroken() && !before.IsBroken(), [2]int{before.Status, j.second.Status}
	j.first, j.second = reference, candidate
	all := len(left)
	left = slices.DeleteFunc(left, func(d compare.Difference) bool { return c.seen.Explains(j.call, d, j.began) })
	return c.judge(ctx, j, left, c.differences(j, before, reference), kindReply, len(left) < all)
}

// maxAsked is how often the reference is asked about a difference whose signature
// is new, until it says itself what the candidate says. What it says every other
// time, it then fails to say once in 64 times.
const maxAsked = 6

// judge concludes with those of the differences that the reference neither shows itself nor explains by a change. changed
// is what differs between its replies so far; written says that a write has explained other differences. The reference is
// asked once more, or several times where a finding is new.
func (c *Canary) judge(ctx context.Context, j *job, differences, changed []compare.Difference, kind string, written bool) verdict.DropReason {
	isChanged, varied, last := compare.Changed(changed), map[variation]bool{}, j.first
	steady, confirmed := differences, differences
	for n := 1; len(differences) > 0; n++ {
		next, more, reason := c.askAgain(ctx, j, last)
		if reason != "" {
			return c.abandonConfirmation(j, reason)
		}
		maps.Copy(varied, more)
		steady = without(differences, varied)
		confirmed = slices.DeleteFunc(slices.Clone(steady), isChanged)
		if !c.noise.needsMoreSamples(j.operation, confirmed, time.Now()) {
			break
		}
		if n == maxAsked {
			c.noise.markNotNoise(j.operation, confirmed, time.Now())
			break
		}
		last = next
	}
	j.noisy = j.noisy || len(steady) < len(differences)
	outcome := OutcomeSame
	if written || len(confirmed) < len(steady) {
		outcome = OutcomeTransient
	}
	return c.conclude(j, confirmed, kind, outcome)
}

// askAgain asks the reference once more, right after it gave a reply, and learns
// from what it says now.
func (c *Canary) askAgain(ctx context.Context, j *job, before compare.Reply) (compare.Reply, map[variation]bool, verdict.DropReason) {
	again, _, reason := c.ask(ctx, j, c.options.Reference)
	if reason != "" {
		return compare.Reply{}, nil, reason
	}
	varied := variations(c.differences(j, before, again))
	c.noise.learn(c.noise.callOf(j.call), varied, time.Now())
	return again, varied, ""
}

// conclude ends a comparison: with confirmed differences, or without. Noise in a whole
// response may hide anything, so that one is no comparison.
func (c *Canary) conclude(j *job, confirmed []compare.Difference, kind string, otherwise Outcome) verdict.DropReason {
	isWhole := func(d compare.Difference) bool { return d.Class == compare.ClassDigest && d.Pointer == "$" }
	if len(j.planned)+len(confirmed) == 0 && (j.first.Long || j.second.Long) && slices.ContainsFunc(c.differences(j, j.first, j.second), isWhole) {
		return verdict.DropDigestNoise
	}
	if otherwise == OutcomeSame && (j.noisy || j.otherForm) {
		otherwise = OutcomeNoisy
	}
	slower, isSlow := c.recorder.compared(comparison{j, append(j.planned, c.findings(j, confirmed, kind)...), otherwise})
	if isSlow {
		c.recorder.found(c.findings(j, []compare.Difference{slower}, kindLatency)[0])
	}
	j.first.Body, j.second.Body, j.unexplained = nil, nil, nil // it waits for being counted
	return ""
}
