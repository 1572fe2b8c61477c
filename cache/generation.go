package cache

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Why the generation in Redis is not used.
var (
	// errUndelivered: a change of this process has not reached Redis.
	errUndelivered = errors.New("a flag type change could not be delivered to redis")
	// errRolledBack: Redis has no generation, or one from before one that is known.
	errRolledBack = errors.New("redis lost its generation or went back to an older one")
)

// token names one generation of the flag types. Redis holds its text: a number that is greater than in all tokens before it,
// a dash, and a random part. The number shows a Redis that went back in time (restored from a snapshot, or failed over to a
// replica that lagged); the random part makes any two changes different.
type token struct {
	text string
	at   int64
	// sequence differs between any two present generations of one process.
	sequence uint64
}

func parseToken(text string) (token, bool) {
	number, random, _ := strings.Cut(text, "-")
	at, err := strconv.ParseInt(number, 10, 64)
	return token{text: text, at: at}, err == nil && at >= 0 && random != ""
}

// generations holds the present generation of a tracker. Its methods are safe for concurrent use.
//
// The present generation is a pointer, so that the local level compares one word. Each change replaces it at once, whether or
// not Redis can be told. While Redis has not been told of a change of this process, nothing in Redis is used.
type generations struct {
	remote  *remote
	keys    keys
	channel string
	now     func() time.Time

	// present is the generation that this process uses.
	present atomic.Pointer[token]
	// sending is held while a change is on its way to Redis.
	sending sync.Mutex

	mu                 sync.Mutex // guards what follows and writing present
	sequence           uint64
	changes, delivered uint64
	// certain says that a change that is not delivered took place for certain.
	certain bool
	// unknownUntil is until when the tracker may still carry out a write through this process.
	unknownUntil time.Time
}

// set makes t the present generation; the caller holds mu.
func (g *generations) set(t token) *token {
	g.sequence++
	t.sequence = g.sequence
	g.present.Store(&t)
	return &t
}

// forget ends the use of everything in the local level, without a change.
func (g *generations) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(*g.present.Load())
}

// unknownLeft is how long the tracker may still carry out a write through this process; it is not positive if it may not.
func (g *generations) unknownLeft() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unknownUntil.Sub(g.now())
}

// undelivered tells whether Redis has not been told of a change of this process.
func (g *generations) undelivered() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.delivered < g.changes
}

// change begins a new generation and tells Redis. The tracker may still carry the change out for the time unknown; certain
// says that it took place. After an error deliver has to be called until it succeeds.
func (g *generations) change(ctx context.Context, unknown time.Duration, certain bool) error {
	g.mu.Lock()
	if end := g.now().Add(unknown); unknown > 0 && end.After(g.unknownUntil) {
		g.unknownUntil = end
	}
	g.changes++
	g.certain = g.certain || certain
	g.set(*g.present.Load())
	g.mu.Unlock()
	g.sending.Lock()
	defer g.sending.Unlock()
	return g.push(ctx)
}

// deliver has Redis hold a generation that comes after every change of this process and every generation that it knows. It
// fails while that is under way already: reads would wait for Redis one after the other otherwise.
func (g *generations) deliver(ctx context.Context) error {
	if !g.sending.TryLock() {
		return errUndelivered
	}
	defer g.sending.Unlock()
	return g.push(ctx)
}

// changeScript replaces the generation KEYS[1] and returns the present one.
//
// The new number is at least ARGV[1] and greater than the former one; ARGV[2] is the random part. A generation whose number is
// at least ARGV[3] stays. KEYS[2] gets the new generation and the former ones whose entries may still be right; if ARGV[4] is
// 1, the change took place for certain and there are none. KEYS[3] exists for ARGV[5] more milliseconds: for that time the
// tracker may still carry the change out.
const changeScript = `
local old = redis.call('GET', KEYS[1]) or ''
local at = tonumber(string.match(old, '^(%d+)-') or '')
if at and at >= tonumber(ARGV[3]) then return old end
local new = string.format('%.0f-%s', math.max(tonumber(ARGV[1]), (at or 0) + 1), ARGV[2])
redis.call('SET', KEYS[1], new)
local previous = redis.call('GET', KEYS[2]) or ''
if ARGV[4] == '1' or old == '' then
	redis.call('DEL', KEYS[2])
else
	if string.sub(previous, 1, #old) ~= old then previous = old end
	redis.call('SET', KEYS[2], string.sub(new .. ' ' .. previous, 1, 1000))
end
local left = tonumber(ARGV[5])
if left > 0 and redis.call('PTTL', KEYS[3]) < left then redis.call('SET', KEYS[3], '1', 'PX', left) end
return new`

// push does what deliver says; the caller holds sending.
func (g *generations) push(ctx context.Context) error {
	g.mu.Lock()
	known, changes, certain := g.present.Load().at, g.changes, g.certain
	below, left := known, max(0, g.unknownUntil.Sub(g.now()).Milliseconds())
	if g.delivered < changes {
		below = math.MaxInt64
	} else {
		certain = true // what Redis lost is not known
	}
	g.mu.Unlock()
	at, random, text := max(known+1, g.now().UnixMilli()), rand.Text()[:16], ""
	err := g.remote.do(ctx, "change", func(ctx context.Context) (err error) {
		text, err = g.remote.client.Eval(ctx, changeScript, []string{g.keys.generation, g.keys.previousGenerations, g.keys.unknown},
			at, random, below, certain, left).Text()
		return err
	})
	if redis.IsOOMError(err) { // a Redis without memory still deletes, and without a generation no entry is used
		text = strconv.FormatInt(at, 10) + "-" + random
		err = g.remote.do(ctx, "change", func(ctx context.Context) error {
			return g.remote.client.Del(ctx, g.keys.generation).Err()
		})
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}
	g.publish(ctx, text)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delivered = changes
	g.certain = g.certain && g.changes > changes
	if t, ok := parseToken(text); ok && t.at >= g.present.Load().at {
		g.set(t)
	}
	return nil
}

// publish tells the other processes at once. Those that do not get the message find out when their local level asks Redis again, so a
// failure has no consequence.
func (g *generations) publish(ctx context.Context, text string) {
	_ = g.remote.do(ctx, "publish", func(ctx context.Context) error {
		return g.remote.client.Publish(ctx, g.channel, text).Err()
	})
}

// accept judges the generation that Redis holds and gives the present one. The error is errUndelivered or errRolledBack if
// Redis may not be used.
func (g *generations) accept(text string) (*token, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	present := g.present.Load()
	seen, ok := parseToken(text)
	switch {
	case g.delivered < g.changes:
		return present, errUndelivered
	case ok && present.text == text:
		return present, nil
	case !ok || seen.at <= present.at:
		return present, errRolledBack
	}
	return g.set(seen), nil
}
