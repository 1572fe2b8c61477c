package canary

import (
	"context"
	"errors"
	"time"

	"portico/upstream"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// Judge sets the status of a finding. One that is accepted does not matter until then or, with the zero time, for good; an open one
// counts again. Of one that is fixed, the comparisons of its operation start again from zero, since those before say nothing of the
// candidate that is there now; it is open again when it is seen after that. The error is state.ErrNotFound when there is no such finding.
func (c *Canary) Judge(ctx context.Context, signature string, status state.FindingStatus, actor, reason string, until time.Time) error {
	r := c.recorder
	if err := r.flush(ctx); err != nil { // what was seen until now does not count as new
		return err
	}
	if err := c.options.Store.Judge(ctx, signature, status, actor, reason, until); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.speeds)
	return nil
}

// Reset discards all earlier results.
func (c *Canary) Reset(ctx context.Context, actor, reason string) error {
	r := c.recorder
	r.flushing.Lock()
	defer r.flushing.Unlock()
	if err := c.options.Store.StartCampaign(ctx, actor, reason); err != nil {
		return err
	}
	return r.follow(ctx)
}

// forget drops what is known of the trackers from before a reset.
func (c *Canary) forget() {
	c.noise.forget()
	c.repeated.Forget()
}

// Report says what was found until now. Errors are those of the store.
func (c *Canary) Report(ctx context.Context) (verdict.Report, error) {
	if err := c.recorder.flush(ctx); err != nil {
		return verdict.Report{}, err
	}
	store := c.options.Store
	campaign, err := store.CurrentCampaign(ctx)
	if err != nil {
		return verdict.Report{}, err
	}
	input := verdict.JudgeInput{
		At: time.Now().UTC(), Campaign: campaign, Target: c.options.Target / 100, Rules: c.rules,
		Pair: upstream.Sides{Serving: c.options.Reference, Compared: c.options.Candidate},
	}
	var failed [4]error
	input.Tallies, failed[0] = store.Tallies(ctx, campaign.Started)
	input.Findings, failed[1] = store.Findings(ctx)
	input.Uses, failed[2] = store.RuleUses(ctx)
	input.Since, failed[3] = store.Evidence(ctx)
	if err := errors.Join(failed[:]...); err != nil {
		return verdict.Report{}, err
	}
	return verdict.Judge(input), nil
}
