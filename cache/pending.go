package cache

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"portico/mapping"
)

// While a flag type write is under way, a mark in Redis says so. Answers carry
// the marks that stood when the tracker was asked, and count only while the same
// ones stand. So what was stored before a write is not given while nobody knows
// what became of it, not even when this process dies before it can say so.
//
// A write that surely did nothing takes its mark back, and all that was stored
// before counts again. A write that did something, or may have, leaves a new
// generation behind. That alone is what a read after an acknowledged write hangs
// on; the marks only ever make less count.
//
// Redis holds the sum of all marks. Sums come out the same in any order, so
// writes through several processes may begin and fail in each other's midst, and
// nobody has to compare before setting. Marks are large and random, so that no
// two sets of them are taken for each other. A sum that Redis loses or forgets
// in part merely makes older answers count for nothing.

// longestMark bounds marks so that millions left behind by processes that died
// do not overflow the sum.
const longestMark = 1 << 40

// announce puts a mark for a write that is about to begin, and gives it; 0 when
// Redis could not be told.
func (c *Cache) announce(ctx context.Context) (mark int64) {
	if c.off() {
		return 0
	}
	mark = 1 + rand.Int64N(longestMark)
	if c.add(ctx, mark) != nil {
		return 0
	}
	return mark
}

// effect is what a write did to the tracker's flag types.
type effect int

const (
	// inDoubt: nobody knows what it did, or whether it is still going to.
	inDoubt effect = iota
	// perhaps: it may have changed something, and is over.
	perhaps
	// none: it surely did nothing.
	none
)

// effect judges a write by its error. One that the tracker answered is over. One
// whose answer was lost may be carried out later.
func (c *Cache) effect(err error, anonymous bool) effect {
	var e *mapping.Error
	switch {
	case err == nil:
		return perhaps
	case c.nothing(err) || anonymous && isRefusal(err):
		return none
	case isRefusal(err) || errors.As(err, &e) && e.FromTracker() && !e.Unknown:
		return perhaps
	}
	return inDoubt
}

// ended follows a write. The mark goes when the write surely did nothing, or when
// Redis knows of the new generation, which says all that the mark did.
func (c *Cache) ended(ctx context.Context, mark int64, did effect) {
	var err error
	if did != none {
		doubt := time.Duration(0)
		if did == inDoubt {
			doubt = c.options.Doubt
		}
		err = c.change(ctx, doubt)
		c.copied(ctx, doubt)
	}
	if err == nil && mark != 0 {
		_ = c.add(ctx, -mark)
	}
}

// add changes the sum of the marks. What is not a number was put there by nobody
// who knows, and is replaced.
func (c *Cache) add(ctx context.Context, mark int64) error {
	return c.remote.do(context.WithoutCancel(ctx), "mark", func(ctx context.Context) error {
		err := c.remote.client.IncrBy(ctx, c.keys.writes(), mark).Err()
		if said, ok := errors.AsType[redis.Error](err); ok && !redis.IsOOMError(said) {
			return c.remote.client.Set(ctx, c.keys.writes(), mark, 0).Err()
		}
		return err
	})
}

// marks reads the sum as Redis gave it. No mark at all and none any more are the
// same.
func marks(value any) string {
	text, _ := value.(string)
	if text == "0" {
		return ""
	}
	return text
}

// didNothing tells whether a write that failed surely changed nothing: it was
// never sent, or the tracker or a web server before it did not let the caller in. A
// bad token has no code of its own. What shares its code is refused before anything
// is done (wire-facts.md section 11), and else whoever makes up tokens could empty
// the cache at will.
func didNothing(err error) bool {
	var e *mapping.Error
	if !errors.As(err, &e) || e.Unknown {
		return false
	}
	if e.FromTracker() {
		return isCredentialCode(e.Code) || e.Code == mapping.CodeJSON && e.Status == http.StatusBadRequest
	}
	switch e.Reason {
	case mapping.ReasonUnreachable, mapping.ReasonBreakerOpen, mapping.ReasonOverload, mapping.ReasonInexpressive,
		mapping.ReasonTooLarge, mapping.ReasonWebServer:
		return true
	}
	return false
}
