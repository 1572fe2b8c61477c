package cache

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// leasePoll is how often a process looks whether another one has an answer.
	leasePoll = 10 * time.Millisecond
	// leaseRest is how long a lease stays after the answer was stored.
	leaseRest = 100 * time.Millisecond
	// refreshPace is how often a process tries to replace one stale answer.
	refreshPace = time.Second
)

// turn waits until this process may ask the tracker, because it holds the lease
// or nobody can say who does, or until another process has asked, and gives that
// one's answer. It waits no longer than a lease lives.
func (c *Cache) turn(ctx context.Context, r *read, found *look) *entry {
	end := time.Now().Add(c.options.Lease)
	for {
		held, name := c.lease(ctx, *found), c.keys.lease(found.plain, found.stamp)
		if held && c.now().Sub(found.checked) < leaseRest/2 {
			return nil
		}
		// Another process may be done by now. So it may be where the lease is ours: on a
		// busy machine one can come and go between the look and here.
		before := *found
		e, there := c.lookAgain(ctx, r, found)
		if held && e != nil {
			c.release(before)
		}
		if e != nil || !there || held && name == c.keys.lease(found.plain, found.stamp) {
			return e
		}
		if !pause(ctx, leasePoll) || time.Now().After(end) {
			return nil
		}
	}
}

// lookAgain brings found up to date and gives a fresh answer if there is one now.
// When Redis went away, found stays as it was: the fill counts for the generation
// of before.
func (c *Cache) lookAgain(ctx context.Context, r *read, found *look) (e *entry, there bool) {
	again := c.lookNow(ctx, found.plain, r.request.Product)
	if again.stamp == (stamp{}) {
		return nil, false
	}
	again.why = found.why
	*found = again
	if e := again.entry; e != nil && e.state(c.now(), &c.options) == fresh {
		return e, true
	}
	return nil, true
}

// lease takes the lease on a key. Where Redis cannot say, it is ours.
func (c *Cache) lease(ctx context.Context, found look) bool {
	ctx, cancel := c.remote.brief(ctx, 1)
	defer cancel()
	got := true
	err := c.remote.do(ctx, "lease", func(ctx context.Context) (err error) {
		got, err = c.remote.client.SetNX(ctx, c.keys.lease(found.plain, found.stamp), "1", c.options.Lease).Result()
		return err
	})
	return got || err != nil
}

// release lets others try after a fill that left nothing in Redis. Nobody waits
// for it.
func (c *Cache) release(found look) {
	if found.stamp == (stamp{}) || !c.enter() {
		return
	}
	go func() {
		defer c.work.Done()
		_ = c.remote.do(c.life, "release", func(ctx context.Context) error {
			return c.remote.client.Del(ctx, c.keys.lease(found.plain, found.stamp)).Err()
		})
	}()
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refresh replaces an entry in the background, at most once in refreshPace. When
// the tracker is sick, the lease stays until its end, which paces all processes
// together.
func (c *Cache) refresh(ctx context.Context, r *read, h *held, now time.Time) {
	due := h.retry.Load()
	if now.UnixNano() < due || !h.retry.CompareAndSwap(due, now.Add(refreshPace).UnixNano()) {
		return
	}
	own := *r
	plain := c.keys.plain(r.key)
	name := "refresh" + plain + strconv.FormatUint(h.seen.turn, 10)
	c.fills.DoChan(name, func() (any, error) {
		return c.detached(ctx, func(ctx context.Context) *filled { return c.renew(ctx, &own, h.entry, plain) }), nil
	})
}

// renew asks the tracker again unless another process did or does.
func (c *Cache) renew(ctx context.Context, r *read, old *entry, plain string) *filled {
	found := c.lookNow(ctx, plain, r.request.Product)
	if e := found.entry; e != nil && e.filled.After(old.filled) {
		c.local.put(r.key, e, found.seen, found.checked)
		return &filled{entry: e}
	}
	if found.stamp != (stamp{}) && !c.lease(ctx, found) {
		return &filled{err: redis.Nil}
	}
	ctx, cancel := context.WithTimeout(ctx, old.refreshTimeout(c.options.FillTimeout))
	defer cancel()
	out := c.ask(ctx, r, found)
	if !out.shared && !isSickness(out.err) {
		c.release(found)
	}
	return out
}
