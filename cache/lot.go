package cache

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// A lot is the generation of what is purged together: the answers for one product.
// It is made when the first of them is stored, so that names that no tracker
// knows leave nothing behind, and it is random, so that one that Redis lost never
// comes back. The first letter tells those that a purge made.
const (
	lotBegun  = "b-"
	lotPurged = "p-"
)

func (c *Cache) newLot(kind string) string { return kind + newToken(0, c.now()).text }

// lotLife is longer than any answer of the lot lives.
func (c *Cache) lotLife() time.Duration { return 2*c.options.keep(c.options.TTL) + time.Hour }

// begun gives the lot for an answer that was asked for while there was none, and
// false when it may not be stored. If another answer has begun the lot meanwhile, it
// is good for this one too, but a purge may have come after the asking.
func (c *Cache) begun(ctx context.Context, product string) (string, bool) {
	lot, err := c.remote.settle(ctx, c.keys.product(product), c.newLot(lotBegun), c.lotLife())
	return lot, err == nil && strings.HasPrefix(lot, lotBegun)
}

// Purge makes all answers for a product count for nothing, or all of the tracker
// when product is empty. An error says that Redis could not be told.
func (c *Cache) Purge(ctx context.Context, product string) error {
	if c.off() {
		return nil
	}
	if product == "" {
		return c.Changed(ctx)
	}
	err := c.remote.do(ctx, "purge", func(ctx context.Context) error {
		return c.remote.client.Set(ctx, c.keys.product(product), c.newLot(lotPurged), c.lotLife()).Err()
	})
	c.generation.forget()
	c.local.clear()
	if err != nil {
		return fmt.Errorf("purging a product: %w", err)
	}
	c.generation.publish(ctx, "purge")
	return nil
}
