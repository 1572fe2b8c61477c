package main

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

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

// cacheDesk shows a cache to operators.
func cacheDesk(held *cache.Cache) admin.CacheDesk {
	return admin.CacheDesk{
		Product: func(ctx context.Context, product, component string) ([]admin.CacheItem, error) {
			items, err := held.Lookup(ctx, product, component)
			shown := make([]admin.CacheItem, 0, len(items))
			for _, item := range items {
				shown = append(shown, showItem(item))
			}
			return shown, err
		},
		Key: func(ctx context.Context, key string) (admin.CacheItem, bool, error) {
			item, err := held.LookupKey(ctx, key)
			if errors.Is(err, cache.ErrNoItem) {
				return admin.CacheItem{}, false, nil
			}
			return showItem(item), err == nil, err
		},
		Purge: held.Purge,
	}
}

func showItem(item cache.Item) admin.CacheItem {
	return admin.CacheItem{
		Key: item.Key, Scope: item.Scope, Product: item.Product, Component: item.Component, State: item.State, Why: item.Why,
		AgeSeconds: item.Age.Seconds(), TTLSeconds: item.TTL.Seconds(), Bytes: item.Bytes,
	}
}

// status is what /status shows.
type status struct {
	Version  string                   `json:"version"`
	Started  time.Time                `json:"started"`
	Primary  string                   `json:"primary"`
	Trackers map[string]trackerStatus `json:"trackers"`
	Cache    *cacheStatus             `json:"cache,omitempty"`
}

type trackerStatus struct {
	URL            string          `json:"url"`
	Dialect        string          `json:"dialect"`
	TrackerVersion string          `json:"tracker_version,omitempty"`
	DialectPinned  bool            `json:"dialect_pinned"`
	Breakers       []breakerStatus `json:"breakers"`
	Slots          int             `json:"slots"`
	InUse          int             `json:"in_use"`
}

type breakerStatus struct {
	Breaker    string          `json:"breaker"`
	State      string          `json:"state"`
	Since      time.Time       `json:"since"`
	LastReason string          `json:"last_reason,omitempty"`
	Successes  int             `json:"successes"`
	Failures   int             `json:"failures"`
	Opens      uint64          `json:"opens"`
	Rejected   uint64          `json:"rejected"`
	History    []breakerChange `json:"history"`
}

type breakerChange struct {
	At     time.Time `json:"at"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Reason string    `json:"reason,omitempty"`
}

func showBreaker(s transport.Status) breakerStatus {
	shown := breakerStatus{
		Breaker: s.Breaker, State: string(s.State), Since: s.Since, LastReason: string(s.Reason),
		Successes: s.Successes, Failures: s.Failures, Opens: s.Opens, Rejected: s.Rejected, History: []breakerChange{},
	}
	for _, change := range s.History {
		shown.History = append(shown.History, breakerChange{
			At: change.At, From: string(change.From), To: string(change.To), Reason: string(change.Reason),
		})
	}
	return shown
}

type cacheStatus struct {
	Redis       bool `json:"redis"`
	Embedded    bool `json:"embedded"`
	Subscribed  bool `json:"subscribed"`
	Undelivered bool `json:"undelivered"`
	TrackerSick bool `json:"tracker_sick"`
	LocalItems  int  `json:"local_items"`
}

func programVersion() string {
	info, _ := debug.ReadBuildInfo()
	return buildVersion(info)
}

// status gives the function behind /status. It waits for nobody.
func (b *builder) status() func(context.Context) any {
	started := time.Now()
	rooms := &b.house
	return func(context.Context) any {
		s := status{Version: programVersion(), Started: started, Primary: b.cfg.Primary}
		dialect, told, certain := rooms.client.Pinned()
		s.Trackers = map[string]trackerStatus{b.cfg.Primary: {
			URL: redactURL(b.cfg.PrimaryTracker().URL), Dialect: dialect, TrackerVersion: told, DialectPinned: certain,
			Breakers: []breakerStatus{
				showBreaker(rooms.stack.Breakers.Reads.Status()), showBreaker(rooms.stack.Breakers.Writes.Status()),
			},
			Slots: rooms.stack.Limiter.Load().Slots, InUse: rooms.stack.Limiter.Load().InUse,
		}}
		if rooms.cache != nil {
			held := rooms.cache.Status()
			s.Cache = &cacheStatus{
				Redis: held.Redis, Embedded: held.Embedded, Subscribed: held.Subscribed,
				Undelivered: held.Undelivered, TrackerSick: held.TrackerSick, LocalItems: held.LocalItems,
			}
		}
		return s
	}
}
