package made

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/state"
)

// Canary is a comparison that found a few things. It is a desk and a shelf of the pages. Its methods are safe for
// concurrent use.
type Canary struct {
	mu       sync.Mutex
	report   canary.Report
	samples  map[string][]state.Sample
	sampling canary.Sampling
}

// NewCanary makes a comparison whose verdict is FAIL, as of a time.
func NewCanary(now time.Time) *Canary {
	c := &Canary{report: report(now), samples: map[string][]state.Sample{}}
	c.sampling = canary.Sampling{Default: 1, Operations: map[mapping.Operation]float64{mapping.OpFlagTypes: 0.25}}
	for i, text := range sampleTexts() {
		signature := c.report.Findings[0].Signature
		c.samples[signature] = append(c.samples[signature], state.Sample{
			ID: int64(i + 1), Signature: signature, At: now.Add(-time.Duration(i) * 7 * time.Minute), Text: []byte(text),
		})
	}
	return c
}

// SetReport changes what there is to show.
func (c *Canary) SetReport(change func(*canary.Report)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.report)
}

// Report implements pages.CanaryDesk.
func (c *Canary) Report(context.Context) (canary.Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.Findings = slices.Clone(r.Findings)
	r.Operations = slices.Clone(r.Operations)
	return r, nil
}

// Sampling implements pages.CanaryDesk.
func (c *Canary) Sampling() canary.Sampling {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sampling
	s.Operations = maps.Clone(s.Operations)
	return s
}

// SetSampling implements pages.CanaryDesk.
func (c *Canary) SetSampling(sampling canary.Sampling) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampling = sampling
}

// Accept implements pages.CanaryDesk.
func (c *Canary) Accept(_ context.Context, signature, actor, reason string, until time.Time) error {
	return c.judge(signature, state.StatusAccepted, actor, reason, until)
}

// Reopen implements pages.CanaryDesk.
func (c *Canary) Reopen(_ context.Context, signature, actor, reason string) error {
	return c.judge(signature, state.StatusOpen, actor, reason, time.Time{})
}

// Fixed implements pages.CanaryDesk.
func (c *Canary) Fixed(_ context.Context, signature, actor, reason string) error {
	return c.judge(signature, state.StatusFixed, actor, reason, time.Time{})
}

func (c *Canary) judge(signature string, status state.FindingStatus, actor, reason string, until time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.report.Findings, func(f canary.FindingView) bool { return f.Signature == signature })
	if i < 0 {
		return state.ErrNotFound
	}
	f := &c.report.Findings[i]
	f.Status, f.Actor, f.Reason, f.Until = string(status), actor, reason, until
	return nil
}

// Reset implements pages.CanaryDesk.
func (c *Canary) Reset(_ context.Context, actor, reason string) error {
	c.SetReport(func(r *canary.Report) {
		*r = canary.Report{
			At: r.At, Campaign: canary.CampaignView{Started: r.At, Actor: actor, Reason: reason}, Pair: r.Pair,
			Verdict: canary.Inconclusive, Target: r.Target, Overall: canary.OperationVerdict{Needed: 2995, UpperBound: 1},
		}
	})
	return nil
}

// Finding implements pages.FindingShelf.
func (c *Canary) Finding(_ context.Context, signature string) (state.Finding, []state.Sample, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.report.Findings {
		if f.Signature == signature {
			return state.Finding{
				Signature: f.Signature, Operation: f.Operation, Class: string(f.Class), Path: f.Path, Kind: f.Kind, Count: f.Count,
				First: f.First, Last: f.Last, Note: f.Note, Status: state.FindingStatus(f.Status), Actor: f.Actor, Reason: f.Reason,
				Until: f.Until, Samples: len(c.samples[signature]),
			}, c.samples[signature], nil
		}
	}
	return state.Finding{}, nil, state.ErrNotFound
}

// pair are the two trackers.
func pair() upstream.Sides { return upstream.Sides{Answered: "current", Other: "candidate"} }
