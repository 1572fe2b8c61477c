package cache

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxIndexed is how many entries of one product are kept. On most sites fewer callers read one within a day.
const maxIndexed = 4000

// lookup is what Redis holds for a key.
type lookup struct {
	contents
	// name is the key in Redis.
	name string
	// entry is one that may be used, or nil for the reason why.
	entry *entry
	why   string
	// checked is when Redis was asked.
	checked time.Time
}

// lookup asks Redis, once for all reads of an entry at the same time. A read never joins a lookup from before a change.
func (c *Cache) lookup(ctx context.Context, r *read) lookup {
	sequence := strconv.FormatUint(c.generation.present.Load().sequence, 10)
	found, _, _ := c.lookups.Do(sequence+c.keys.value(r.key), func() (any, error) { return c.lookupNow(ctx, r), nil })
	return found.(lookup)
}

// lookupNow asks Redis, in the time for one command however many it takes.
func (c *Cache) lookupNow(ctx context.Context, r *read) lookup {
	ctx, cancel := c.remote.brief(ctx, c.remote.timeout)
	defer cancel()
	l := lookup{name: c.keys.value(r.key), checked: c.now(), why: detailAway}
	l.seen = c.generation.present.Load()
	l.unknown = c.generation.unknownLeft() > 0 // after reading which generation it is
	if !c.shared.hasher.Load().agreed {
		return l
	}
	found, err := c.read(ctx, l.name, r.request.Product)
	switch {
	case errors.Is(err, errUndelivered):
		l.why = detailUndelivered
	case err == nil:
		found.unknown = found.unknown || l.unknown
		l.contents = found
		l.entry, l.why = c.examine(&found, r.key)
	}
	return l
}

// contents are an entry in Redis and everything that decides whether it may be used.
type contents struct {
	value string
	// stamp is under which a response may be stored, the zero value if it may not.
	stamp stamp
	// seen was the present generation when Redis was asked.
	seen *token
	// previousGenerations are those whose entries may still be right, the present one first.
	previousGenerations []string
	// unknown says that the tracker may still carry out a write of unknown outcome.
	unknown bool
}

// read reads an entry of a product, and with it in one command under which stamp it may be used. The error is errUndelivered if Redis
// cannot be used although it responds.
func (c *Cache) read(ctx context.Context, name, product string) (contents, error) {
	if c.generation.undelivered() {
		if err := c.generation.deliver(ctx); err != nil {
			return contents{}, err
		}
	}
	texts, err := c.remote.texts(ctx, "read", name, c.keys.generation, c.keys.product(product), c.keys.pending, c.keys.unknown, c.keys.previousGenerations)
	if err != nil {
		return contents{}, err
	}
	seen, err := c.generation.accept(texts[1])
	if errors.Is(err, errRolledBack) {
		err = c.generation.deliver(ctx)
		seen = c.generation.present.Load()
	}
	if err != nil {
		return contents{}, err
	}
	found := contents{
		value: texts[0], stamp: stamp{seen.text, texts[2], texts[3]}, seen: seen, unknown: texts[4] != "", previousGenerations: strings.Fields(texts[5]),
	}
	if found.stamp.Pending == "0" {
		found.stamp.Pending = ""
	}
	if slices.Index(found.previousGenerations, seen.text) != 0 { // the list belongs to another generation, or there is none
		found.previousGenerations = []string{seen.text}
	}
	return found, nil
}

// examine gives the entry of a key if it may be used, or else why not.
func (c *Cache) examine(found *contents, k key) (e *entry, why string) {
	if found.value == "" {
		return nil, detailCold
	}
	e, err := decodeEntry(found.value)
	if err != nil || e.Scope != k.scope.String() || e.Product != k.product || e.Component != k.component {
		return nil, detailUnreadable
	}
	return c.usable(e, found)
}

// usable gives an entry if it may be used, or else why not. After a write that may have changed it, but not for certain, it
// serves for stale-if-error.
func (c *Cache) usable(e *entry, found *contents) (*entry, string) {
	why := detailExpired
	if e.Stamp != found.stamp {
		why = detailGeneration
		if e.Stamp.Product != found.stamp.Product || !slices.Contains(found.previousGenerations, e.Stamp.Generation) {
			return nil, why
		}
		e = e.asUncertain()
	}
	if e.state(c.now(), &c.options) == expired {
		return nil, why
	}
	return e, ""
}

// leaseRest is how long a lease stays after the entry was stored: a process that looked it up just before, and asks for the
// lease just after, finds the entry then instead of asking the tracker.
const leaseRest = 100 * time.Millisecond

// store keeps an entry in Redis and lists it under its product. If the product has too many, those that end first go: ever new
// spellings of a name would fill Redis otherwise.
func (c *Cache) store(ctx context.Context, found *lookup, e *entry) bool {
	value := e.encode()
	index, now := c.keys.index(e.Product), c.now()
	keep := c.options.entryLife()
	var listed *redis.IntCmd
	err := c.remote.do(ctx, "store", func(ctx context.Context) error {
		// Apart from the others: the pipe to an embedded server holds nothing, so a server that responds to a long command while
		// the client still writes the next one would wait for ever.
		if err := c.remote.client.Set(ctx, found.name, value, keep).Err(); err != nil {
			return err
		}
		pipe := c.remote.client.Pipeline()
		pipe.PExpire(ctx, c.keys.lease(found.name, found.stamp), leaseRest)
		pipe.ZAdd(ctx, index, redis.Z{Score: float64(now.Add(keep).UnixMilli()), Member: found.name})
		pipe.ZRemRangeByScore(ctx, index, "-inf", strconv.FormatInt(now.UnixMilli(), 10))
		listed = pipe.ZCard(ctx, index)
		pipe.PExpire(ctx, index, c.options.productLife())
		_, err := pipe.Exec(ctx)
		return err
	})
	if err != nil {
		return false
	}
	if surplus := listed.Val() - maxIndexed; surplus > 0 {
		_ = c.remote.do(ctx, "drop", func(ctx context.Context) error {
			first, err := c.remote.client.ZPopMin(ctx, index, surplus).Result()
			names := make([]string, len(first))
			for i, each := range first {
				names[i], _ = each.Member.(string)
			}
			return errors.Join(err, c.remote.client.Del(ctx, names...).Err())
		})
	}
	return true
}
