package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"portico/mapping"
	"portico/upstream"
)

// Cache is a Tracker that answers flag type reads from what it was told before.
// Everything else goes to the Tracker behind it; flag type writes begin a new
// generation of answers. It never fails a read because Redis does not work.
type Cache struct {
	next    upstream.Tracker
	options Options
	now     func() time.Time
	// same tells whether an answer was stored under the present generation.
	// Everything hangs on it; a test breaks it to see that this is noticed.
	same func(stored, present string) bool
	// nothing tells whether a failed write surely changed nothing; tests break it, too.
	nothing func(err error) bool

	// common is what a cache that follows this one goes on with; ends is whether it
	// ends with this one. What is used of it often stands here as well.
	common     *Common
	ends       bool
	keys       keys
	remote     *remote
	server     *embedded
	generation *generations
	groups     *groupMemory
	news       *subscription
	// hasher has the secret; shared says that it is the one that all processes have.
	hasher *atomic.Pointer[hasher]
	shared *atomic.Bool

	local      *local
	revalidate *pacer
	sick       sickness

	// copies are the caches of trackers that have what is written to this one within lag.
	copies []*Cache
	lag    time.Duration

	looks, fills singleflight.Group
	slots        chan struct{}
	forced       atomic.Uint64

	// life ends when the cache is closed; work counts what has to end before.
	life   context.Context
	end    context.CancelFunc
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

var _ upstream.Tracker = (*Cache)(nil)

// New makes a cache before next. It does not fail because Redis is away: reads go
// to the tracker until it is there. Close ends what it started, and leaves
// Options.Common alone.
func New(next upstream.Tracker, options Options) (*Cache, error) {
	return open(next, options, time.Now, func(stored, present string) bool { return stored == present })
}

func open(
	next upstream.Tracker, options Options, now func() time.Time, same func(stored, present string) bool,
) (*Cache, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	c := &Cache{next: next, options: options, now: now, same: same, nothing: didNothing}
	c.life, c.end = context.WithCancel(context.Background())
	if c.off() {
		return c, nil
	}
	var err error
	if c.local, err = newLocal(c.options.LocalTTL, c.options.LocalBytes); err != nil {
		return nil, fmt.Errorf("making the local level: %w", err)
	}
	c.revalidate = newPacer(c.options.RevalidateEvery)
	c.slots = make(chan struct{}, c.options.MaxFills)
	if c.common = c.options.Common; c.common == nil {
		c.ends = true
		if c.common, err = openCommon(c.options, now); err != nil {
			return nil, err
		}
	}
	c.use(c.common)
	return c, nil
}

// use begins to use what caches have in common, and the operator's secret if there
// is one.
func (c *Cache) use(common *Common) {
	c.keys, c.remote, c.server, c.generation = common.keys, common.remote, common.server, common.generation
	c.groups, c.news, c.hasher, c.shared = common.groups, common.news, &common.hasher, &common.shared
	if secret := c.options.Secret; len(secret) > 0 {
		c.hasher, c.shared = &atomic.Pointer[hasher]{}, &atomic.Bool{}
		c.hasher.Store(newHasher(secret))
		c.shared.Store(true)
	}
	common.join(&c.options)
}

// Close ends everything that the cache started. Afterwards it passes every call
// on and remembers nothing. Changes still count for those who use the same Common.
func (c *Cache) Close() error {
	c.mu.Lock()
	already := c.closed
	c.closed = true
	c.mu.Unlock()
	if already {
		return nil
	}
	c.end()
	if c.off() {
		return nil
	}
	c.work.Wait()
	c.revalidate.close()
	c.local.close()
	c.common.leave(&c.options)
	if c.ends {
		return c.common.Close()
	}
	return nil
}

// enter tells whether work may still begin; who got true calls c.work.Done.
func (c *Cache) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Add(1)
	}
	return !c.closed
}

func (c *Cache) off() bool { return c.options.Scope == ScopeOff }

// CreateFlagType implements upstream.Tracker.
func (c *Cache) CreateFlagType(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypeCreate,
) (reply mapping.FlagTypeCreated, err error) {
	err = c.write(ctx, caller, func() error {
		reply, err = c.next.CreateFlagType(ctx, caller, request)
		return err
	})
	return reply, err
}

// UpdateFlagTypes implements upstream.Tracker.
func (c *Cache) UpdateFlagTypes(
	ctx context.Context, caller upstream.Caller, request mapping.FlagTypeUpdate,
) (reply mapping.FlagTypesUpdated, err error) {
	err = c.write(ctx, caller, func() error {
		reply, err = c.next.UpdateFlagTypes(ctx, caller, request)
		return err
	})
	return reply, err
}

// BugAttachments implements upstream.Tracker.
func (c *Cache) BugAttachments(
	ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest,
) (mapping.Attachments, error) {
	return c.next.BugAttachments(ctx, caller, request)
}

// Attachment implements upstream.Tracker.
func (c *Cache) Attachment(
	ctx context.Context, caller upstream.Caller, request mapping.AttachmentsRequest,
) (mapping.Attachments, error) {
	return c.next.Attachment(ctx, caller, request)
}

// CreateAttachment implements upstream.Tracker.
func (c *Cache) CreateAttachment(
	ctx context.Context, caller upstream.Caller, request mapping.AttachmentCreate,
) (mapping.AttachmentsCreated, error) {
	return c.next.CreateAttachment(ctx, caller, request)
}

// UpdateAttachments implements upstream.Tracker.
func (c *Cache) UpdateAttachments(
	ctx context.Context, caller upstream.Caller, request mapping.AttachmentUpdate,
) (mapping.AttachmentsUpdated, error) {
	return c.next.UpdateAttachments(ctx, caller, request)
}

// write carries out a flag type write, with a mark in Redis while it is under way
// and a new generation afterwards, also when it fails or panics, as nobody can
// know what a tracker did that did not say. The client's hanging up does not keep
// the generation from being made. A write that surely did nothing leaves
// everything as it was, so that the cache outlives clients who go on writing to a
// tracker that is away.
//
// Who showed no credential cannot write. Only when such a write was not plainly
// refused does it count, or anybody could empty the cache at will.
func (c *Cache) write(ctx context.Context, caller upstream.Caller, call func() error) (err error) {
	mark, did := int64(0), inDoubt
	defer func() { c.ended(ctx, mark, did) }()
	anonymous := caller.Anonymous()
	if !anonymous {
		mark = c.announce(ctx)
	}
	err = call()
	did = c.effect(err, anonymous)
	return err
}

// Changed begins a new generation: no answer from before is given any more, here
// at once and elsewhere as soon as Redis has passed it on. Call it before and
// after a flag type write that does not come through this Tracker. An error says
// that Redis could not be told yet; the cache keeps trying, and until then this
// process believes nothing in Redis.
func (c *Cache) Changed(ctx context.Context) error { return c.change(ctx, 0) }

// change does what Changed says. What is read for as long as doubt lasts is not
// kept for long.
func (c *Cache) change(ctx context.Context, doubt time.Duration) error {
	if c.off() {
		return nil
	}
	err := c.common.change(context.WithoutCancel(ctx), doubt)
	c.local.clear()
	c.options.Observer.Change(err == nil)
	if err != nil && !errors.Is(err, errAway) {
		c.options.Logger.Warn("redis could not be told of a flag type change; it is not believed until it was", "cause", err)
	}
	return err
}

// InvalidateAll does what Changed does. It is for an operator, or for a move to
// another tracker.
func (c *Cache) InvalidateAll(ctx context.Context) error { return c.Changed(ctx) }
