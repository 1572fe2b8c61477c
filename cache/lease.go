package cache

import (
	"context"
	"crypto/rand"
	"errors"
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
	end, owner, unsure := time.Now().Add(c.options.Lease), rand.Text(), false
	for {
		held, err := c.lease(ctx, *found, owner, unsure)
		// On a busy machine one command may be late, and just when another process is done and
		// answers all its clients. That is no reason to ask the tracker once more.
		if err != nil && (unsure || saidSo(err)) {
			return nil
		}
		unsure = unsure || err != nil
		name := c.keys.lease(found.plain, found.stamp)
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
		if e != nil || !there && unsure || held && name == c.keys.lease(found.plain, found.stamp) {
			return e
		}
		unsure = unsure || !there
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

// lease takes the lease on a key for an owner. Who is unsure whether an earlier
// attempt reached Redis finds out whether the lease is the owner's already.
func (c *Cache) lease(ctx context.Context, found look, owner string, unsure bool) (held bool, err error) {
	ctx, cancel := c.remote.brief(ctx, 1)
	defer cancel()
	err = c.remote.do(ctx, "lease", func(ctx context.Context) (err error) {
		key := c.keys.lease(found.plain, found.stamp)
		held, err = c.remote.client.SetNX(ctx, key, owner, c.options.Lease).Result()
		if err != nil || held || !unsure {
			return err
		}
		present, err := c.remote.client.Get(ctx, key).Result()
		held = present == owner
		return err
	})
	return held && err == nil, err
}

// saidSo tells whether an error is Redis's own answer, such as that it has no room,
// or that it is not to be asked at all.
func saidSo(err error) bool {
	_, said := errors.AsType[redis.Error](err)
	return said || errors.Is(err, errAway)
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
	c.fills.DoChan(name, c.guarded(func() any {
		return c.detached(ctx, func(ctx context.Context) *filled { return c.renew(ctx, &own, h.entry, plain) })
	}))
}

// renew asks the tracker again unless another process did or does.
func (c *Cache) renew(ctx context.Context, r *read, old *entry, plain string) *filled {
	found := c.lookNow(ctx, plain, r.request.Product)
	if e := found.entry; e != nil && e.filled.After(old.filled) {
		c.local.put(r.key, e, found.seen, found.checked)
		return &filled{entry: e}
	}
	if found.stamp != (stamp{}) {
		if held, err := c.lease(ctx, found, rand.Text(), false); !held && err == nil {
			return &filled{err: redis.Nil}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, old.refreshTimeout(c.options.FillTimeout))
	defer cancel()
	out := c.ask(ctx, r, found)
	if !out.shared && !isSickness(out.err) {
		c.release(found)
	}
	return out
}
