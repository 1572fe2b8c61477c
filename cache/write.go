package cache

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// While a flag type write is under way, it is pending in Redis. Entries carry the sum of the writes that were pending when the
// tracker was asked, and are used only while that sum is the present one. So entries from before a write are not used until
// its outcome is known, not even if this process dies before.
//
// A write that certainly changed nothing is taken out of the sum, and all entries from before it are used again. A write that
// changed something, or may have, leaves a new generation behind. A read after an acknowledged write depends on that alone;
// pending writes only ever end the use of entries.
//
// Redis holds the sum of random numbers, one for each write. Sums come out the same in any order, so writes through several
// processes may begin and fail in each other's midst without a transaction, and no two sets of writes have one sum. A sum
// that Redis loses ends the use of older entries.

// maxPending bounds the number of one write, so that millions that processes left behind when they died do not overflow the
// sum.
const maxPending = 1 << 40

// outcome is what became of a write.
type outcome int

const (
	// outcomeUnknown: the tracker may have carried it out, or may still do so.
	outcomeUnknown outcome = iota
	// outcomeOver: it may have changed something, and is over.
	outcomeOver
	// outcomeNone: it certainly changed nothing.
	outcomeNone
)

// write carries out a flag type write. A client that hangs up does not end it: its outcome would be unknown then, and a caller
// with a made-up key could invalidate the cache at will.
//
// An anonymous caller cannot write. Its write counts only if the tracker accepts it all the same.
func (c *Cache) write(ctx context.Context, caller upstream.Caller, call upstream.Call) (reply mapping.Reply, err error) {
	ctx, end := upstream.Outlive(ctx)
	defer end()
	if caller.Anonymous() {
		if reply, err = c.next.Do(ctx, caller, call); err == nil {
			c.wrote(ctx, 0, outcomeOver)
		}
		return reply, err
	}
	err = c.WriteAround(ctx, func() error {
		reply, err = c.next.Do(ctx, caller, call)
		return err
	})
	return reply, err
}

// WriteAround carries out a flag type write that goes to the tracker by another way than this Tracker. The error of call says
// what became of it, as those of the operations of a Tracker do; nil counts as carried out. WriteAround returns, and panics,
// as call does. Once it does, no entry from before a change is used.
//
// It is for callers with a credential: others cannot write.
func (c *Cache) WriteAround(ctx context.Context, call func() error) (err error) {
	pending, became := 1+rand.Int64N(maxPending), outcomeUnknown
	if c.addPending(ctx, pending) != nil {
		pending = 0
	}
	defer func() { c.wrote(ctx, pending, became) }()
	err = call()
	became = c.outcome(err)
	return err
}

func (c *Cache) addPending(ctx context.Context, number int64) error {
	return c.remote.do(context.WithoutCancel(ctx), "pending", func(ctx context.Context) error {
		return c.remote.client.IncrBy(ctx, c.keys.pending, number).Err()
	})
}

// outcome judges a write by its error. One that the tracker responded to is over.
func (c *Cache) outcome(err error) outcome {
	var e *mapping.Error
	switch {
	case err == nil:
		return outcomeOver
	case unchanged(err):
		return outcomeNone
	case isRefusal(err) || errors.As(err, &e) && e.FromTracker() && !e.Unknown:
		return outcomeOver
	}
	return outcomeUnknown
}

// unchanged tells whether a write that failed certainly changed nothing: it was never sent, or the tracker or a web server
// before it refused the caller. A bad token has no code of its own. What shares its code is refused before anything is done
// (tracker-behaviour.md section 11), and otherwise a caller with made-up tokens could empty the cache at will.
func unchanged(err error) bool {
	var e *mapping.Error
	if !errors.As(err, &e) || e.Unknown {
		return false
	}
	if e.FromTracker() {
		return isCredentialCode(e.Code) || e.Code == mapping.CodeJSON && e.Status == http.StatusBadRequest
	}
	return upstream.NotSent(err) || e.Reason == mapping.ReasonTooLarge || e.Reason == mapping.ReasonWebServer
}

// wrote follows a write. It is pending no more when it certainly changed nothing, or when Redis has the new generation, which
// then says all that the pending write did.
func (c *Cache) wrote(ctx context.Context, pending int64, became outcome) {
	var err error
	if became != outcomeNone {
		unknown := time.Duration(0)
		if became == outcomeUnknown {
			unknown = c.options.unknownTime()
		}
		err = c.change(ctx, unknown, became == outcomeOver)
		for _, other := range c.copies {
			_ = other.change(ctx, unknown+c.lag, became == outcomeOver) // it uses nothing in Redis until Redis was told
		}
	}
	if err == nil && pending != 0 {
		_ = c.addPending(ctx, -pending)
	}
}

// CopiedTo says that other trackers get what is written to this one in another way, each within lag. So a write invalidates
// their entries too, and for as long as lag their responses may be from before it. Call it before the cache is used.
func (c *Cache) CopiedTo(lag time.Duration, others ...*Cache) { c.lag, c.copies = lag, others }

// change begins a new generation: entries from before are used no more, here at once, and elsewhere when Redis has passed it
// on. What is read within the time unknown is not kept for long. Unless the change is certain, older entries serve while the
// tracker fails. After an error the change is delivered later, and this process uses nothing in Redis until then.
func (c *Cache) change(ctx context.Context, unknown time.Duration, certain bool) error {
	err := c.shared.change(context.WithoutCancel(ctx), unknown, certain)
	c.local.InvalidateAll()
	c.options.Observer.Change(err == nil)
	if err != nil && !errors.Is(err, errAway) {
		c.options.Logger.Warn("flag type change not delivered to redis; bypassing the shared cache until it is", "cause", err)
	}
	return err
}

// Purge invalidates all entries of a product, or of the tracker if product is empty. Spelling of the product does not matter.
// An error says that Redis could not be told.
func (c *Cache) Purge(ctx context.Context, product string) error {
	if product == "" {
		return c.change(ctx, 0, true)
	}
	err := c.remote.do(ctx, "purge", func(ctx context.Context) error {
		return c.remote.client.Set(ctx, c.keys.product(product), crand.Text(), c.options.productLife()).Err()
	})
	c.generation.forget()
	c.local.InvalidateAll()
	if err != nil {
		return fmt.Errorf("purging a product: %w", err)
	}
	c.generation.publish(ctx, "purge")
	return nil
}
