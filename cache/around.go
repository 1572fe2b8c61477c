package cache

import (
	"context"
	"time"
)

// WriteAround carries out a flag type write that goes to the tracker by another way
// than this Tracker. call says by its error what became of it, as the operations of
// a Tracker do; nil counts as carried out. It returns, and panics, as call does, and
// when it does, no answer from before a change is given any more.
//
// Who showed no credential is not worth a mark: for such a write call this when it
// was carried out, with a call that does nothing.
func (c *Cache) WriteAround(ctx context.Context, call func() error) (err error) {
	mark, did := c.announce(ctx), inDoubt
	defer func() { c.ended(ctx, mark, did) }()
	err = call()
	did = c.effect(err, false)
	return err
}

// CopiedTo says that other trackers get what is written to this one by ways of their
// own, each within lag. So a write makes the answers of their caches count no more
// either, and for as long as lag what they say may be from before it. Call it before
// the cache is used.
func (c *Cache) CopiedTo(lag time.Duration, others ...*Cache) { c.lag, c.copies = lag, others }

// copied follows a write at the trackers that get it by ways of their own. An error
// is the affair of the cache that has it: it believes nothing until Redis was told.
func (c *Cache) copied(ctx context.Context, doubt time.Duration) {
	for _, other := range c.copies {
		_ = other.change(ctx, doubt+c.lag)
	}
}
