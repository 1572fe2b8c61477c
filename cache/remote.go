package cache

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// errAway says that Redis is not asked for now.
var errAway = errors.New("redis is away")

// remote is the shared level, with a short deadline on every command and a
// breaker before it.
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

// probe runs a command even while the breaker is open.
func (r *remote) probe(ctx context.Context, operation string, command func(context.Context) error) error {
	return r.run(ctx, operation, true, command)
}

func (r *remote) run(ctx context.Context, operation string, probe bool, command func(context.Context) error) error {
	start := time.Now()
	end, bounded := ctx.Deadline()
	hurried := bounded && end.Sub(start) < r.timeout*9/10
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err := command(limited)
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	r.observe(operation, time.Since(start), err)
	switch {
	case err == nil || redis.IsOOMError(err) || redis.IsTryAgainError(err):
		// Redis answers; it has no room, or is moving keys to another node.
		r.breaker.succeeded(probe)
	case ctx.Err() == nil || !hurried && errors.Is(ctx.Err(), context.DeadlineExceeded):
		// Who left Redis less time than it should have blames nobody.
		r.breaker.failed(err)
	}
	return err
}

// brief bounds several commands that one read waits for, however many they are.
func (r *remote) brief(ctx context.Context, commands int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.timeout*time.Duration(commands)/2)
}

// texts reads several keys in one command; what is missing is nil.
func (r *remote) texts(ctx context.Context, keys ...string) ([]any, error) {
	var values []any
	err := r.do(ctx, "read", func(ctx context.Context) (err error) {
		values, err = r.client.MGet(ctx, keys...).Result()
		return err
	})
	return values, err
}

// settle writes a key unless it exists, and gives what is there then.
func (r *remote) settle(ctx context.Context, key, text string, keep time.Duration) (string, error) {
	present := text
	err := r.do(ctx, "settle", func(ctx context.Context) error {
		made, err := r.client.SetNX(ctx, key, text, keep).Result()
		if err != nil || made {
			return err
		}
		present, err = r.client.Get(ctx, key).Result()
		return err
	})
	return present, err
}
