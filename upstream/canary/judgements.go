package canary

import (
	"context"
	"time"

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

// Fixed says that the candidate does not differ there any more. The finding is open
// again when it is seen after that.
func (c *Canary) Fixed(ctx context.Context, signature, actor, reason string) error {
	return c.judge(ctx, signature, state.StatusFixed, actor, reason, time.Time{})
}

// judge writes down first what was seen until now, so that it is not taken for news.
func (c *Canary) judge(ctx context.Context, signature string, status state.FindingStatus, actor, reason string, until time.Time) error {
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
	c.noise.forget()
	c.ledger.forget()
	return nil
}

// forget drops what was counted and not yet written.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book = newBook()
	clear(l.accepted)
	clear(l.speeds)
}

// forgetSpeeds judges slowness anew.
func (l *ledger) forgetSpeeds() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.speeds)
}
