package cache

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"portico/mapping"
	"portico/upstream"
)

// Peek implements upstream.Peeker with the local level. A stale entry is replaced in the background.
func (c *Cache) Peek(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypesRequest,
) (mapping.Reply, error) {
	// The order matters: an entry is used only if no change came after this.
	present := c.generation.present.Load()
	own, now := c.credentialScope(&caller), c.now()
	m, current := c.membership(own, now)
	if !current {
		return mapping.Reply{}, upstream.ErrNotLocal
	}
	k := key{scope: m.scope, product: request.Product, component: request.Component}
	h, ok := c.local.GetIfPresent(k)
	switch {
	case !ok || h.seen != present || !now.Before(h.until):
		return mapping.Reply{}, upstream.ErrNotLocal
	case h.entry == nil:
		return c.refused(caller)
	}
	if h.entry.state(now, &c.options) == fresh {
		return c.hit(h.entry, now, detailLocal), nil
	}
	if reply, ok := c.serve(ctx, &read{caller: caller, request: request, key: k, own: own}, h, detailLocal); ok {
		return reply, nil
	}
	return mapping.Reply{}, upstream.ErrNotLocal
}

// refused gives the outcome of a read for which Redis has no response, if the tracker would refuse it.
func (c *Cache) refused(caller upstream.Caller) (mapping.Reply, error) {
	err := c.Refuse(caller, mapping.OpFlagTypes)
	if err == nil {
		return mapping.Reply{}, upstream.ErrNotLocal
	}
	c.options.Observer.Read("error")
	return mapping.Reply{Cache: &mapping.CacheInfo{Forward: forwardMiss, Detail: detailCold}}, err
}

// Refuse implements upstream.Refuser.
func (c *Cache) Refuse(caller upstream.Caller, operation mapping.Operation) error {
	return upstream.Refuse(c.next, caller, operation)
}

// serve responds from an entry that may be used at once, and has a stale one replaced in the background.
func (c *Cache) serve(ctx context.Context, r *read, h *held, detail string) (mapping.Reply, bool) {
	now := c.now()
	switch state := h.entry.state(now, &c.options); {
	case state == fresh:
		return c.hit(h.entry, now, detail), true
	case state == staleWhileRevalidate:
		detail = detailRevalidate
	case state == staleIfError && c.failing(now):
		detail = detailIfError
	default:
		return mapping.Reply{}, false
	}
	c.refresh(ctx, r, h, now)
	return c.hit(h.entry, now, detail), true
}

// hit makes a reply of an entry.
func (c *Cache) hit(e *entry, now time.Time, detail string) mapping.Reply {
	age, outcome := e.age(now), detail
	if age >= e.Soft {
		outcome = "stale"
	}
	c.options.Observer.Read(outcome)
	return e.reply(&mapping.CacheInfo{Hit: true, Stale: age >= e.Soft, TTL: e.Soft - age, Age: age, Detail: detail})
}

// freshness is what an entry is good for.
type freshness int

const (
	fresh freshness = iota
	// staleWhileRevalidate: may be used while a new one is fetched.
	staleWhileRevalidate
	// staleIfError: may be used while the tracker fails.
	staleIfError
	expired
)

// maxClockSkew is how far the clock of another process may be ahead.
const maxClockSkew = 5 * time.Second

// state tells what the entry is good for now. The age of one from the future is not known: a clock was or is wrong.
func (e *entry) state(now time.Time, o *Options) freshness {
	over := e.age(now) - e.Soft
	switch {
	case e.filled.Sub(now) > maxClockSkew:
		return expired
	case over < 0:
		return fresh
	case over < o.StaleWhileRevalidate && !e.Uncertain:
		return staleWhileRevalidate
	case over < o.StaleIfError:
		return staleIfError
	}
	return expired
}

// age is never negative, although the clocks of two machines may differ a little.
func (e *entry) age(now time.Time) time.Duration { return max(0, now.Sub(e.filled)) }

// reply makes a reply of the entry. Replies share the bytes.
func (e *entry) reply(info *mapping.CacheInfo) mapping.Reply {
	document := mapping.NewDocument(e.text)
	document.ETag = e.ETag
	return mapping.Reply{Document: document, Cache: info}
}

// localBytes bounds the local level.
const localBytes = 64 << 20

// held is an entry in the local level, which is inside the process. It is used until a fixed time, and only while the generation
// that was present when Redis confirmed it still is. Without an entry it says that Redis has none that may be used, which is held while the
// tracker fails.
type held struct {
	entry *entry
	seen  *token
	until time.Time
	// retry is when the entry may be refreshed again, in Unix nanoseconds.
	retry atomic.Int64
}

func newLocal() *otter.Cache[key, *held] {
	return otter.Must(&otter.Options[key, *held]{
		MaximumWeight: localBytes,
		Weigher: func(k key, h *held) uint32 {
			weight := 512 + 2*len(k.product) + 2*len(k.component)
			if h.entry != nil {
				weight += len(h.entry.text)
			}
			return uint32(weight)
		},
	})
}

// hold keeps an entry that a lookup found, or that was stored after it, in the local level if there is one.
func (c *Cache) hold(k key, e *entry, found *lookup) *held {
	h := &held{entry: e, seen: found.seen, until: found.checked.Add(c.options.LocalTTL)}
	if c.options.LocalTTL > 0 {
		// The texts of a request may be part of something bigger.
		k.product, k.component = strings.Clone(k.product), strings.Clone(k.component)
		c.local.Set(k, h)
	}
	return h
}
