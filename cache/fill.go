package cache

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"golang.org/x/sync/singleflight"

	"portico/mapping"
	"portico/upstream"
)

const (
	// leasePoll is how often a process asks whether another one has stored an entry.
	leasePoll = 10 * time.Millisecond
	// refreshPace is how often a process tries to replace one stale entry.
	refreshPace = time.Second
	// patience is how long a read with an old entry waits for the tracker.
	patience = 2 * time.Second
	// uncertainTTL is how long an entry is fresh while a write of unknown outcome may be carried out: long enough to keep a
	// crowd from the tracker.
	uncertainTTL = time.Second
)

// errClosed says that the cache is closed.
var errClosed = errors.New("the cache is closed")

// filled is the outcome of one call of the tracker, shared by all reads that wait for it.
type filled struct {
	entry *entry
	err   error
	// stored says that a level has the entry, and shared that Redis has.
	stored, shared bool
	// elsewhere says that another process asked the tracker.
	elsewhere bool
}

// forward asks the tracker, together with all reads of the same entry, and uses an old entry if the tracker fails.
func (c *Cache) forward(ctx context.Context, r *read, found lookup) (mapping.Reply, error) {
	led := false
	results := c.fills.DoChan(c.fillName(r, &found), c.guarded(func() any {
		led = true
		return c.lead(ctx, r, found)
	}))
	var late <-chan time.Time
	if found.entry != nil {
		late = time.After(patience)
	}
	var result singleflight.Result
	select {
	case result = <-results:
	case <-late:
		c.setFailing(true)
		return c.hit(found.entry, c.now(), detailIfError), nil
	case <-ctx.Done():
		return c.filledReply(r, &found, &filled{err: ctx.Err()}, false)
	}
	out, done := result.Val.(*filled)
	if !done {
		out = &filled{err: result.Err}
	}
	if isFailure(out.err) && found.why == detailAway { // one late command of Redis must not fail the read
		found = c.lookup(ctx, r)
	}
	switch {
	case errors.Is(out.err, errClosed):
		return c.direct(ctx, r.caller, r.request, detailOff)
	case !led && (r.isPersonal(out.err) || isRefusal(out.err) && r.key.scope.kind == kindGroups):
		return c.direct(ctx, r.caller, r.request, detailOtherCaller)
	case isFailure(out.err) && found.entry != nil:
		return c.hit(found.entry, c.now(), detailIfError), nil
	}
	return c.filledReply(r, &found, out, result.Shared)
}

// fillName names a fill. Reads share a response only if they asked under the same stamp and generation.
func (c *Cache) fillName(r *read, found *lookup) string {
	name := c.keys.lease(found.name, found.stamp) + strconv.FormatUint(found.seen.sequence, 10)
	if r.forced {
		name += "/" + strconv.FormatUint(rand.Uint64(), 10)
	}
	return name
}

// filledReply makes the reply to one of the reads that waited for a fill.
func (c *Cache) filledReply(r *read, found *lookup, out *filled, collapsed bool) (mapping.Reply, error) {
	info := &mapping.CacheInfo{Forward: forwardMiss, Detail: found.why, Stored: out.stored, Collapsed: collapsed || out.elsewhere}
	switch {
	case r.forced:
		info.Forward, info.Detail = forwardRequest, detailRequest
	case found.entry != nil:
		info.Forward = forwardStale
	}
	if out.err != nil {
		c.options.Observer.Read("error")
		if e, ok := errors.AsType[*mapping.Error](out.err); ok {
			own := *e // so that reads that share an error do not change it for each other
			return mapping.Reply{Cache: info}, &own
		}
		return mapping.Reply{Cache: info}, out.err
	}
	c.options.Observer.Read(info.Forward)
	info.Age = out.entry.age(c.now())
	info.TTL = out.entry.Soft - info.Age
	return out.entry.reply(info), nil
}

// lead carries a fill out, also if the client that caused it hangs up. While the tracker fails it takes no lease: mostly the call is refused at once,
// and otherwise each process makes one.
func (c *Cache) lead(ctx context.Context, r *read, found lookup) *filled {
	return c.detached(ctx, func(ctx context.Context) *filled {
		if found.stamp == (stamp{}) || r.forced || c.failing(c.now()) {
			return c.ask(ctx, r, &found)
		}
		if e := c.awaitLease(ctx, r, &found); e != nil {
			c.hold(r.key, e, &found)
			return &filled{entry: e, stored: true, elsewhere: true}
		}
		out := c.ask(ctx, r, &found)
		if !out.shared {
			c.release(ctx, &found)
		}
		return out
	})
}

// detached runs a fill with a lifetime of its own.
func (c *Cache) detached(ctx context.Context, fill func(context.Context) *filled) *filled {
	if !c.enter() {
		return &filled{err: errClosed}
	}
	defer c.work.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.FillTimeout)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	out := fill(ctx)
	if c.life.Err() != nil && out.err != nil {
		out.err = errClosed
	}
	return out
}

// awaitLease waits until this process may ask the tracker, because it holds the lease or cannot find out who does, or until another
// process has stored an entry, and gives that one. It waits no longer than a lease lives. found is brought up to date.
func (c *Cache) awaitLease(ctx context.Context, r *read, found *lookup) *entry {
	failed := false
	for end := time.Now().Add(c.options.Lease); time.Now().Before(end); {
		leased, err := c.lease(ctx, found)
		if leased && c.now().Sub(found.checked) < leaseRest/2 {
			return nil
		}
		// Another process may have stored an entry since, also if the lease is this one's: on a busy machine a lease can come
		// and go between a lookup and here.
		again := c.lookupNow(ctx, r)
		if err == nil && again.stamp != (stamp{}) {
			former := *found
			again.why = found.why
			*found = again
			if e := again.entry; e != nil && e.state(c.now(), &c.options) == fresh {
				if leased {
					c.release(ctx, &former)
				}
				return e
			}
		} else if failed { // a single command may be late on a busy machine
			return nil
		} else {
			failed = true
		}
		if leased { // under the former stamp, if that has changed, which costs a second call at most
			return nil
		}
		if !upstream.Pause(ctx, leasePoll) {
			return nil
		}
	}
	return nil
}

// lease takes the lease on an entry.
func (c *Cache) lease(ctx context.Context, found *lookup) (leased bool, err error) {
	ctx, cancel := c.remote.brief(ctx, c.remote.timeout/2)
	defer cancel()
	err = c.remote.do(ctx, "lease", func(ctx context.Context) (err error) {
		leased, err = c.remote.client.SetNX(ctx, c.keys.lease(found.name, found.stamp), "1", c.options.Lease).Result()
		return err
	})
	return leased, err
}

// release lets others try after a fill that stored nothing in Redis.
func (c *Cache) release(ctx context.Context, found *lookup) {
	_ = c.remote.do(context.WithoutCancel(ctx), "release", func(ctx context.Context) error {
		return c.remote.client.Del(ctx, c.keys.lease(found.name, found.stamp)).Err()
	})
}

// ask asks the tracker and keeps the response.
func (c *Cache) ask(ctx context.Context, r *read, found *lookup) *filled {
	e := &entry{
		Stamp: found.stamp, Scope: r.key.scope.String(), Product: r.key.product, Component: r.key.component,
		Soft: c.options.TTL - rand.N(c.options.TTL/10+1), filled: c.now(),
	}
	start := time.Now()
	reply, err := upstream.ReadFlagTypes(ctx, c.next, r.caller, r.request, false)
	c.options.Observer.Fill(time.Since(start), err)
	if err == nil {
		var text bytes.Buffer
		_, err = reply.WriteTo(&text)
		e.ETag, e.text = reply.ETag, bytes.Clone(text.Bytes())
		err = errors.Join(err, reply.Close())
	}
	switch {
	case err == nil:
		c.setFailing(false)
		return c.keep(ctx, r, found, e)
	case r.isPersonal(err): // it says nothing about the tracker
	case isRefusal(err):
		c.setFailing(false)
		c.forget(ctx, r, found, err)
	default:
		c.setFailing(true)
		if found.entry == nil && found.stamp != (stamp{}) {
			c.hold(r.key, nil, found)
		}
	}
	return &filled{err: err}
}

// keep stores an entry in both levels. One that is out of date already would only replace something newer.
func (c *Cache) keep(ctx context.Context, r *read, found *lookup, e *entry) *filled {
	if found.unknown {
		e.Uncertain, e.Soft = true, min(e.Soft, uncertainTTL)
	}
	out := &filled{entry: e}
	if found.stamp == (stamp{}) {
		return out // nothing tells of the writes of other processes
	}
	c.hold(r.key, e, found)
	ctx, cancel := c.remote.brief(ctx, c.remote.timeout)
	defer cancel()
	out.shared = found.stamp.Generation == c.generation.present.Load().text && c.store(ctx, found, e)
	out.stored = out.shared || c.options.LocalTTL > 0
	return out
}

// forget removes what was known, as the tracker refuses the caller now. If callers share, a credential that has become bad
// concerns its owner only.
func (c *Cache) forget(ctx context.Context, r *read, found *lookup, err error) {
	var e *mapping.Error
	if r.key.scope.kind == kindGroups && errors.As(err, &e) && isCredentialCode(e.Code) {
		c.groups.Invalidate(r.own)
		return
	}
	c.local.Invalidate(r.key)
	if found.entry != nil {
		_ = c.remote.do(ctx, "delete", func(ctx context.Context) error {
			return c.remote.client.Del(ctx, found.name).Err()
		})
	}
}

// refresh replaces an entry in the background, at most once in refreshPace. If the tracker fails, the lease stays until its
// end, which paces all processes together.
func (c *Cache) refresh(ctx context.Context, r *read, h *held, now time.Time) {
	due := h.retry.Load()
	if now.UnixNano() < due || !h.retry.CompareAndSwap(due, now.Add(refreshPace).UnixNano()) {
		return
	}
	name := "refresh" + c.keys.value(r.key) + strconv.FormatUint(h.seen.sequence, 10)
	c.fills.DoChan(name, c.guarded(func() any {
		return c.detached(ctx, func(ctx context.Context) *filled { return c.renew(ctx, r, h.entry) })
	}))
}

// renew asks the tracker again unless another process did or does.
func (c *Cache) renew(ctx context.Context, r *read, old *entry) *filled {
	found := c.lookupNow(ctx, r)
	if e := found.entry; e != nil && e.filled.After(old.filled) {
		c.hold(r.key, e, &found)
		return &filled{entry: e}
	}
	if found.stamp != (stamp{}) {
		if leased, err := c.lease(ctx, &found); !leased && err == nil {
			return &filled{}
		}
	}
	out := c.ask(ctx, r, &found)
	if !out.shared && !isFailure(out.err) {
		c.release(ctx, &found)
	}
	return out
}
