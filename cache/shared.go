package cache

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"portico/upstream"
)

// Shared are the resources of a tracker's cache that survive a reload of the configuration: the connections to Redis, or the
// server itself if it is embedded, the generation, and the changes that Redis has not been told of.
type Shared struct {
	redis      Redis
	keys       keys
	remote     *remote
	server     *miniredis.Miniredis // the embedded one, or nil
	generation *generations
	// secret is the configured one, empty if processes share one through Redis.
	secret []byte
	hasher atomic.Pointer[hasher]
	// listening says that this process is subscribed to the changes of others.
	listening atomic.Bool

	logger   *slog.Logger
	observer Observer
	// successor gets the changes too; see ForwardChanges.
	successor atomic.Pointer[Shared]

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup
}

// OpenShared opens the resources for caches with these options, whose Logger and Observer serve all of them. Redis need not be
// reachable. The caller closes them after the last of the caches.
func OpenShared(options Options) *Shared { return openShared(options.withDefaults(), time.Now) }

func openShared(options Options, now func() time.Time) *Shared {
	s := &Shared{
		redis: options.Redis, keys: newKeys(options.Tracker, options.Address), secret: options.Secret,
		logger: options.Logger, observer: options.Observer,
	}
	s.life, s.end = context.WithCancel(context.Background())
	secret := options.Secret
	if len(secret) == 0 {
		secret = make([]byte, 32)
		rand.Read(secret)
	}
	s.hasher.Store(newHasher(secret, len(options.Secret) > 0))
	dial := s.redis.dial
	if s.redis.embedded() {
		s.server = miniredis.NewMiniRedis()
		s.work.Go(func() { runEmbedded(s.life, s.server) })
		dial = func(context.Context, string, string) (net.Conn, error) { return s.server.Dial() }
	}
	s.remote = &remote{client: s.redis.client(dial), timeout: s.redis.Timeout, observe: s.observer.Redis}
	s.remote.breaker.changed = s.redisChanged
	s.generation = &generations{remote: s.remote, keys: s.keys, channel: s.keys.channel(s.redis.DB), now: now}
	s.generation.present.Store(&token{})
	if err := s.check(s.life); err != nil {
		options.Logger.Warn("redis cannot be used yet", "cause", err)
	}
	options.Observer.RedisState(s.remote.breaker.allows())
	s.work.Go(s.watch)
	s.work.Go(s.listen)
	return s
}

// Fits tells whether a cache with these options can use the resources. Those with another TLS configuration never fit, as its
// certificates may be new.
func (s *Shared) Fits(options Options) bool {
	options = options.withDefaults()
	return s.keys == newKeys(options.Tracker, options.Address) && bytes.Equal(s.secret, options.Secret) &&
		s.redis.TLS == options.Redis.TLS && reflect.DeepEqual(s.redis, options.Redis)
}

// ForwardChanges makes every change count for other resources too, also one that is under way or could not be delivered: a cache
// that is about to be closed may carry out writes while its successor is in use. Nil ends that.
func (s *Shared) ForwardChanges(to *Shared) {
	s.successor.Store(to)
	if to != nil && s.generation.undelivered() {
		_ = to.generation.change(to.life, s.generation.unknownLeft(), true) // delivered later if it could not be now
	}
}

// change begins a new generation, here and for the successor; see generations.change.
func (s *Shared) change(ctx context.Context, unknown time.Duration, certain bool) error {
	err := s.generation.change(ctx, unknown, certain)
	if successor := s.successor.Load(); successor != nil {
		_ = successor.generation.change(ctx, unknown, certain) // delivered later if it could not be now
	}
	return err
}

func (s *Shared) redisChanged(available bool, cause error) {
	s.observer.RedisState(available)
	if available {
		s.logger.Info("redis reachable again")
	} else {
		s.logger.Warn("redis unreachable; bypassing the shared cache", "cause", cause)
	}
}

// Close ends the work in the background and closes the connections, and the server if it is embedded.
func (s *Shared) Close() error {
	s.end()
	s.work.Wait()
	err := s.remote.client.Close()
	if s.server != nil {
		s.server.Close()
	}
	if err != nil {
		return fmt.Errorf("closing the connections to redis: %w", err)
	}
	return nil
}

// Intervals of the goroutine that watches Redis.
const (
	watchInterval = time.Second
	retryInterval = 200 * time.Millisecond
)

// watch finds out, beside the requests, that Redis is reachable again or has lost something, and delivers changes.
func (s *Shared) watch() {
	for next := retryInterval; upstream.Pause(s.life, next); {
		next = watchInterval
		if s.check(s.life) != nil {
			next = retryInterval
		}
	}
}

// check finds out whether Redis works, and repairs it if it went back to an older state.
func (s *Shared) check(ctx context.Context) error {
	var values []any
	err := s.remote.run(ctx, "check", true, func(ctx context.Context) (err error) {
		values, err = s.remote.client.MGet(ctx, s.keys.generation, s.keys.secret).Result()
		if err == nil && !s.remote.breaker.allows() {
			// A Redis that refuses writes would be unreachable again with the next command.
			err = s.remote.client.Del(ctx, s.keys.none).Err()
		}
		return err
	})
	if err != nil {
		return err
	}
	generation, _ := values[0].(string)
	secret, _ := values[1].(string)
	if err := s.agree(ctx, secret); err != nil {
		return err
	}
	if _, err = s.generation.accept(generation); err == nil || generation == "" && !s.generation.undelivered() {
		return nil // where there is none, the first read makes one
	}
	return s.generation.deliver(ctx)
}

// agree adopts the secret that all processes share, and stores one if there is none. Until then nothing is stored, as other
// processes could not find it.
func (s *Shared) agree(ctx context.Context, text string) error {
	if len(s.secret) > 0 {
		return nil
	}
	if text == "" {
		text = hex.EncodeToString([]byte(s.hasher.Load().secret))
		err := s.remote.do(ctx, "secret", func(ctx context.Context) error {
			err := s.remote.client.SetNX(ctx, s.keys.secret, text, 0).Err()
			if err == nil {
				text, err = s.remote.client.Get(ctx, s.keys.secret).Result()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) < 16 {
		return errors.New("the secret in redis is invalid: delete " + s.keys.secret)
	}
	if h := s.hasher.Load(); h.secret != string(secret) || !h.agreed {
		s.hasher.Store(newHasher(secret, true))
	}
	return nil
}

// listen receives the changes of other processes. Whenever it begins or ends, the local level may be out of date.
func (s *Shared) listen() {
	logged := false
	for s.life.Err() == nil {
		pubsub := s.remote.client.Subscribe(s.life, s.generation.channel)
		stop := context.AfterFunc(s.life, func() { _ = pubsub.Close() })
		err := s.receive(pubsub)
		stop()
		_ = pubsub.Close()
		if s.listening.Swap(false) {
			s.generation.forget()
			logged = false
		}
		if _, refused := errors.AsType[redis.Error](err); refused && !logged {
			logged = true
			s.logger.Warn("redis refuses the subscription; changes by other processes are noticed after local_ttl",
				"channel", s.generation.channel, "cause", err)
		}
		upstream.Pause(s.life, retryInterval)
	}
}

func (s *Shared) receive(pubsub *redis.PubSub) error {
	for {
		message, err := pubsub.Receive(s.life)
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *redis.Subscription:
			s.generation.forget()
			s.listening.Store(true)
		case *redis.Message:
			// A message only makes this process ask Redis again: everyone who may publish can send one, and to use a generation
			// that Redis never holds would end the cache for good.
			if s.generation.present.Load().text != m.Payload {
				s.generation.forget()
			}
		}
	}
}
