package canary

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// Accept says that a finding does not matter, until then or, with the zero time, for
// good. The error is state.ErrNotFound when there is no such finding.
func (c *Canary) Accept(ctx context.Context, signature, actor, reason string, until time.Time) error {
	return c.judge(ctx, signature, state.StatusAccepted, actor, reason, until)
}

// Reopen takes a judgement back.
func (c *Canary) Reopen(ctx context.Context, signature, actor, reason string) error {
	return c.judge(ctx, signature, state.StatusOpen, actor, reason, time.Time{})
}

// Fixed says that the candidate does not differ there any more. The comparisons of its
// operation count anew from now on, since those before say nothing of the candidate
// that is there now. The finding is open again when it is seen after that.
func (c *Canary) Fixed(ctx context.Context, signature, actor, reason string) error {
	return c.judge(ctx, signature, state.StatusFixed, actor, reason, time.Time{})
}

// judge writes down first what was seen until now, so that it is not taken for news.
func (c *Canary) judge(ctx context.Context, signature string, status state.FindingStatus, actor, reason string, until time.Time) error {
	if status == state.StatusFixed {
		finding, _, err := c.options.Store.Finding(ctx, signature)
		if err != nil {
			return err
		}
		c.ledger.beginAnew(finding.Operation)
	}
	if err := c.ledger.flush(ctx); err != nil {
		return err
	}
	if err := c.options.Store.Judge(ctx, signature, status, actor, reason, until); err != nil {
		return err
	}
	c.ledger.forgetSpeeds()
	return c.ledger.readJudgements(ctx)
}

// Reset begins anew: what was found until now counts no more.
func (c *Canary) Reset(ctx context.Context, actor, reason string) error {
	c.ledger.writing.Lock()
	defer c.ledger.writing.Unlock()
	if err := c.options.Store.StartCampaign(ctx, actor, reason); err != nil {
		return err
	}
	c.ledger.started = time.Time{}
	c.forget(time.Now())
	return nil
}

// forget drops everything of the campaign before.
func (c *Canary) forget(since time.Time) {
	c.noise.forget()
	c.replays.gap.Store(false)
	c.replays.overlap.Store(false)
	c.ledger.forget(since)
}

// Report says what was found until now. Errors are those of the store.
func (c *Canary) Report(ctx context.Context) (Report, error) {
	if err := c.ledger.flush(ctx); err != nil {
		return Report{}, err
	}
	store := c.options.Store
	campaign, err := store.CurrentCampaign(ctx)
	if err != nil {
		return Report{}, err
	}
	input := JudgeInput{
		At: time.Now().UTC(), Campaign: campaign, Target: c.options.Target, Rules: c.options.Rules,
		Pair: upstream.Sides{Answered: c.referenceName(), Other: c.options.Candidate},
	}
	var failed [4]error
	input.Tallies, failed[0] = store.Tallies(ctx, campaign.Started)
	input.Findings, failed[1] = store.Findings(ctx)
	input.Uses, failed[2] = store.RuleUses(ctx)
	input.Since, failed[3] = store.Evidence(ctx)
	if err := errors.Join(failed[:]...); err != nil {
		return Report{}, err
	}
	return Judge(input), nil
}

// referenceName is the tracker that the candidate is compared with.
func (c *Canary) referenceName() string {
	for _, name := range slices.Sorted(maps.Keys(c.options.Trackers)) {
		if name != c.options.Candidate {
			return name
		}
	}
	return ""
}

// forget drops what was counted and not yet written, and what is still under way, but
// for comparisons that began since then.
func (l *ledger) forget(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = since
	fresh := slices.DeleteFunc(l.book.fresh, func(c concluded) bool { return c.began.Before(since) })
	l.book = newBook()
	l.book.fresh = fresh
	l.refusals.take(func(subject, int64) {})
	clear(l.accepted)
	clear(l.anew)
	clear(l.speeds)
}

// beginAnew lets nothing of an operation count that is still under way.
func (l *ledger) beginAnew(operation mapping.Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.anew[operation] = time.Now()
}

// forgetSpeeds judges slowness anew.
func (l *ledger) forgetSpeeds() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.speeds)
}
