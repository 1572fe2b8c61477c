package canary

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// shadowRole is what trackers are told that a comparison's calls are for.
const shadowRole = "shadow"

// refusal says why an answer cannot be compared, empty when it can.
func refusal(ctx context.Context, answer upstream.Answer) DropReason {
	said, ok := errors.AsType[*mapping.Error](answer.Err)
	switch {
	case answer.Err == nil && answer.Document == nil:
		return DropOwnError
	case answer.Err == nil && answer.Document.NotModified:
		return DropNotModified
	case answer.Err == nil || ok && said.FromTracker():
		return ""
	case !ok && ctx.Err() != nil:
		return DropUnread
	case !ok:
		return DropOwnError
	}
	switch said.Reason {
	case mapping.ReasonCanceled:
		return DropUnread
	case mapping.ReasonTimeout, mapping.ReasonUnreachable, mapping.ReasonBreakerOpen, mapping.ReasonOverload,
		mapping.ReasonBadAnswer, mapping.ReasonWebServer:
		return DropAnsweredFailed
	default:
		return DropOwnError
	}
}

func (c *Canary) captureOptions(operation mapping.Operation, digest bool) CaptureOptions {
	return CaptureOptions{Operation: operation, MaxBody: c.options.MaxBody, Split: c.options.Split, Digest: digest}
}

// callerFor gives the caller in whose name a tracker is asked. Cookies belong to
// one tracker; whoever was known by them alone would be somebody else without.
func (c *Canary) callerFor(caller upstream.Caller, tracker string) (upstream.Caller, bool) {
	asked, ok := c.options.Caller(caller, tracker)
	asked.Credentials.Cookies = ""
	asked.Role = shadowRole
	return asked, ok && (caller.Anonymous() || !asked.Anonymous())
}

// heard is what a tracker said to a comparison.
type heard struct {
	reply Reply
	took  time.Duration
	// reason says why there is nothing to compare.
	reason DropReason
}

// ask makes a call of one of the two trackers.
func (c *Canary) ask(ctx context.Context, j *job, tracker string, digest bool) heard {
	caller, ok := c.callerFor(j.caller, tracker)
	if !ok {
		return heard{reason: DropCredentials}
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	if j.most > 0 && tracker == j.candidate {
		ctx = upstream.WithMost(ctx, j.most)
	}
	answer := j.call.Make(ctx, c.options.Trackers[tracker], caller)
	if reason := c.unasked(j, tracker, answer.Err); reason != "" {
		return heard{reason: reason}
	}
	reply, err := ReplyOf(ctx, answer, c.captureOptions(j.call.Operation, digest))
	switch {
	case err != nil && c.ctx.Err() != nil:
		return heard{reason: DropClosed}
	case err != nil:
		return heard{reason: spoolReason(err)}
	case reply.Failure != "" && tracker != j.candidate:
		return heard{reason: c.referenceFailed(j)}
	}
	return heard{reply: reply, took: answer.Took}
}

// unasked finds the errors that say nothing of how a tracker answers.
func (c *Canary) unasked(j *job, tracker string, err error) DropReason {
	said, ok := errors.AsType[*mapping.Error](err)
	switch {
	case err == nil:
		return ""
	case c.ctx.Err() != nil:
		return DropClosed
	case !ok:
		return DropInternal
	}
	reason := silence(said)
	switch {
	case reason == "":
		return ""
	case tracker != j.candidate:
		return c.referenceFailed(j)
	case j.answeredByCandidate:
		return DropCandidateFailed
	}
	return reason
}

// silence tells the calls that never came to a tracker. One that took the connection
// and then let it go has answered badly, and that is compared.
func silence(said *mapping.Error) DropReason {
	switch {
	case said.Reason == mapping.ReasonUnreachable && !said.ConnectionLost:
		return DropUnreachable
	case said.Reason == mapping.ReasonBreakerOpen:
		return DropBreaker
	case said.Reason == mapping.ReasonOverload:
		return DropOverload
	}
	return ""
}

func (c *Canary) referenceFailed(j *job) DropReason {
	if j.answeredByCandidate {
		return DropOtherFailed
	}
	return DropAnsweredFailed
}

// longest is how long an answer of the candidate may be, going by that of the
// reference; 0 when that is not known. A candidate that floods us costs no more.
func (j *job) longest() int64 {
	const times, slack = 8, 1 << 20
	switch {
	case j.answeredByCandidate:
		return 0
	case j.said != nil:
		return times*j.said.size + slack
	case j.clientReply != nil && len(j.clientReply.Payloads) == 0:
		return times*int64(len(j.clientReply.Body)) + slack // an error
	default:
		return 0
	}
}

// other names the tracker that the client did not hear.
func (j *job) other() string {
	if j.answeredByCandidate {
		return j.reference
	}
	return j.candidate
}

// clientSaw reads what the client got. A cache keeps no status: until both are asked
// again, it was the one that all trackers send with a success.
func (c *Canary) clientSaw(j *job, digest bool) (Reply, DropReason) {
	if j.clientReply != nil {
		return *j.clientReply, ""
	}
	reply := Reply{Status: cmp.Or(j.clientStatus, j.operation.SuccessStatus()), Header: j.clientHeader}
	reply, err := c.captureOptions(j.operation, digest).fill(reply, j.said)
	switch {
	case err != nil:
		return Reply{}, spoolReason(err)
	case reply.Failure != "":
		return Reply{}, DropUnreadable
	}
	return reply, ""
}

// compare is the first step of every read: the other tracker is asked.
func (c *Canary) compare(ctx context.Context, j *job) bool {
	j.most = j.longest()
	long := j.said != nil && j.said.digest != nil
	other := c.ask(ctx, j, j.other(), long)
	if other.reason != "" {
		c.drop(j.subject, other.reason)
		return false
	}
	own, reason := c.clientSaw(j, other.reply.Digest != nil)
	if reason == "" && own.Digest != nil && other.reply.Body != nil {
		other = c.ask(ctx, j, j.other(), true) // one of them was only just beyond a limit
		reason = other.reason
	}
	if reason != "" {
		c.drop(j.subject, reason)
		return false
	}
	j.took.other = other.took
	j.first, j.second = own, other.reply
	if j.answeredByCandidate {
		j.first, j.second = other.reply, own
		j.took.answered, j.took.other = j.took.other, j.took.answered
	}
	return c.weigh(ctx, j)
}

// weigh decides what becomes of the first comparison.
func (c *Canary) weigh(ctx context.Context, j *job) bool {
	j.suspects = c.suspects(j, c.differences(j, j.first, j.second))
	if len(j.suspects) == 0 {
		c.listen(ctx, j)
		c.conclude(j, nil, kindReply, OutcomeSame)
		return false
	}
	return c.putAside(j)
}

// suspects gives the differences that neither a rule nor noise explains.
func (c *Canary) suspects(j *job, all []Difference) []Difference {
	var suspects []Difference
	isNoise := c.isNoise(j)
	for _, d := range all {
		switch {
		case d.Rule != "":
			c.ledger.used(d.Rule)
		case isNoise(d) || c.isOfReplay(d):
			j.noisy = true
		default:
			suspects = append(suspects, d)
		}
	}
	return suspects
}

// differences are those of the candidate. Where there are very many, noise takes no
// room from the others.
func (c *Canary) differences(j *job, reference, candidate Reply) []Difference {
	comparison := newComparison(j.call.Operation, c.rules())
	comparison.expected = c.isNoise(j)
	return comparison.replies(reference, candidate)
}

// contradictions are the differences between two answers of the reference.
func (c *Canary) contradictions(j *job, before, after Reply) []Difference {
	comparison := newComparison(j.call.Operation, c.rules())
	comparison.most = maxFound
	return comparison.replies(before, after)
}

// isNoise tells of differences whether they are where the reference was seen to vary.
func (c *Canary) isNoise(j *job) func(Difference) bool {
	call := c.noise.callOf(j.reference, j.call)
	return func(d Difference) bool { return d.Rule == "" && c.noise.known(call, d, time.Now()) }
}

// rules are those that have not expired yet.
func (c *Canary) rules() Rules { return c.options.Rules.At(time.Now()) }

// listen asks the reference twice for some of the calls, to learn early where it
// contradicts itself, and once for all of them while the candidate seems to be slower.
func (c *Canary) listen(ctx context.Context, j *job) {
	twice := rand.Float64() < c.options.NoiseShare
	if !twice && !c.ledger.seemsSlow(j.subject) || !c.confirms.Allow() {
		return
	}
	first := c.ask(ctx, j, j.reference, j.first.Digest != nil)
	if first.reason != "" {
		return
	}
	if j.took.answered == 0 {
		j.took.answered = first.took
	}
	if j.paired = c.pair(ctx, j, first.took); twice {
		_, _, _ = c.askAgain(ctx, j, first.reply) // when it fails, nothing is learnt
	}
}

// askAgain asks the reference once more, right after it said something, and learns
// from what it says now.
func (c *Canary) askAgain(ctx context.Context, j *job, before Reply) (Reply, map[varies]bool, DropReason) {
	again := c.ask(ctx, j, j.reference, before.Digest != nil)
	if again.reason != "" {
		return Reply{}, nil, again.reason
	}
	varied := variations(c.contradictions(j, before, again.reply))
	c.noise.learn(c.noise.callOf(j.reference, j.call), varied, time.Now())
	return again.reply, varied, ""
}
