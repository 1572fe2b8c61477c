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
// the candidate is proved to be isolated, its answer.
func (c *Canary) takeWrite(caller upstream.Caller, call upstream.Call, about subject, byCandidate bool, answer upstream.Answer) {
	if c.options.Plan != nil {
		c.enqueue(c.newJob(about, caller, call, (*Canary).comparePlans))
	}
	j := c.newJob(about, caller, call, nil)
	j.answeredByCandidate = byCandidate
	switch {
	case c.options.Isolated:
		c.takeReplay(j, answer)
	case c.options.Follows && answer.Err == nil && !byCandidate:
		j.step = (*Canary).beginReadBack
		c.capture(j, answer)
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

// comparePlans renders the write for both trackers. Nothing is sent.
func (c *Canary) comparePlans(ctx context.Context, j *job) bool {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	first, firstRefused, err := c.plan(ctx, j, j.reference)
	if err == nil {
		var second, secondRefused jsontext.Value
		second, secondRefused, err = c.plan(ctx, j, j.candidate)
		if err == nil {
			c.concludePlans(j, plans{first, second, firstRefused, secondRefused})
			return false
		}
	}
	c.drop(j.subject, DropPlanFailed)
	return false
}

// plans are the requests for one write, or the refusals to make one.
type plans struct{ first, second, firstRefused, secondRefused jsontext.Value }

// plan gives a tracker's request as JSON, or as JSON why there is none.
func (c *Canary) plan(ctx context.Context, j *job, tracker string) (request, refused jsontext.Value, err error) {
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

// concludePlans counts plans that differ in their form only as noisy: dialects spell
// the same thing differently.
func (c *Canary) concludePlans(j *job, p plans) {
	var differ []Difference
	switch {
	case p.firstRefused != nil && p.secondRefused != nil:
	case p.firstRefused != nil || p.secondRefused != nil:
		differ = []Difference{{
			Class: ClassPlan, Path: PathRefused, Pointer: PathRefused, Want: p.firstRefused, Have: p.secondRefused,
		}}
	default:
		j.noisy = string(p.first) != string(p.second)
		differ = c.suspects(j, ComparePlans(j.operation, planMeaning(p.first), planMeaning(p.second), c.rules()))
	}
	c.conclude(j, differ, kindPlan, OutcomeSame)
}
