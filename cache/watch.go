package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Beats of the goroutine that watches Redis.
const (
	calmBeat  = time.Second
	alarmBeat = 200 * time.Millisecond
)

// watch keeps an eye on Redis beside the requests: it notices that Redis is back,
// delivers changes, and finds out when Redis lost or forgot something.
func (c *Cache) watch() {
	beat := calmBeat
	for pause(c.life, beat) {
		beat = calmBeat
		if err := c.check(c.life); err != nil || c.generation.undelivered() {
			beat = alarmBeat
		}
		c.news.ping(c.life)
	}
}

// check looks whether Redis works and is as it was left.
func (c *Cache) check(ctx context.Context) error {
	var values []any
	err := c.remote.probe(ctx, "check", func(ctx context.Context) (err error) {
		values, err = c.remote.client.MGet(ctx, c.keys.generation(), c.keys.secret()).Result()
		return err
	})
	if err != nil {
		return err
	}
	if err := c.agree(ctx, values[1]); err != nil {
		return err
	}
	if err := c.generation.deliver(ctx); err != nil {
		return err
	}
	if text, there := values[0].(string); there {
		if _, err := c.generation.accept(text); errors.Is(err, errRolledBack) {
			return c.generation.repair(ctx)
		}
	}
	return nil
}

// agree finds the secret that all processes share, and makes it known if none is.
// Without one nothing is stored, as nobody else could read it.
func (c *Cache) agree(ctx context.Context, value any) error {
	if len(c.options.Secret) > 0 {
		return nil
	}
	text, there := value.(string)
	if !there {
		var err error
		own := hex.EncodeToString([]byte(c.hasher.Load().secret))
		if text, err = c.remote.settle(ctx, c.keys.secret(), own, 0); err != nil {
			return err
		}
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) < 16 {
		return errors.New("what redis holds as the common secret is none")
	}
	if c.hasher.Load().secret != string(secret) {
		c.hasher.Store(newHasher(secret))
	}
	c.shared.Store(true)
	return nil
}

// subscription hears of the changes that other processes make.
type subscription struct {
	cache *Cache
	up    atomic.Bool
	// heard is when the server last said anything.
	heard atomic.Int64

	mu     sync.Mutex
	pubsub *redis.PubSub
	closed bool
}

// silence is how long a subscription may hear nothing, not even the answers to
// its pings, before it is made anew.
const silence = 5 * time.Second

func newSubscription(c *Cache) *subscription { return &subscription{cache: c} }

// run listens until the cache is closed. Whenever it begins to listen again, what
// is in the local level may be out of date.
func (s *subscription) run() {
	for {
		pubsub := s.open()
		if pubsub == nil {
			return
		}
		s.listen(pubsub)
		if s.up.Swap(false) {
			s.cache.generation.forget()
		}
		s.hangUp()
		pause(s.cache.life, alarmBeat)
	}
}

// open gives nil when the cache is closed.
func (s *subscription) open() *redis.PubSub {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.pubsub = s.cache.remote.client.Subscribe(s.cache.life, s.cache.generation.channel)
	s.heard.Store(time.Now().UnixNano())
	return s.pubsub
}

// listen ends with the connection.
func (s *subscription) listen(pubsub *redis.PubSub) {
	for {
		message, err := pubsub.Receive(s.cache.life)
		if err != nil {
			return
		}
		s.heard.Store(time.Now().UnixNano())
		switch m := message.(type) {
		case *redis.Subscription:
			s.cache.generation.forget()
			s.up.Store(true)
		case *redis.Message:
			s.cache.generation.heard(m.Payload)
		}
	}
}

// ping asks for a sign of life, and gives up a connection that shows none.
func (s *subscription) ping(ctx context.Context) {
	if time.Since(time.Unix(0, s.heard.Load())) > silence {
		s.hangUp()
		return
	}
	s.mu.Lock()
	pubsub := s.pubsub
	s.mu.Unlock()
	if pubsub != nil && s.up.Load() {
		_ = pubsub.Ping(ctx)
	}
}

// hangUp makes listen end.
func (s *subscription) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pubsub != nil {
		_ = s.pubsub.Close()
		s.pubsub = nil
	}
}

func (s *subscription) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.hangUp()
}
