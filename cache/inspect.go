package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Item is what Redis holds for one key, as an operator may see it.
type Item struct {
	// Key is the key in Redis.
	Key string
	// Scope names who shares the answer, without any credential.
	Scope     string
	Product   string
	Component string
	// State is fresh, stale, expired or outdated.
	State string
	// Why says in words why the next read is or is not answered from it.
	Why string
	// Age is how old it is, and TTL how long it stays fresh; negative when it is
	// not any more.
	Age, TTL time.Duration
	// Bytes is the length of the answer.
	Bytes int
	// Negative says that the answer is "no such component".
	Negative bool
}

// Status is how the cache is.
type Status struct {
	// Off says that nothing is cached.
	Off bool
	// Redis says that Redis answers, and Embedded that it runs in this process.
	Redis, Embedded bool
	// Subscribed says that changes by other processes are heard of at once.
	Subscribed bool
	// Undelivered says that a change by this process has not reached Redis, so
	// that nothing in it is believed.
	Undelivered bool
	// Secret says that the secret is the one that all processes share.
	Secret bool
	// TrackerSick says that old answers are given because the tracker failed.
	TrackerSick bool
	// Generation is the present one.
	Generation string
	// LocalItems is about how many answers the process holds itself.
	LocalItems int
}

// Status tells how the cache is.
func (c *Cache) Status() Status {
	if c.off() {
		return Status{Off: true}
	}
	s := Status{
		Redis: c.remote.breaker.allows() && c.shared.Load(), Embedded: c.server != nil,
		Subscribed: c.news.up.Load(), Undelivered: c.generation.undelivered(), Secret: c.shared.Load(),
		TrackerSick: c.sick.is(c.now()), Generation: c.generation.present().text,
	}
	if c.local.on() {
		s.LocalItems = c.local.cache.EstimatedSize()
	}
	return s
}

// Probe tells whether Redis lets this process do what the cache needs: read, and
// listen for changes. Nothing in Redis is changed.
func (c *Cache) Probe(ctx context.Context) error {
	if c.off() {
		return nil
	}
	if _, err := c.remote.texts(ctx, c.keys.generation(), c.keys.writes()); err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.remote.timeout)
	defer cancel()
	listening := c.remote.client.Subscribe(ctx, c.generation.channel)
	defer listening.Close()
	err := c.remote.guarded(ctx, func(ctx context.Context) error {
		_, err := listening.Receive(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("listening for changes on the channel %s: %w", c.generation.channel, err)
	}
	return nil
}

// Lookup lists what Redis holds for a product, or for one of its components when
// component is not empty. Spelling of the product does not matter.
func (c *Cache) Lookup(ctx context.Context, product, component string) ([]Item, error) {
	if c.off() {
		return nil, nil
	}
	var members []string
	err := c.remote.do(ctx, "list", func(ctx context.Context) (err error) {
		members, err = c.remote.client.ZRange(ctx, c.keys.index(product), 0, maxIndexed).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the list of answers: %w", err)
	}
	var items []Item
	for _, member := range members {
		item, err := c.LookupKey(ctx, c.keys.prefix+"v:"+member)
		switch {
		case errors.Is(err, ErrNoItem):
		case err != nil:
			return nil, err
		case component == "" || fold(component) == fold(item.Component):
			items = append(items, item)
		}
	}
	return items, nil
}

// ErrNoItem says that Redis holds nothing under a key.
var ErrNoItem = errors.New("redis holds nothing under this key")

// LookupKey tells what Redis holds under a key. What the answers of another tracker are
// good for, the cache of that one knows.
func (c *Cache) LookupKey(ctx context.Context, key string) (Item, error) {
	if c.off() || !strings.HasPrefix(key, c.keys.prefix+"v:") {
		return Item{}, ErrNoItem
	}
	values, err := c.remote.texts(ctx, key)
	if err != nil {
		return Item{}, fmt.Errorf("reading an answer: %w", err)
	}
	value, there := values[0].(string)
	if !there {
		return Item{}, ErrNoItem
	}
	e, err := decodeEntry(value)
	if err != nil || c.keys.value(e.plain) != key {
		return Item{Key: key, State: "expired", Why: "it is not in the format of this version"}, nil
	}
	return c.describe(ctx, key, e)
}

func (c *Cache) describe(ctx context.Context, key string, e *entry) (Item, error) {
	in := reader{left: []byte(e.plain)}
	item := Item{Key: key, Scope: string(in.part()), Bytes: len(e.text), Negative: e.refusal != nil}
	in.part() // the tracker, which is in the key already
	item.Product, item.Component = string(in.part()), string(in.part())
	item.Age = e.age(c.now())
	item.TTL = e.soft - item.Age
	values, err := c.remote.texts(ctx, c.keys.generation(), c.keys.product(item.Product), c.keys.writes())
	if err != nil {
		return Item{}, fmt.Errorf("reading the generation: %w", err)
	}
	item.State, item.Why = c.explain(e, values)
	return item, nil
}

// explain says what the next read will make of an entry.
func (c *Cache) explain(e *entry, values []any) (state, why string) {
	general, _ := values[0].(string)
	lot, _ := values[1].(string)
	switch {
	case c.generation.undelivered():
		return "outdated", "a flag type change has not reached redis yet, so nothing in it is believed"
	case e.stamp != stamp{general, lot, marks(values[2])}.String():
		return "outdated", "flag types changed or are just being changed, or the product was purged, since it was stored"
	}
	switch e.state(c.now(), &c.options) {
	case fresh:
		if e.refusal != nil {
			return "fresh", "it is given as it is: the tracker has no such component"
		}
		return "fresh", "it is given as it is"
	case revalidating:
		return "stale", "it is given while a new one is fetched"
	case emergency:
		return "stale", "it is given only while the tracker is sick"
	}
	return "expired", "it is too old to be given"
}
