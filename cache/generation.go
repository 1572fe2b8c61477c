package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Why Redis's generation is not believed.
var (
	// errUndelivered: a change of this process has not reached Redis.
	errUndelivered = errors.New("a flag type change could not be delivered to redis")
	// errRolledBack: Redis holds a generation from before one that is known.
	errRolledBack = errors.New("redis went back to an older generation")
)

// generations decides which answers may be believed. Answers carry the generation
// under which they were asked for; only those of the present one count.
//
// The present generation of this process is a pointer, so that the local level
// compares one word. Each change makes a new one at once, whether or not Redis
// hears of it. While Redis has not heard of a change of this process, nothing in
// Redis is believed.
type generations struct {
	remote   *remote
	key      string
	doubtKey string
	channel  string
	now      func() time.Time

	current atomic.Pointer[token]
	// sending is held while a change is on its way to Redis.
	sending sync.Mutex

	mu                 sync.Mutex // guards what follows and writing current
	turns              uint64
	changes, delivered uint64
	// doubt is until when a write through this process may still be carried out.
	doubt time.Time
}

func newGenerations(r *remote, k keys, db int, now func() time.Time) *generations {
	g := &generations{remote: r, key: k.generation(), doubtKey: k.doubt(), channel: k.channel(db), now: now}
	g.current.Store(&token{})
	return g
}

// present is the generation that this process believes in.
func (g *generations) present() *token { return g.current.Load() }

// set makes t the present generation; the caller holds mu.
func (g *generations) set(t token) *token {
	g.turns++
	t.turn = g.turns
	g.current.Store(&t)
	return &t
}

// forget makes everything in the local level unbelievable, without a change.
func (g *generations) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(*g.present())
}

// raise begins a new generation because of a change by this process. The tracker may
// still carry it out for as long as doubt lasts; who sees the new generation knows.
func (g *generations) raise(doubt time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if end := g.now().Add(doubt); doubt > 0 && end.After(g.doubt) {
		g.doubt = end
	}
	g.changes++
	g.set(newToken(g.present().at, g.now()))
}

// doubtful is how long a write through this process may still be carried out; it is
// not positive when none may.
func (g *generations) doubtful() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.doubt.Sub(g.now())
}

// undelivered tells whether Redis has not heard of a change of this process.
func (g *generations) undelivered() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.delivered < g.changes
}

// change begins a new generation and tells Redis. When that fails, deliver has
// to be called again until it succeeds.
func (g *generations) change(ctx context.Context, doubt time.Duration) error {
	g.raise(doubt)
	return g.deliver(ctx)
}

// deliver tells Redis of the changes that it has not heard of.
func (g *generations) deliver(ctx context.Context) error {
	g.sending.Lock()
	defer g.sending.Unlock()
	return g.push(ctx)
}

// tryDeliver is deliver for reads. They do not queue behind one that is under way,
// or each would wait for Redis in turn.
func (g *generations) tryDeliver(ctx context.Context) error {
	if !g.undelivered() {
		return nil
	}
	if !g.sending.TryLock() {
		return errUndelivered
	}
	defer g.sending.Unlock()
	return g.push(ctx)
}

// push does what deliver says; the caller holds sending.
func (g *generations) push(ctx context.Context) error {
	// Whoever wrote without having seen a token from a faster clock has to
	// come after it; once is enough unless others keep doing the same.
	for range 3 {
		upTo, fresh, needed := g.prepare()
		if !needed {
			return nil
		}
		before, err := g.send(ctx, fresh.text)
		if err != nil {
			return errors.Join(errUndelivered, err)
		}
		if g.confirm(upTo, fresh, before) {
			return nil
		}
	}
	return errUndelivered
}

func (g *generations) prepare() (upTo uint64, fresh *token, needed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.delivered == g.changes {
		return 0, nil, false
	}
	return g.changes, g.set(newToken(g.present().at, g.now())), true
}

// warn tells all processes of a write that may still be carried out.
func (g *generations) warn(ctx context.Context) error {
	left := g.doubtful()
	if left < time.Millisecond {
		return nil
	}
	err := g.remote.do(ctx, "doubt", func(ctx context.Context) error {
		// Another process may know of a write that lasts longer.
		if known, err := g.remote.client.PTTL(ctx, g.doubtKey).Result(); err == nil && known >= left {
			return nil
		}
		return g.remote.client.Set(ctx, g.doubtKey, "1", left).Err()
	})
	if redis.IsOOMError(err) {
		return nil // what has no room for that has none for answers
	}
	return err
}

// send replaces the generation in Redis and gives the one from before. GETSET is
// understood by every version. A Redis without memory still deletes, and without
// a generation nobody believes anything.
func (g *generations) send(ctx context.Context, text string) (before string, err error) {
	if err := g.warn(ctx); err != nil {
		return "", err
	}
	err = g.remote.do(ctx, "change", func(ctx context.Context) (err error) {
		before, err = g.remote.client.GetSet(ctx, g.key, text).Result()
		return err
	})
	if redis.IsOOMError(err) {
		err = g.remote.do(ctx, "change", func(ctx context.Context) error {
			return g.remote.client.Del(ctx, g.key).Err()
		})
	}
	if err == nil {
		g.publish(ctx, text)
	}
	return before, err
}

// publish tells the other processes at once. Those that do not hear it find out
// when their local level asks Redis again, so a failure is of no consequence.
func (g *generations) publish(ctx context.Context, text string) {
	_ = g.remote.do(ctx, "publish", func(ctx context.Context) error {
		return g.remote.client.Publish(ctx, g.channel, text).Err()
	})
}

// confirm notes that Redis holds fresh now. It tells whether that token comes
// after the one that it replaced; if not, another one has to follow.
func (g *generations) confirm(upTo uint64, fresh *token, before string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, ok := parseToken(before)
	if ok && old.at >= fresh.at {
		if old.at > g.present().at {
			g.set(old)
		}
		return false
	}
	g.delivered = max(g.delivered, upTo)
	return true
}

// accept judges the generation that Redis showed. It gives the present one when
// Redis may be believed.
func (g *generations) accept(text string) (*token, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	present := g.present()
	if g.delivered < g.changes {
		return nil, errUndelivered
	}
	if present.text == text {
		return present, nil
	}
	seen, ok := parseToken(text)
	if !ok || seen.at <= present.at {
		return nil, errRolledBack
	}
	return g.set(seen), nil
}

// heard takes note that somebody published a change. It only makes this process
// look again before it believes what it holds: what counts is the generation that
// Redis shows then. A message may come from anybody who may publish, and to believe
// a token that never comes up in Redis would end the cache for good.
func (g *generations) heard(text string) {
	if g.present().text != text {
		g.forget()
	}
}

// begin makes the first generation in a Redis that has none.
func (g *generations) begin(ctx context.Context) (*token, error) {
	if g.undelivered() {
		return nil, errUndelivered
	}
	fresh := newToken(g.present().at, g.now())
	text, err := g.remote.settle(ctx, g.key, fresh.text, 0)
	if err != nil {
		return nil, err
	}
	return g.accept(text)
}

// repair follows errRolledBack: it looks again, as the answer may just have been
// overtaken by a newer one, and moves Redis on to a generation that comes after
// all that are known.
func (g *generations) repair(ctx context.Context) error {
	if !g.sending.TryLock() {
		return errRolledBack
	}
	defer g.sending.Unlock()
	var text string
	err := g.remote.do(ctx, "read", func(ctx context.Context) (err error) {
		text, err = g.remote.client.Get(ctx, g.key).Result()
		return err
	})
	if err != nil || text == "" {
		return err
	}
	if _, err = g.accept(text); errors.Is(err, errRolledBack) {
		g.mu.Lock()
		g.changes++
		g.mu.Unlock()
		return g.push(ctx)
	}
	return err
}
