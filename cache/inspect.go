package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Item is what Redis holds for one key, as an operator may see it.
type Item struct {
	// Tracker is the tracker that responded.
	Tracker string `json:"tracker"`
	// Key is the key in Redis.
	Key string `json:"key"`
	// Scope names the callers who share the entry, without any credential.
	Scope     string `json:"scope"`
	Product   string `json:"product"`
	Component string `json:"component,omitempty"`
	// State is fresh, stale, expired or outdated.
	State string `json:"state"`
	// Why says in words why the next read does or does not use it.
	Why string `json:"why"`
	// AgeSeconds is how old it is, and TTLSeconds how long it stays fresh; negative if it is stale.
	AgeSeconds float64 `json:"age_seconds"`
	TTLSeconds float64 `json:"ttl_seconds"`
	// Bytes is the length of the response.
	Bytes int `json:"bytes"`
}

// Status is the state of a cache.
type Status struct {
	// Redis says that Redis is in use, and Embedded that it runs in this process.
	Redis    bool `json:"redis"`
	Embedded bool `json:"embedded"`
	// Subscribed says that changes by other processes are noticed at once.
	Subscribed bool `json:"subscribed"`
	// Undelivered says that a change by this process has not reached Redis, so that nothing in it is used.
	Undelivered bool `json:"undelivered"`
	// TrackerSick says that old entries are used because the tracker failed.
	TrackerSick bool `json:"tracker_sick"`
	// LocalItems is about how many entries the process holds itself.
	LocalItems int `json:"local_items"`
}

// Status gives the state of the cache.
func (c *Cache) Status() Status {
	return Status{
		Redis: c.remote.breaker.allows() && c.shared.hasher.Load().agreed, Embedded: c.shared.server != nil,
		Subscribed: c.shared.listening.Load(), Undelivered: c.generation.undelivered(),
		TrackerSick: c.failing(c.now()), LocalItems: c.local.EstimatedSize(),
	}
}

// Probe tells whether Redis lets this process do what the cache needs: read, and listen for changes. It changes nothing.
func (c *Cache) Probe(ctx context.Context) error {
	if _, err := c.remote.texts(ctx, "read", c.keys.generation, c.keys.pending); err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.remote.timeout)
	defer cancel()
	pubsub := c.remote.client.Subscribe(ctx, c.generation.channel)
	defer pubsub.Close()
	if _, err := pubsub.Receive(ctx); err != nil {
		return fmt.Errorf("listening for changes on the channel %s: %w", c.generation.channel, err)
	}
	return nil
}

// Lookup lists what Redis holds for a product, or for one of its components if component is not empty. Spelling of the names
// does not matter.
func (c *Cache) Lookup(ctx context.Context, product, component string) ([]Item, error) {
	var names []string
	err := c.remote.do(ctx, "list", func(ctx context.Context) (err error) {
		names, err = c.remote.client.ZRange(ctx, c.keys.index(product), 0, maxIndexed).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the list of entries: %w", err)
	}
	var items []Item
	for _, name := range names {
		item, err := c.LookupKey(ctx, name)
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

// ErrNoItem says that Redis holds no entry of this tracker under a key.
var ErrNoItem = errors.New("redis holds nothing under this key")

// LookupKey gives what Redis holds under a key.
func (c *Cache) LookupKey(ctx context.Context, name string) (Item, error) {
	if !strings.HasPrefix(name, c.keys.prefix+valuePart) {
		return Item{}, ErrNoItem
	}
	texts, err := c.remote.texts(ctx, "read", name)
	switch {
	case err != nil:
		return Item{}, fmt.Errorf("reading an entry: %w", err)
	case texts[0] == "":
		return Item{}, ErrNoItem
	}
	e, err := decodeEntry(texts[0])
	if err != nil {
		return Item{Tracker: c.options.Tracker, Key: name, State: "expired", Why: "not in the format of this version"}, nil
	}
	item := Item{
		Tracker: c.options.Tracker, Key: name, Scope: e.Scope, Product: e.Product, Component: e.Component, Bytes: len(e.text),
		AgeSeconds: e.age(c.now()).Seconds(), TTLSeconds: (e.Soft - e.age(c.now())).Seconds(),
	}
	found, err := c.read(ctx, name, e.Product)
	switch {
	case errors.Is(err, errUndelivered):
		item.State, item.Why = "outdated", "a flag type change has not reached Redis yet, so nothing in it is used"
	case err != nil:
		return Item{}, fmt.Errorf("reading the generation: %w", err)
	default:
		item.State, item.Why = c.explain(e, &found)
	}
	return item, nil
}

// explain says what the next read does with an entry.
func (c *Cache) explain(e *entry, found *contents) (state, why string) {
	usable, reason := c.usable(e, found)
	switch {
	case reason == detailGeneration:
		return "outdated", "flag types changed or are being changed, or the product was purged, since it was stored"
	case usable == nil:
		return "expired", "too old"
	case usable != e:
		return "stale", "used only while the tracker fails: a write may have changed it"
	}
	switch e.state(c.now(), &c.options) {
	case fresh:
		return "fresh", "used as it is"
	case staleWhileRevalidate:
		return "stale", "used while a new one is fetched"
	}
	return "stale", "used only while the tracker fails"
}

// Caches are the caches of several trackers, shown to operators as one.
type Caches []*Cache

// Lookup lists what Redis holds for a product, or for one of its components, as Cache.Lookup does.
func (all Caches) Lookup(ctx context.Context, product, component string) ([]Item, error) {
	var items []Item
	for _, c := range all {
		found, err := c.Lookup(ctx, product, component)
		if err != nil {
			return items, err
		}
		items = append(items, found...)
	}
	return items, nil
}

// LookupKey lists what Redis holds under a key: one item or none.
func (all Caches) LookupKey(ctx context.Context, key string) ([]Item, error) {
	for _, c := range all {
		item, err := c.LookupKey(ctx, key)
		if err == nil {
			return []Item{item}, nil
		}
		if !errors.Is(err, ErrNoItem) {
			return nil, err
		}
	}
	return nil, nil
}

// Purge removes the items of a product, or all items when product is empty.
func (all Caches) Purge(ctx context.Context, product string) error {
	var failed error
	for _, c := range all {
		failed = errors.Join(failed, c.Purge(ctx, product))
	}
	return failed
}
