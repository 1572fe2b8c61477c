package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"portico/upstream"
)

// Cache is a Tracker that serves flag type reads from earlier responses. Flag type writes begin a new generation of entries,
// and the other operations go to the Tracker behind it. No read fails because Redis does not work. A Cache is safe for
// concurrent use.
type Cache struct {
	next    upstream.Tracker
	options Options
	now     func() time.Time

	shared *Shared
	// owned says that shared is closed with this cache.
	owned bool
	// These are those of shared.
	keys       keys
	remote     *remote
	generation *generations

	local *otter.Cache[key, *held]
	// groups are the scopes of credentials that share entries.
	groups *otter.Cache[scope, membership]
	// revalidated has the names of entries, by credential, of which a fresh response was forced lately.
	revalidated              *otter.Cache[string, struct{}]
	lookups, fills, learning singleflight.Group
	// failingUntil is until when the tracker counts as failing, in Unix nanoseconds.
	failingUntil atomic.Int64

	// copies are the caches of trackers that get the writes to this one within lag.
	copies []*Cache
	lag    time.Duration

	// life ends when the cache is closed; work counts what has to end before.
	life context.Context
	end  context.CancelFunc
	mu   sync.Mutex // held to end life and to add work
	work sync.WaitGroup
}

var _ upstream.Peeker = (*Cache)(nil)

// New makes a cache before a Tracker whose flag types are whole JSON documents. Redis need not be reachable.
// Close ends what it started, and leaves Options.Shared open.
func New(next upstream.Tracker, options Options) *Cache { return open(next, options, time.Now) }

func open(next upstream.Tracker, options Options, now func() time.Time) *Cache {
	options = options.withDefaults()
	c := &Cache{
		next: next, options: options, now: now,
		shared: options.Shared, local: newLocal(),
		groups: otter.Must(&otter.Options[scope, membership]{MaximumSize: maxScopes}),
		revalidated: otter.Must(&otter.Options[string, struct{}]{
			MaximumSize: maxScopes, ExpiryCalculator: otter.ExpiryWriting[string, struct{}](revalidateEvery),
		}),
	}
	c.life, c.end = context.WithCancel(context.Background())
	if c.shared == nil {
		c.shared, c.owned = openShared(options, now), true
	}
	c.keys, c.remote, c.generation = c.shared.keys, c.shared.remote, c.shared.generation
	return c
}

// maxScopes bounds what is remembered of scopes.
const maxScopes = 10_000

// Close ends everything that the cache started. Afterwards it passes every call on and keeps nothing. Changes still count for
// the caches that use the same Shared.
func (c *Cache) Close() error {
	c.mu.Lock()
	closed := c.life.Err() != nil
	c.end()
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.work.Wait()
	c.local.StopAllGoroutines()
	c.groups.StopAllGoroutines()
	c.revalidated.StopAllGoroutines()
	if c.owned {
		return c.shared.Close()
	}
	return nil
}

// enter tells whether work may still begin; a caller that got true calls c.work.Done.
func (c *Cache) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return false
	}
	c.work.Add(1)
	return true
}

// guarded makes an error of a panic in f, which singleflight would raise again where it cannot be recovered. The value of the
// panic is not shown, as it might hold a credential.
func (c *Cache) guarded(f func() any) func() (any, error) {
	return func() (value any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = fmt.Errorf("the cache panicked: %T", cause)
				c.options.Logger.Error("panic", "cause", err, "stack", string(debug.Stack()))
			}
		}()
		return f(), nil
	}
}
