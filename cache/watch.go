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
func (k *Common) watch() {
	beat := calmBeat
	for pause(k.life, beat) {
		beat = k.beat()
	}
}

// beat is one look, and says when the next one is due.
func (k *Common) beat() (next time.Duration) {
	defer func() {
		if cause := recover(); cause != nil {
			_, next = k.panicked(cause), alarmBeat
		}
	}()
	err := k.check(k.life)
	k.news.ping(k.life)
	if err != nil || k.generation.undelivered() {
		return alarmBeat
	}
	return calmBeat
}

// check looks whether Redis works and is as it was left.
func (k *Common) check(ctx context.Context) error {
	var values []any
	err := k.remote.probe(ctx, "check", func(ctx context.Context) (err error) {
		if values, err = k.remote.values(ctx, k.keys.generation(), k.keys.secret()); err != nil || k.remote.breaker.allows() {
			return err
		}
		// A Redis that lets nobody write would be away again with the next command.
		return k.remote.client.Del(ctx, k.keys.nothing()).Err()
	})
	if err != nil {
		return err
	}
	if err := k.agree(ctx, values[1]); err != nil {
		return err
	}
	if err := k.generation.deliver(ctx); err != nil {
		return err
	}
	if text, there := values[0].(string); there {
		if _, err := k.generation.accept(text); errors.Is(err, errRolledBack) {
			return k.generation.repair(ctx)
		}
	}
	return nil
}

// agree finds the secret that all processes share, and makes it known if none is.
// Without one nothing is stored, as nobody else could read it.
func (k *Common) agree(ctx context.Context, value any) error {
	if !k.wanted.Load() {
		return nil
	}
	text, there := value.(string)
	if !there {
		var err error
		own := hex.EncodeToString([]byte(k.hasher.Load().secret))
		if text, err = k.remote.settle(ctx, k.keys.secret(), own, 0); err != nil {
			return err
		}
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) < 16 {
		return errors.New("what redis holds as the common secret is none")
	}
	if k.hasher.Load().secret != string(secret) {
		k.hasher.Store(newHasher(secret))
	}
	k.shared.Store(true)
	return nil
}

// subscription hears of the changes that other processes make.
type subscription struct {
	common *Common
	up     atomic.Bool
	// heard is when the server last said anything.
	heard atomic.Int64
	// refused says that it was logged that Redis refuses; run alone uses it.
	refused bool

	mu     sync.Mutex
	pubsub *redis.PubSub
	closed bool
}

// silence is how long a subscription may hear nothing, not even the answers to
// its pings, before it is made anew.
const silence = 5 * time.Second

func newSubscription(k *Common) *subscription { return &subscription{common: k} }

// run listens until it is closed. Whenever it begins to listen again, what
// is in the local level may be out of date.
func (s *subscription) run() {
	for {
		pubsub := s.open()
		if pubsub == nil {
			return
		}
		err := s.listen(pubsub)
		if s.up.Swap(false) {
			s.common.generation.forget()
		}
		s.complain(err)
		s.hangUp()
		pause(s.common.life, alarmBeat)
	}
}

// open gives nil when it is closed.
func (s *subscription) open() *redis.PubSub {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.pubsub = s.common.remote.client.Subscribe(s.common.life, s.common.generation.channel)
	s.heard.Store(time.Now().UnixNano())
	return s.pubsub
}

// complain logs once that Redis refuses to let this process listen, such as to an ACL
// user without a right to the channel. That Redis is away is said elsewhere.
func (s *subscription) complain(err error) {
	said, refused := errors.AsType[redis.Error](err)
	if told := s.common.newest.Load(); refused && told != nil && !s.refused {
		told.Logger.Warn("redis lets nobody listen here for changes by other processes; they are noticed after local_ttl",
			"channel", s.common.generation.channel, "cause", said)
	}
	s.refused = s.refused || refused
}

// listen ends with the connection, or when the client panics over what it is told.
func (s *subscription) listen(pubsub *redis.PubSub) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = s.common.panicked(cause)
		}
	}()
	for {
		message, err := pubsub.Receive(s.common.life)
		if err != nil {
			return err
		}
		s.heard.Store(time.Now().UnixNano())
		switch m := message.(type) {
		case *redis.Subscription:
			s.common.generation.forget()
			s.up.Store(true)
			s.refused = false
		case *redis.Message:
			s.common.generation.heard(m.Payload)
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
