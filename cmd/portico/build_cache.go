package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"portico/cache"
)

// cached puts a cache before a tracker's client, unless it is off. Each tracker
// has its own, so that no answer of one is ever given for the other's.
func (b *builder) cached(name string, t *trackerRooms) error {
	if b.cfg.Cache.Scope == string(cache.ScopeOff) {
		return nil
	}
	options, err := b.cacheOptions(name, t)
	if err != nil {
		return err
	}
	use, err := b.lasting.common(options)
	if err != nil {
		return err
	}
	b.house.closing(func() { b.lasting.leave(use, b.logger) })
	options.Common = use.Common
	if t.cache, err = cache.New(t.client, options); err != nil {
		return err
	}
	b.house.closing(func() { _ = t.cache.Close() })
	return nil
}

// cacheOptions turns the configuration into that of a tracker's cache. A call for
// it may last as long as any other, waiting for its turn included.
func (b *builder) cacheOptions(name string, t *trackerRooms) (cache.Options, error) {
	settings := b.cfg.Cache
	secret, err := settings.Secret(b.lookup)
	if err != nil {
		return cache.Options{}, fmt.Errorf("cache secret: %w", err)
	}
	redis, err := redisOptions(&b.cfg, b.lookup)
	if err != nil {
		return cache.Options{}, fmt.Errorf("cache: %w", err)
	}
	return cache.Options{
		Tracker: name, Address: cachedAddress(t.settings, t.base),
		Redis: redis, Scope: cache.Scope(settings.Scope), Secret: secret, Groups: t.client.Groups,
		TTL: settings.TTL, LocalTTL: settings.LocalTTL,
		StaleWhileRevalidate: settings.StaleWhileRevalidate, StaleIfError: settings.StaleIfError,
		FillTimeout: t.settings.Timeout + b.cfg.Limits.QueueWait,
		Logger:      b.logger, Observer: cacheObserver(b.house.metrics),
	}, nil
}

// cachedAddress says which tracker answers are of, in one form for all replicas that
// are given the same address. Credentials in it say nothing about that.
func cachedAddress(settings TrackerConfig, base *url.URL) string {
	return placeOf(base) + " " + settings.Dialect
}

// placeOf is the same for all ways to write the address of one tracker.
func placeOf(base *url.URL) string {
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	at := net.JoinHostPort(strings.ToLower(base.Hostname()), port)
	return base.Scheme + "://" + at + strings.TrimRight(base.Path, "/")
}

// redisOptions turns the configuration of Redis into the cache's.
func redisOptions(cfg *Config, lookup func(string) (string, bool)) (cache.Redis, error) {
	c := &cfg.Cache.Redis
	options := cache.Redis{Addrs: c.Addrs}
	if c.URL != "" {
		parsed, err := cache.ParseRedis(c.URL)
		if err != nil {
			return options, err
		}
		options = parsed
	}
	password, err := c.Password(lookup)
	if err != nil {
		return options, fmt.Errorf("redis password: %w", err)
	}
	settings, err := c.ClientTLS()
	if err != nil {
		return options, fmt.Errorf("redis: %w", err)
	}
	options.MasterName, options.DialTimeout, options.Timeout = c.MasterName, cfg.Timeouts.Connect, cfg.Timeouts.Redis
	if c.Username != "" {
		options.Username = c.Username
	}
	if password != nil {
		options.Password = string(password)
	}
	if settings != nil {
		options.TLS = settings
	}
	return options, nil
}

// namedCache is the cache of a tracker.
type namedCache struct {
	*cache.Cache
	tracker string
}

// caches lists the caches there are, that of the primary tracker first.
func (b *builder) caches() []namedCache {
	var all []namedCache
	for _, name := range []string{b.cfg.Primary, b.cfg.Candidate} {
		if t := b.house.trackers[name]; t != nil && t.cache != nil {
			all = append(all, namedCache{t.cache, name})
		}
	}
	return all
}

// copied has a write to one tracker count for the cache of the other, which gets it by
// ways of its own: so long a caller's reads follow its own writes, so long nobody knows
// whether it is there.
func (b *builder) copied() {
	caches := b.caches()
	for i, each := range caches {
		var others []*cache.Cache
		for k, other := range caches {
			if k != i {
				others = append(others, other.Cache)
			}
		}
		each.CopiedTo(b.cfg.Switchover.Follow, others...)
	}
}

// flagTypesChanging tells every cache of a change behind its back: what passes
// through to one tracker may reach the other by ways of its own.
func flagTypesChanging(caches []namedCache) func(context.Context, func() error) error {
	return func(ctx context.Context, call func() error) error {
		for _, each := range caches {
			within := call
			call = func() error { return each.WriteAround(ctx, within) }
		}
		return call()
	}
}
