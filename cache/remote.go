package cache

import (
	"context"
	"errors"
	"fmt"
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
	// panicked makes an error of a panic.
	panicked func(cause any) error
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
	err := r.guarded(limited, command)
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

// guarded turns a panic into an error: the client reads what a server sends, and some
// answers are more than it is ready for.
func (r *remote) guarded(ctx context.Context, command func(context.Context) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = r.panicked(cause)
		}
	}()
	return command(ctx)
}

// brief bounds several commands that one read waits for, however many they are.
func (r *remote) brief(ctx context.Context, commands int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.timeout*time.Duration(commands)/2)
}

// texts reads several keys in one command; what is missing is nil.
func (r *remote) texts(ctx context.Context, keys ...string) ([]any, error) {
	var values []any
	err := r.do(ctx, "read", func(ctx context.Context) (err error) {
		values, err = r.values(ctx, keys...)
		return err
	})
	return values, err
}

// values is the command of texts. The client's own MGet takes whatever comes for a list,
// and the number in ":9000000000000" for its length.
func (r *remote) values(ctx context.Context, keys ...string) ([]any, error) {
	command := []any{"mget"}
	for _, key := range keys {
		command = append(command, key)
	}
	values, err := r.client.Do(ctx, command...).Slice()
	if (err == nil || errors.Is(err, redis.Nil)) && len(values) != len(keys) {
		return nil, fmt.Errorf("redis gave %d values for %d keys", len(values), len(keys))
	}
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
