package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// errAway says that Redis is not used for now.
	errAway = errors.New("redis is unreachable")
	// errNoPrimary stands for the empty response of a Sentinel. No command of the cache has one.
	errNoPrimary = errors.New("the Sentinels know no primary by this name: check cache.redis.master_name")
)

// remote is the shared level, with a short deadline on every command and a breaker before it.
type remote struct {
	client  redis.UniversalClient
	timeout time.Duration
	breaker breaker
	observe func(operation string, took time.Duration, err error)
}

// do runs one command, or one pipeline of them.
func (r *remote) do(ctx context.Context, operation string, command func(context.Context) error) error {
	if !r.breaker.allows() {
		return errAway
	}
	return r.run(ctx, operation, false, command)
}

// run is do, as a probe also while the breaker is open.
func (r *remote) run(ctx context.Context, operation string, probe bool, command func(context.Context) error) error {
	start := time.Now()
	end, bounded := ctx.Deadline()
	hurried := bounded && end.Sub(start) < r.timeout*9/10
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err := command(limited)
	if errors.Is(err, redis.Nil) {
		err = errNoPrimary
	}
	r.observe(operation, time.Since(start), err)
	switch {
	case err == nil || redis.IsOOMError(err) || redis.IsTryAgainError(err):
		// Redis works; it has no memory left, or is moving keys to another node.
		r.breaker.note(nil, probe)
	case ctx.Err() == nil || !hurried && errors.Is(ctx.Err(), context.DeadlineExceeded):
		// A caller that left Redis less than its timeout says nothing about Redis.
		r.breaker.note(err, probe)
	}
	return err
}

// brief bounds the commands that one read waits for, however many they are. A client that hangs up does not end them.
func (r *remote) brief(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// texts reads several keys in one command; a missing one is empty.
func (r *remote) texts(ctx context.Context, operation string, keys ...string) ([]string, error) {
	texts := make([]string, len(keys))
	err := r.do(ctx, operation, func(ctx context.Context) error {
		values, err := r.client.MGet(ctx, keys...).Result()
		for i, value := range values {
			texts[i], _ = value.(string)
		}
		return err
	})
	return texts, err
}

// Each failure weighs as much as two successes: three in a row open the breaker, and so does a Redis that loses a half.
const (
	failureWeight = 2
	breakerLimit  = 3 * failureWeight
)

// breaker keeps reads away from a Redis that does not respond. Only a probe closes it, so no read ever waits to find out.
//
// It is not the circuit breaker of upstream/transport, which tries with real calls. A wrong guess costs little here: a read
// that does not use Redis asks the tracker.
type breaker struct {
	mu    sync.Mutex
	score int
	open  bool
	// changed gets why Redis counts as unreachable.
	changed func(available bool, cause error)
}

func (b *breaker) allows() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.open
}

// note counts the outcome of a command. A late success of one from before the breaker opened does not close it.
func (b *breaker) note(err error, probe bool) {
	b.mu.Lock()
	before := b.open
	switch {
	case err != nil:
		b.score += failureWeight
		b.open = before || b.score >= breakerLimit
	case before && probe:
		b.score, b.open = 0, false
	case !before:
		b.score = max(0, b.score-1)
	}
	after := b.open
	b.mu.Unlock()
	if before != after {
		b.changed(!after, err)
	}
}
