package cache

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxRemoteValue is the largest answer that is kept in Redis. Real ones are a
	// few kilobytes.
	maxRemoteValue = 4 << 20
	// maxIndexed is how many answers are listed, and kept, for one product: more than
	// callers read it with credentials of their own within a day, on most sites.
	maxIndexed = 4000
)

// look is what Redis said about a key.
type look struct {
	// entry is an answer of the present generation, nil when there is none.
	entry *entry
	// stamp is under which generation an answer may be stored; empty when
	// none may.
	stamp stamp
	// seen was the present generation when Redis was asked, at checked.
	seen    *token
	checked time.Time
	plain   string
	// doubt says that a write may still be carried out whose outcome is unknown.
	doubt bool
	// why says why there is no entry.
	why string
}

// look asks Redis, once for all who ask for the same at the same time. The only
// errors are that of ctx and a panic.
func (c *Cache) look(ctx context.Context, r *read) (look, error) {
	present := c.generation.present()
	plain := c.keys.plain(r.key)
	detached := context.WithoutCancel(ctx)
	name := plain + strconv.FormatUint(present.turn, 10)
	results := c.looks.DoChan(name, c.guarded(func() any { return c.lookNow(detached, plain, r.request.Product) }))
	select {
	case result := <-results:
		found, _ := result.Val.(look)
		return found, result.Err
	case <-ctx.Done():
		return look{}, ctx.Err()
	}
}

// lookNow asks Redis, in the time for one command however many it takes.
func (c *Cache) lookNow(ctx context.Context, plain, product string) look {
	ctx, cancel := c.remote.brief(ctx, 2)
	defer cancel()
	l := look{plain: plain, checked: c.now(), seen: c.generation.present()}
	l.doubt = c.generation.doubtful() > 0 // after looking which generation it is
	if !c.shared.Load() || !c.remote.breaker.allows() || !c.enter() {
		l.why = detailAway
		return l
	}
	defer c.work.Done()
	values, err := c.believe(ctx, &l, product)
	switch {
	case errors.Is(err, errUndelivered):
		l.why = detailUndelivered
	case errors.Is(err, errRolledBack):
		l.why = detailRolledBack
	case err != nil:
		l.why = detailAway
	default:
		c.examine(&l, values)
	}
	return l
}

// stamp names what an answer was asked under: the generation, the lot of its
// product, and the marks of writes that were under way. It is empty when Redis
// could not be believed.
type stamp struct {
	generation string
	// lot is empty when the product has none yet.
	lot string
	// writes is empty when there were none.
	writes string
}

func (s stamp) String() string {
	if s.generation == "" {
		return ""
	}
	return s.generation + "|" + s.lot + "|" + s.writes
}

// believe reads the answer, both generations, its tracker's and its product's, and
// the marks in one command, and settles under which an answer counts. It gives the
// value.
func (c *Cache) believe(ctx context.Context, l *look, product string) (value string, err error) {
	if err := c.generation.tryDeliver(ctx); err != nil {
		return "", err
	}
	values, err := c.remote.texts(ctx,
		c.keys.value(l.plain), c.keys.generation(), c.keys.product(product), c.keys.writes(), c.keys.doubt())
	if err != nil {
		return "", err
	}
	seen, err := c.seen(ctx, values[1])
	if err != nil {
		return "", err
	}
	value, _ = values[0].(string)
	lot, _ := values[2].(string)
	l.doubt = l.doubt || values[4] != nil || c.generation.doubtful() > 0
	l.seen, l.stamp = seen, stamp{seen.text, lot, marks(values[3])}
	return value, nil
}

// seen judges the generation that Redis holds, and makes one if there is none.
func (c *Cache) seen(ctx context.Context, value any) (*token, error) {
	text, there := value.(string)
	if !there {
		return c.generation.begin(ctx)
	}
	seen, err := c.generation.accept(text)
	if errors.Is(err, errRolledBack) {
		return nil, errors.Join(err, c.generation.repair(ctx))
	}
	return seen, err
}

// examine takes the value for an answer if it is one of the present generation.
func (c *Cache) examine(l *look, value string) {
	if value == "" {
		l.why = detailCold
		return
	}
	e, err := decodeEntry(value)
	switch {
	case err != nil || e.plain != l.plain:
		l.why = detailUnreadable
	case !c.same(e.stamp, l.stamp.String()):
		l.why = detailGeneration
	case e.state(c.now(), &c.options) == dead:
		l.why = detailExpired
	default:
		l.entry, l.why = e, detailExpired
	}
}

// store keeps an entry in Redis and lists it under its product. The lease stays a
// little longer: who looked just before, and asks for the lease just after, finds
// the entry then instead of asking the tracker once more.
func (c *Cache) store(ctx context.Context, r *read, found look, e *entry) bool {
	value := e.encode()
	if len(value) > maxRemoteValue {
		return false
	}
	keep := e.soft
	if e.refusal == nil {
		keep = c.options.keep(e.soft)
	}
	index, end := c.keys.index(r.request.Product), e.filled.Add(keep).UnixMilli()
	var surplus *redis.StringSliceCmd
	err := c.remote.do(ctx, "store", func(ctx context.Context) error {
		pipe := c.remote.client.Pipeline()
		set := pipe.Set(ctx, c.keys.value(e.plain), value, keep)
		pipe.PExpire(ctx, c.keys.lease(found.plain, found.stamp), leaseRest)
		pipe.ZAdd(ctx, index, redis.Z{Score: float64(end), Member: digest(e.plain)})
		pipe.ZRemRangeByScore(ctx, index, "-inf", strconv.FormatInt(c.now().UnixMilli(), 10))
		surplus = pipe.ZRange(ctx, index, 0, -maxIndexed-1)
		pipe.PExpire(ctx, index, c.lotLife())
		pipe.PExpire(ctx, c.keys.product(r.request.Product), c.lotLife())
		if _, err := pipe.Exec(ctx); set.Err() != nil {
			return err
		}
		return nil
	})
	if err == nil && len(surplus.Val()) > 0 {
		c.drop(ctx, index, surplus.Val())
	}
	return err == nil
}

// drop removes answers that are too many for one product, those first that would end
// first, as whoever spells a name in ever new ways would fill Redis otherwise.
func (c *Cache) drop(ctx context.Context, index string, members []string) {
	_ = c.remote.do(ctx, "drop", func(ctx context.Context) error {
		pipe := c.remote.client.Pipeline()
		for _, member := range members {
			pipe.Del(ctx, c.keys.prefix+"v:"+member)
			pipe.ZRem(ctx, index, member)
		}
		_, err := pipe.Exec(ctx)
		return err
	})
}
