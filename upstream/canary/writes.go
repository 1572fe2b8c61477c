package canary

import (
	"context"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/canary/writes"
)

// firstPause is how long a candidate that follows is given before it is asked
// again; the pauses double.
const firstPause = 100 * time.Millisecond

// takeWrite begins what can be compared of a write without making it twice: the
// requests that both trackers would be sent, what both show afterwards, and, where
// the candidate is proved to be isolated, its response. Each write is one comparison,
// whatever of this belongs to it.
func (c *Canary) takeWrite(j *job, answer upstream.Response) {
	switch {
	case c.options.Isolated && !j.byCandidate && failureOf(answer.Err).Reason != mapping.ReasonInexpressive:
		c.takeReplay(j, answer)
	case c.options.Follows && !j.byCandidate && answer.Err == nil:
		j.run = c.readBack
		c.capture(j, answer)
	default:
		j.run = c.comparePlans
		c.enqueue(j)
	}
}

// plan renders the write for both trackers and keeps what differs; they count when the job ends. Nothing is sent.
// It returns false when that was not possible.
func (c *Canary) plan(j *job) bool {
	ctx, cancel := context.WithTimeout(c.ctx, c.options.Timeout)
	defer cancel()
	reference, candidate := c.options.Trackers[c.options.Reference], c.options.Trackers[c.options.Candidate]
	differences, otherForm, err := writes.ComparePlans(ctx, reference.Plan, candidate.Plan, j.call, c.rules.At(time.Now()))
	j.found, j.noisy = c.findings(j, c.unexplained(j, differences), kindPlan), otherForm
	return err == nil
}

// comparePlans is all there is of a write whose result cannot be seen.
func (c *Canary) comparePlans(j *job) verdict.DropReason {
	if !c.plan(j) {
		return verdict.DropPlanFailed
	}
	return c.conclude(j, nil, kindPlan)
}

// abandonConfirmation ends a write whose result could not be compared. Plans that differ count nevertheless.
func (c *Canary) abandonConfirmation(j *job, reason verdict.DropReason) verdict.DropReason {
	if len(j.found) > 0 {
		return c.conclude(j, nil, kindPlan)
	}
	return reason
}

// readBack asks both for what was written, until they show the same or Options.ReadBack is over.
func (c *Canary) readBack(j *job) verdict.DropReason {
	if !c.plan(j) {
		return verdict.DropPlanFailed
	}
	var known bool
	if j.call, known = writes.Touched(j.call, j.client.Body); !known {
		return c.conclude(j, nil, kindPlan) // the plans are all there is
	}
	var reason verdict.DropReason
	if !c.confirms.Allow() {
		reason = verdict.DropRateLimit
	}
	end := time.Now().Add(c.options.ReadBack)
	for pause := firstPause; reason == ""; pause *= 2 {
		before := j.first
		if reason = c.askBoth(j); reason != "" {
			break
		}
		j.observed, j.pairedCalls = responseTimes{}, responseTimes{} // of a read that no client made
		j.unexplained = c.unexplained(j, c.differences(j, j.first, j.second))
		left := time.Until(end)
		if len(j.unexplained) > 0 && left > 0 {
			reason = c.pause(min(pause, left))
			continue
		}
		var changed []compare.Difference
		if before.Status != 0 {
			changed = c.differences(j, before, j.first)
		}
		return c.judge(j, j.unexplained, changed, kindReadBack)
	}
	return c.abandonConfirmation(j, reason)
}

// replaysAll is true for calls of which an isolated candidate gets each one, however
// few are sampled: with gaps it would soon differ by itself.
func (c *Canary) replaysAll(operation mapping.Operation) bool {
	return c.options.Isolated && operation.IsWrite()
}

// proofEvery is how often the proof of isolation is repeated.
const proofEvery = time.Minute

// watchIsolation proves that the candidate is isolated, and proves it again from time to time until Close.
func (c *Canary) watchIsolation() {
	c.every(proofEvery, c.options.Timeout, func(ctx context.Context) {
		proved := writes.IsMarked(ctx, c.options.Trackers, c.options.Candidate, c.options.Marker, func(tracker string) upstream.Caller {
			caller, _ := c.callerFor(upstream.Caller{}, tracker)
			return caller
		})
		if c.isolated.Swap(proved) != proved {
			c.options.Logger.Info("the proof that the candidate is isolated has changed", "proved", proved)
		}
	})
}

// takeReplay keeps what a write needs to be repeated on the candidate. The write takes its place now, when it is answered,
// whenever the client has read the response: one after the other they leave the candidate in the state in which they left
// the reference.
func (c *Canary) takeReplay(j *job, answer upstream.Response) {
	c.repeated.Answered(j.began, answer.Took)
	j.run, j.isMissing = c.replay, true
	switch {
	case !c.isolated.Load():
		c.end(j, verdict.DropNotIsolated)
	case !writes.TakePayload(&j.call):
		c.end(j, verdict.DropPayload)
	default:
		j.turn, j.done = c.repeated.Turn()
		c.capture(j, answer)
	}
}

// replay makes the write on the candidate, once, whatever comes of it.
func (c *Canary) replay(j *job) (reason verdict.DropReason) {
	if !c.isolated.Load() {
		return c.abandonConfirmation(j, verdict.DropNotIsolated)
	}
	j.first = j.client
	planned := c.plan(j) // those that follow build on the write, also where its plans cannot be compared
	j.second, _, reason = c.ask(j, c.options.Candidate)
	j.isMissing = reason != ""
	c.repeated.Repeated(time.Since(j.began))
	if reason == "" && !planned {
		reason = verdict.DropPlanFailed
	}
	if reason != "" {
		return c.abandonConfirmation(j, reason)
	}
	return c.conclude(j, c.unexplained(j, c.differences(j, j.first, j.second)), kindIsolated)
}
