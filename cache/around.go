package cache

import "context"

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
