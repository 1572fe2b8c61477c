package canary

import (
	"context"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/upstream"
)

// takeWrite begins what can be compared of a write without making it twice: the
// requests that both trackers would be sent, what both show afterwards, and, where
// the candidate is proved to be isolated, its answer. Each write is one comparison,
// whatever of this belongs to it.
func (c *Canary) takeWrite(caller upstream.Caller, call upstream.Call, about subject, byCandidate bool, answer upstream.Answer) {
	j := c.newJob(about, caller, call, (*Canary).comparePlans)
	j.answeredByCandidate = byCandidate
	switch {
	case c.options.Isolated && !byCandidate && !isInexpressible(answer.Err):
		c.takeReplay(j, answer)
	case c.options.Follows && !byCandidate && answer.Err == nil:
		j.step = (*Canary).beginReadBack
		c.capture(j, answer)
	case c.options.Plan != nil:
		c.enqueue(j)
	default:
		c.end(j)
	}
}

// isInexpressible tells the refusal of a write that a tracker has no form for. The
// answer says nothing then, but the plans do.
func isInexpressible(err error) bool {
	said, ok := errors.AsType[*mapping.Error](err)
	return ok && said.Reason == mapping.ReasonInexpressive
}

// comparePlans is all there is of a write whose result cannot be seen.
func (c *Canary) comparePlans(ctx context.Context, j *job) bool {
	if c.plan(ctx, j) {
		c.conclude(j, nil, kindPlan, OutcomeSame)
	} else {
		c.drop(j.subject, DropPlanFailed)
	}
	return false
}

// giveUp ends a write whose result could not be compared. Plans that differ count
// nevertheless, and where nobody can tell what a write touches they are all there is.
func (c *Canary) giveUp(j *job, reason DropReason) {
	if len(j.planned) > 0 || reason == DropNothingToRead && c.options.Plan != nil {
		c.conclude(j, nil, kindPlan, OutcomeSame)
		return
	}
	c.drop(j.subject, reason)
}

// plan renders the write for both trackers and keeps what differs. Nothing is sent.
// It gives false when that was not possible.
func (c *Canary) plan(ctx context.Context, j *job) bool {
	if c.options.Plan == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	first, firstRefused, err := c.render(ctx, j, j.reference)
	if err != nil {
		return false
	}
	second, secondRefused, err := c.render(ctx, j, j.candidate)
	if err != nil {
		return false
	}
	c.keepPlans(j, plans{first, second, firstRefused, secondRefused})
	return true
}

// plans are the requests for one write, or the refusals to make one.
type plans struct{ first, second, firstRefused, secondRefused jsontext.Value }

// render gives a tracker's request as JSON, or as JSON why there is none.
func (c *Canary) render(ctx context.Context, j *job, tracker string) (request, refused jsontext.Value, err error) {
	text, err := c.options.Plan(ctx, tracker, j.call)
	if said, ok := errors.AsType[*mapping.Error](err); ok {
		return nil, refusedPlan(said), nil
	}
	return text, nil, err
}

// refusedPlan tells a refusal without its words, in which names stand.
func refusedPlan(said *mapping.Error) jsontext.Value {
	var members mapping.Members
	members.SetText("refused", string(said.Reason))
	members.Set("code", jsontext.Value(strconv.Itoa(said.Code)))
	return members.AppendJSON(nil)
}

// keepPlans notes what differs. What differs in its form only is noise: dialects
// spell the same thing differently.
func (c *Canary) keepPlans(j *job, p plans) {
	var differ []Difference
	switch {
	case p.firstRefused != nil && p.secondRefused != nil:
	case p.firstRefused != nil || p.secondRefused != nil:
		differ = []Difference{{
			Class: ClassPlan, Path: PathRefused, Pointer: PathRefused, Want: p.firstRefused, Have: p.secondRefused,
		}}
	default:
		j.differentForm = string(p.first) != string(p.second)
		differ = c.suspects(j, ComparePlans(j.operation, planMeaning(p.first), planMeaning(p.second), c.rules()))
	}
	j.planned = c.found(j, differ, kindPlan)
}
