package cache

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Common is what the caches of one tracker have in common while one follows the
// other, as happens when a program reads its configuration again: the way to Redis,
// or the server itself where it is embedded, the generation of answers, and the
// changes that Redis has not heard of yet.
type Common struct {
	redis      Redis
	keys       keys
	now        func() time.Time
	remote     *remote
	server     *embedded
	generation *generations
	groups     *groupMemory
	news       *subscription

	// hasher has the secret that all processes share once shared is true. Until
	// then it is this process's own.
	hasher atomic.Pointer[hasher]
	shared atomic.Bool
	// wanted says that some cache has no secret of its own.
	wanted atomic.Bool

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	// begun is for what runs beside the requests.
	begun sync.Once
	// newest is the user who is told what happens; nil when there is none.
	newest atomic.Pointer[Options]

	mu    sync.Mutex // guards what follows
	users []*Options
	heir  *Common
}

// OpenCommon makes what caches with these options can have in common. Whoever gets
// it closes it after the last of them.
func OpenCommon(options Options) (*Common, error) { return openCommon(options, time.Now) }

func openCommon(options Options, now func() time.Time) (*Common, error) {
	options = options.withDefaults()
	k := &Common{redis: options.Redis, keys: newKeys(options.Tracker, options.Address), now: now}
	var err error
	if k.groups, err = newGroupMemory(); err != nil {
		return nil, fmt.Errorf("making the memory of groups: %w", err)
	}
	k.life, k.end = context.WithCancel(context.Background())
	k.connect()
	k.generation = newGenerations(k.remote, k.keys, options.Redis.DB, now)
	secret := make([]byte, 32)
	rand.Read(secret)
	k.hasher.Store(newHasher(secret))
	k.news = newSubscription(k)
	return k, nil
}

// connect makes the way to Redis, and the server itself when it is embedded.
func (k *Common) connect() {
	k.remote = &remote{timeout: k.redis.Timeout, observe: k.observe, panicked: k.panicked}
	k.remote.breaker.changed = k.redisChanged
	if k.redis.Embedded() {
		k.server = startEmbedded(k.redis.EmbeddedBytes)
		k.remote.client = k.redis.client(k.server.dial)
		return
	}
	k.remote.client = k.redis.client(nil)
}

// Fits tells whether a cache with these options can use it.
func (k *Common) Fits(options Options) bool {
	options = options.withDefaults()
	return k.keys == newKeys(options.Tracker, options.Address) && k.redis.same(options.Redis)
}

// Hand makes every change count for another one too, also one that is under way or
// could not be delivered yet: caches that are about to be closed may still carry out
// writes when their followers already answer. Nil ends that.
func (k *Common) Hand(to *Common) {
	k.mu.Lock()
	k.heir = to
	k.mu.Unlock()
	if to != nil && k.generation.undelivered() {
		to.generation.raise(k.generation.doubtful())
	}
}

// change begins a new generation, here and for whoever takes over. The tracker may
// still carry the change out for as long as doubt lasts.
func (k *Common) change(ctx context.Context, doubt time.Duration) error {
	err := k.generation.change(ctx, doubt)
	k.mu.Lock()
	heir := k.heir
	k.mu.Unlock()
	if heir != nil {
		_ = heir.generation.change(ctx, doubt) // which delivers it later when it could not now
	}
	return err
}

// join notes one more user. The newest one is told what happens from now on.
func (k *Common) join(options *Options) {
	k.mu.Lock()
	k.users = append(k.users, options)
	k.newest.Store(options)
	k.mu.Unlock()
	if len(options.Secret) == 0 {
		k.wanted.Store(true)
	}
	if err := k.check(k.life); err != nil {
		options.Logger.Warn("redis is not there; flag types come from the tracker until it is", "cause", err)
	}
	options.Observer.RedisState(k.remote.breaker.allows())
	k.begun.Do(func() {
		k.work.Go(k.watch)
		k.work.Go(k.news.run)
	})
}

// leave ends what join began.
func (k *Common) leave(options *Options) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.users = slices.DeleteFunc(k.users, func(each *Options) bool { return each == options })
	if len(k.users) > 0 {
		k.newest.Store(k.users[len(k.users)-1])
	}
}

// Close ends what runs beside the requests, and the server where it is embedded.
func (k *Common) Close() error {
	k.end()
	k.news.close()
	k.work.Wait()
	err := k.remote.client.Close()
	if k.server != nil {
		k.server.close()
	}
	k.groups.close()
	if err != nil {
		return fmt.Errorf("closing the connections to redis: %w", err)
	}
	return nil
}

func (k *Common) observe(operation string, took time.Duration, err error) {
	if told := k.newest.Load(); told != nil {
		told.Observer.Redis(operation, took, err)
	}
}

// redisChanged tells every user, as which of them will stay is not known here, and one log.
func (k *Common) redisChanged(available bool, cause error) {
	k.mu.Lock()
	users := slices.Clone(k.users)
	k.mu.Unlock()
	for i, told := range users {
		told.Observer.RedisState(available)
		switch {
		case i < len(users)-1:
		case available:
			told.Logger.Info("redis is back")
		default:
			told.Logger.Warn("redis does not answer; flag types come from the tracker", "cause", cause)
		}
	}
}
