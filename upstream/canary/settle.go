package canary

import (
	"context"
	"fmt"
	"time"
)

// Settle waits until nothing is under way any more, confirmations included, and all
// that was found is in the store. It is for tests and for runs that end with a
// verdict; under traffic it may wait until ctx ends.
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
	return c.ledger.flush(ctx)
}

// Load is how much is under way.
type Load struct {
	// Queued answers wait for a worker, Waiting ones for being asked again. Pending
	// are all, those included that clients are still reading.
	Queued, Waiting, Pending int
	// Memory and Disk are bytes of answers that wait.
	Memory, Disk int64
}

// Load tells how much is under way, for metrics.
func (c *Canary) Load() Load {
	c.life.Lock()
	queued := len(c.arrived) + len(c.queue) + c.replays.len()
	c.life.Unlock()
	return Load{
		Queued: queued, Waiting: c.waiting.len(), Pending: int(c.pending.Load()),
		Memory: mostMemory - c.memory.left.Load(), Disk: 4*c.options.MaxBody - c.disk.left.Load(),
	}
}
