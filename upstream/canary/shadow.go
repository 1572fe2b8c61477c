package canary

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
)

// shadowRole names the purpose of a comparison's calls to trackers.
const shadowRole = "shadow"

// callerFor gives the caller in whose name a tracker is asked.
func (c *Canary) callerFor(caller upstream.Caller, tracker string) (upstream.Caller, bool) {
	caller, ok := c.options.Trackers[tracker].Caller(caller)
	caller.Role = shadowRole
	return caller, ok
}

// ask makes the call of one of the two trackers, and says why there is nothing to compare, if so.
func (c *Canary) ask(j *job, tracker string) (reply compare.Reply, took time.Duration, reason verdict.DropReason) {
	caller, ok := c.callerFor(j.caller, tracker)
	if !ok {
		return reply, 0, verdict.DropCredentials
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.options.Timeout)
	defer cancel()
	isCandidate := tracker == c.options.Candidate
	call := j.call
	if isCandidate {
		call.MaxResponse = j.maxReply
	}
	answer := call.Make(ctx, c.options.Trackers[tracker], caller)
	defer answer.Document.Close() // its failure is that of the reading
	reply, err := c.replyOf(ctx, j.call.Operation, answer)
	failed := failureOf(answer.Err)
	switch {
	case c.ctx.Err() != nil:
		reason = verdict.DropClosed
	case err != nil:
		reason = verdict.DropInternal
	case !isCandidate && reply.Failure != "":
		reason = j.either(verdict.DropOtherFailed, verdict.DropAnsweredFailed)
	// The candidate was not asked. That it lacks an object is known only where the reference has it.
	case failed.Reason == upstream.ReasonUnmapped && (failed.Status == http.StatusServiceUnavailable || !j.hasAll()):
		reason = verdict.DropOwnError
	case failed.Reason == upstream.ReasonUnmapped && failed.Status == http.StatusNotFound:
		reply = compare.ErrorReply(&failed)
	// A candidate that took the connection and then lost it has responded badly, and that is compared.
	case trackerFailures[failed.Reason] != "" && !failed.ConnectionLost:
		reason = j.either(verdict.DropCandidateFailed, trackerFailures[failed.Reason])
	}
	return reply, answer.Took, reason
}

// hasAll reports whether the reference has carried the call out, and has all attachments that a read names.
func (j *job) hasAll() bool {
	if j.first.Code != 0 || j.call.Attachments == nil {
		return j.first.Code == 0
	}
	var found struct {
		Attachments map[string]jsontext.Value `json:"attachments"`
	}
	_ = json.Unmarshal(j.first.Body, &found) // what cannot be read has none
	return len(found.Attachments) >= len(j.call.Attachments.Attachments)
}

// trackerFailures are the reasons of errors for which a tracker is to blame. Those for which the candidate got no request have a
// reason to drop the comparison.
var trackerFailures = map[mapping.Reason]verdict.DropReason{
	mapping.ReasonUnreachable: verdict.DropUnreachable, mapping.ReasonBreakerOpen: verdict.DropBreaker, mapping.ReasonOverload: verdict.DropOverload,
	mapping.ReasonTimeout: "", mapping.ReasonBadResponse: "", mapping.ReasonWebServer: "",
}

// askBoth asks the reference and then the candidate.
func (c *Canary) askBoth(j *job) (reason verdict.DropReason) {
	j.pairedCalls = responseTimes{}
	if j.first, j.pairedCalls.reference, reason = c.ask(j, c.options.Reference); reason == "" {
		j.second, j.pairedCalls.candidate, reason = c.ask(j, c.options.Candidate)
	}
	if !j.observed.known() {
		j.observed = j.pairedCalls
	}
	return reason
}

// compare compares a read: the other tracker is asked, and both are asked again where they differ.
func (c *Canary) compare(j *job) verdict.DropReason {
	tracker, own, other := c.options.Reference, &j.second, &j.first
	if !j.byCandidate {
		const times, slack = 8, 1 << 20 // a candidate that floods costs no more
		tracker, own, other, j.maxReply = c.options.Candidate, other, own, times*j.size+slack
	}
	var reason verdict.DropReason
	*own = j.client
	if *other, *j.observed.of(!j.byCandidate), reason = c.ask(j, tracker); reason != "" {
		return reason
	}
	c.releaseClient(j)
	if j.isUnpaired && !j.hasAll() {
		return verdict.DropOwnError
	}
	if j.unexplained = c.unexplained(j, c.differences(j, j.first, j.second)); len(j.unexplained) == 0 {
		c.learnEarly(j)
		return c.conclude(j, nil, kindReply)
	}
	if !c.confirms.Allow() {
		return verdict.DropRateLimit
	}
	if !c.hold(j, len(j.first.Body)+len(j.second.Body)) {
		return verdict.DropMemory
	}
	if reason := c.pause(c.options.ConfirmAfter); reason != "" {
		return reason
	}
	return c.confirm(j)
}

// learnEarly asks the reference twice for some of the calls, to learn where it
// contradicts itself, and both once for all of them while the candidate seems to be slower.
func (c *Canary) learnEarly(j *job) {
	twice := rand.Float64() < c.options.Noise
	if !twice && !c.recorder.seemsSlow(j.operation) || !c.confirms.Allow() {
		return
	}
	first, reference, reason := c.ask(j, c.options.Reference)
	if reason != "" {
		return
	}
	j.observed.reference = cmp.Or(j.observed.reference, reference)
	j.pairedCalls = responseTimes{reference, j.observed.candidate}
	if j.byCandidate { // on a busy machine a comparison waits where clients do not
		_, j.pairedCalls.candidate, _ = c.ask(j, c.options.Candidate)
	}
	if twice {
		_, _, _ = c.askAgain(j, first) // when it fails, nothing is learnt
	}
}

// unexplained gives the differences that neither a rule nor noise explains, and counts the uses of rules.
func (c *Canary) unexplained(j *job, all []compare.Difference) []compare.Difference {
	return slices.DeleteFunc(all, func(d compare.Difference) bool {
		if d.Rule != "" {
			c.recorder.used(d.Rule)
			return true
		}
		return c.isNoise(j, d)
	})
}

// isNoise reports whether a difference is where the reference was seen to vary, or a time that an isolated candidate has later.
// The job notes it.
func (c *Canary) isNoise(j *job, d compare.Difference) bool {
	is := c.noise.known(j.call, d) || c.options.Isolated && c.repeated.Excuses(d)
	j.noisy = j.noisy || is
	return is
}

// differences are those between two replies to the call of a job, by the rules that have not expired yet.
func (c *Canary) differences(j *job, before, after compare.Reply) []compare.Difference {
	return compare.Compare(j.call.Operation, before, after, c.rules.At(time.Now()))
}

// confirm asks both again. The client's response may have come from a cache, or been
// older than a write; now both are asked by the comparison alone.
func (c *Canary) confirm(j *job) verdict.DropReason {
	before, broken := j.first, j.second.IsBroken()
	if reason := c.askBoth(j); reason != "" {
		return reason
	}
	if j.second.IsBroken() && !broken && !j.first.IsBroken() {
		return verdict.DropCandidateFailed // what differed may be gone or not
	}
	j.failed = broken && !before.IsBroken()
	now := slices.DeleteFunc(c.differences(j, j.first, j.second), func(d compare.Difference) bool { return d.Rule != "" })
	left := compare.Remaining(before, j.first, j.unexplained, now)
	left = slices.DeleteFunc(left, func(d compare.Difference) bool { return c.isNoise(j, d) })
	steady := len(left)
	left = slices.DeleteFunc(left, func(d compare.Difference) bool { return c.seen.Explains(j.call, d, j.began) })
	j.transient = len(left) < steady
	return c.judge(j, left, c.differences(j, before, j.first), kindReply)
}

// judge concludes with those of the differences that are confirmed. changed is what differs between the reference's replies so far.
func (c *Canary) judge(j *job, left, changed []compare.Difference, kind string) verdict.DropReason {
	last := j.first
	judged, reason := Confirmation{
		Left: left, Changed: changed,
		Again: func() (varied []compare.Difference, reason verdict.DropReason) {
			last, varied, reason = c.askAgain(j, last)
			return varied, reason
		},
		Enough: func(confirmed []compare.Difference, asked int) bool {
			return c.noise.enough(j.operation, confirmed, asked)
		},
	}.Judge()
	if reason != "" {
		return c.abandonConfirmation(j, reason)
	}
	j.noisy, j.transient = j.noisy || len(judged.Noise) > 0, j.transient || judged.Changed
	return c.conclude(j, judged.Confirmed, kind)
}

// askAgain asks the reference once more, right after it gave a reply, and learns
// from what it says now.
func (c *Canary) askAgain(j *job, before compare.Reply) (again compare.Reply, varied []compare.Difference, reason verdict.DropReason) {
	if again, _, reason = c.ask(j, c.options.Reference); reason == "" {
		varied = c.differences(j, before, again)
		c.noise.learn(j.call, variations(varied))
	}
	return again, varied, reason
}

// conclude ends a comparison: with confirmed differences, or without. Noise in a whole
// response may hide anything, so that one is no comparison.
func (c *Canary) conclude(j *job, confirmed []compare.Difference, kind string) verdict.DropReason {
	isWhole := func(d compare.Difference) bool { return d.Class == compare.ClassDigest && d.Pointer == "$" }
	if len(j.found)+len(confirmed) == 0 && (j.first.Long || j.second.Long) && slices.ContainsFunc(c.differences(j, j.first, j.second), isWhole) {
		return verdict.DropDigestNoise
	}
	j.found = append(j.found, c.findings(j, confirmed, kind)...)
	for _, f := range c.findings(j, c.recorder.compared(j), kindLatency) {
		c.recorder.found(f)
	}
	j.first.Body, j.second.Body, j.unexplained = nil, nil, nil // it waits for being counted
	return ""
}
