package canary

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/verdict"
	"portico/upstream/switchover"
)

// Complete gives options that a test leaves open the values that a configuration has by default.
func Complete(o Options) Options {
	o.Workers, o.Queue, o.PerSecond = cmp.Or(o.Workers, 4), cmp.Or(o.Queue, 256), cmp.Or(o.PerSecond, 50)
	o.Timeout, o.MaxBody = cmp.Or(o.Timeout, 10*time.Second), cmp.Or(o.MaxBody, 64<<20)
	o.ConfirmAfter, o.ReadBack = cmp.Or(o.ConfirmAfter, time.Second), cmp.Or(o.ReadBack, 5*time.Second)
	o.KeepSamples, o.Target = cmp.Or(o.KeepSamples, 5), cmp.Or(o.Target, 0.1)
	for name, t := range o.Trackers {
		if name != o.Candidate {
			o.Reference = name
		}
		if t.Caller == nil {
			t.Caller = switchover.Keys{}.ForComparison
		}
		if t.Address == nil {
			t.Address = func(context.Context, upstream.Call) string { return "" }
		}
		if t.Refuses == nil {
			t.Refuses = func() bool { return false }
		}
		if t.Plan == nil {
			t.Plan = func(context.Context, upstream.Call) ([]byte, error) { return []byte("{}"), nil }
		}
		o.Trackers[name] = t
	}
	if o.CallerName == nil {
		o.CallerName = func(upstream.Caller) string { return "" }
	}
	if o.Observer == nil {
		o.Observer = unobserved{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// unobserved is an Observer of nothing.
type unobserved struct{}

// Compared implements Observer.
func (unobserved) Compared(mapping.Operation, Outcome) {}

// Dropped implements Observer.
func (unobserved) Dropped(mapping.Operation, verdict.DropReason) {}

// Held is the memory in bytes that responses take which wait.
func (c *Canary) Held() int64 { return c.memory.Load() }

// Settle waits until nothing is under way any more, confirmations included, and all
// that was found is in the store.
func (c *Canary) Settle(ctx context.Context) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for c.pending.Load() > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d comparisons: %w", c.pending.Load(), ctx.Err())
		case <-ticker.C:
		}
	}
	return c.recorder.flush(ctx)
}
