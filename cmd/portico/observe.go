package main

import (
	"context"
	"errors"

	"portico/cache"
	"portico/proxy/admin"
	"portico/upstream/transport"
)

// trackerObserver hands what transport measures to the metrics.
type trackerObserver struct {
	metrics *admin.Metrics
	tracker string
}

// Observe implements transport.Observer.
func (o trackerObserver) Observe(s transport.Sample) {
	outcome := string(s.Reason)
	if outcome == "" {
		outcome = "ok"
	}
	o.metrics.Call(o.tracker, admin.Call{
		Operation: s.Operation, Class: s.Class.String(), Outcome: outcome, Status: s.Status, Unknown: s.Unknown,
		Tries: s.Tries, Took: s.Total, BytesIn: s.BytesIn, BytesOut: s.BytesOut,
	})
}

// cacheObserver hands what the cache tells to the metrics.
func cacheObserver(metrics *admin.Metrics) cache.Observer {
	return cache.Observer{
		Read: metrics.CacheRead, Fill: metrics.CacheFill, Redis: metrics.Redis,
		RedisState: metrics.RedisState, Change: metrics.CacheChange,
	}
}

// cacheDesk shows the caches of all trackers to operators.
func cacheDesk(held []namedCache) admin.CacheDesk {
	return admin.CacheDesk{
		Product: func(ctx context.Context, product, component string) ([]admin.CacheItem, error) {
			shown := []admin.CacheItem{}
			for _, each := range held {
				items, err := each.Lookup(ctx, product, component)
				if err != nil {
					return shown, err
				}
				for _, item := range items {
					shown = append(shown, each.show(item, len(held) > 1))
				}
			}
			return shown, nil
		},
		Key: func(ctx context.Context, key string) (admin.CacheItem, bool, error) {
			for _, each := range held {
				item, err := each.LookupKey(ctx, key)
				if !errors.Is(err, cache.ErrNoItem) {
					return each.show(item, len(held) > 1), err == nil, err
				}
			}
			return admin.CacheItem{}, false, nil
		},
		Purge: func(ctx context.Context, product string) error {
			var failed error
			for _, each := range held {
				failed = errors.Join(failed, each.Purge(ctx, product))
			}
			return failed
		},
	}
}

func (c namedCache) show(item cache.Item, named bool) admin.CacheItem {
	shown := admin.CacheItem{
		Key: item.Key, Scope: item.Scope, Product: item.Product, Component: item.Component, State: item.State, Why: item.Why,
		AgeSeconds: item.Age.Seconds(), TTLSeconds: item.TTL.Seconds(), Bytes: item.Bytes,
	}
	if named {
		shown.Tracker = c.tracker
	}
	return shown
}
