package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"

	"portico/cache"
	"portico/mapping"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/transport"
)

// house is the chain of rooms that a request passes, built here and nowhere else.
type house struct {
	stack   *transport.Stack
	client  *bugzilla.Client
	cache   *cache.Cache
	front   *proxy.Server
	metrics *admin.Metrics
	admin   *admin.Server
	doors   doors
}

// builder holds what building the rooms needs.
type builder struct {
	cfg    Config
	lookup func(string) (string, bool)
	logger *slog.Logger
	// replays outlive a house.
	replays *proxy.Replays
	house   house
}

// build makes all rooms of a configuration that Load found good. Whoever gets a
// house closes it.
func build(cfg Config, lookup func(string) (string, bool), logger *slog.Logger, replays *proxy.Replays) (*house, error) {
	b := builder{cfg: cfg, lookup: lookup, logger: logger, replays: replays}
	b.house.metrics = admin.NewMetrics()
	steps := []func() error{b.certificates, b.transport, b.tracker, b.cached, b.facade, b.operators}
	for _, step := range steps {
		if err := step(); err != nil {
			b.house.close()
			return nil, err
		}
	}
	return &b.house, nil
}

// close ends what the rooms own, in the order in which they lean on each other.
func (h *house) close() {
	if h.cache != nil {
		_ = h.cache.Close()
	}
	if h.stack != nil {
		h.stack.Close()
	}
}

// transport builds the connections to the primary tracker and what guards them.
func (b *builder) transport() error {
	primary, limits := b.cfg.PrimaryTracker(), b.cfg.Limits
	settings, err := primary.TLS().Client()
	if err != nil {
		return fmt.Errorf("tracker %s: %w", b.cfg.Primary, err)
	}
	base, err := url.Parse(primary.URL)
	if err != nil {
		return fmt.Errorf("tracker %s: its URL cannot be read", b.cfg.Primary)
	}
	b.house.stack, err = transport.Chain(nil, transport.Options{
		Base: transport.BaseOptions{
			DialTimeout: b.cfg.Timeouts.Connect, TLSHandshakeTimeout: b.cfg.Timeouts.Connect,
			ResponseHeaderTimeout: primary.Timeout, MaxIdleConns: limits.Concurrency, TLS: settings,
		},
		Limit: transport.LimitOptions{Slots: limits.Concurrency, Queue: orOff(limits.Queue), QueueWait: limits.QueueWait},
		Break: transport.BreakOptions{
			Probe:    transport.GetProbe(base.JoinPath("rest", "version").String()),
			OnChange: b.breakerChanged,
		},
		Observer: trackerObserver{b.house.metrics, b.cfg.Primary},
	})
	if err != nil {
		return err
	}
	return b.watchTransport()
}

// watchTransport shows the state of breakers and limiter from the start.
func (b *builder) watchTransport() error {
	for _, name := range []string{"read", "write"} {
		b.house.metrics.Breaker(b.cfg.Primary, name, string(transport.Closed))
	}
	return b.house.metrics.Limiter(b.cfg.Primary, func() admin.Load {
		load := b.house.stack.Limiter.Load()
		shown := admin.Load{InUse: load.InUse, Slots: load.Slots}
		for class := range load.Waiting {
			shown.Waiting += load.Waiting[class]
			shown.Shed += load.Shed[class]
		}
		return shown
	})
}

// orOff turns the configuration's zero, which means none, into transport's.
func orOff(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

func (b *builder) breakerChanged(change transport.Change) {
	b.house.metrics.Breaker(b.cfg.Primary, change.Breaker, string(change.To))
	b.logger.Warn("breaker changed", "tracker", b.cfg.Primary, "breaker", change.Breaker,
		"from", change.From, "to", change.To, "reason", change.Reason)
}

// splitOptions are those for what is looked into, requests and answers alike.
func (b *builder) splitOptions() mapping.SplitOptions {
	return mapping.SplitOptions{Limits: b.bodyLimits(), Dir: b.cfg.Blobs.Dir}
}

func (b *builder) bodyLimits() mapping.Limits {
	return mapping.Limits{Body: int64(b.cfg.Limits.Body), Depth: b.cfg.Limits.Depth, BlobMemory: int64(b.cfg.Blobs.Memory)}
}

// rates are how often callers may ask.
func (b *builder) rates() proxy.RateLimits {
	rate := b.cfg.Limits.Rate
	return proxy.RateLimits{
		Anonymous: proxy.Rate{PerSecond: rate.Anonymous.PerSecond, Burst: rate.Anonymous.Burst},
		Keyed:     proxy.Rate{PerSecond: rate.Keyed.PerSecond, Burst: rate.Keyed.Burst},
	}
}

// tracker builds the client of the primary tracker. Answers are not bound by
// the limits for what clients send.
func (b *builder) tracker() error {
	primary := b.cfg.PrimaryTracker()
	base, err := url.Parse(primary.URL)
	if err != nil {
		return fmt.Errorf("tracker %s: its URL cannot be read", b.cfg.Primary)
	}
	split := b.splitOptions()
	split.Limits = mapping.Limits{Body: -1, BlobMemory: split.Limits.BlobMemory}
	b.house.client, err = bugzilla.New(bugzilla.Options{
		URL: base, Dialect: primary.Dialect, Transport: b.house.stack, Split: split,
		Logger: b.logger.With("tracker", b.cfg.Primary),
	})
	return err
}

// cached puts the cache before the client, unless it is off.
func (b *builder) cached() error {
	settings := b.cfg.Cache
	if settings.Scope == string(cache.ScopeOff) {
		return nil
	}
	secret, err := settings.Secret(b.lookup)
	if err != nil {
		return fmt.Errorf("cache secret: %w", err)
	}
	redis, err := redisOptions(&settings.Redis, b.lookup)
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	b.house.cache, err = cache.New(b.house.client, cache.Options{
		Tracker: b.cfg.Primary, Redis: redis, Scope: cache.Scope(settings.Scope), Secret: secret, Groups: b.house.client.Groups,
		TTL: settings.TTL, LocalTTL: settings.LocalTTL,
		StaleWhileRevalidate: settings.StaleWhileRevalidate, StaleIfError: settings.StaleIfError,
		Logger: b.logger, Observer: cacheObserver(b.house.metrics),
	})
	return err
}

// redisOptions turns the configuration of Redis into the cache's.
func redisOptions(c *RedisConfig, lookup func(string) (string, bool)) (cache.Redis, error) {
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
	options.MasterName = c.MasterName
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

// facade builds the front of house.
func (b *builder) facade() error {
	base, err := url.Parse(b.cfg.PrimaryTracker().URL)
	if err != nil {
		return fmt.Errorf("tracker %s: its URL cannot be read", b.cfg.Primary)
	}
	options := proxy.Options{
		Tracker: b.front(), Responses: proxy.Responses(b.cfg.Responses),
		Limits:           proxy.Limits{Limits: b.bodyLimits(), IDs: b.cfg.Limits.IDs},
		Rates:            b.rates(),
		Replays:          b.replays,
		BlobDir:          b.cfg.Blobs.Dir,
		ReadTimeout:      b.cfg.PrimaryTracker().Timeout,
		WriteTimeout:     b.cfg.PrimaryTracker().Timeout,
		ClientPause:      proxy.ClientPause{Sending: b.cfg.Timeouts.Read, Taking: b.cfg.Timeouts.Write},
		TrustedProxies:   b.cfg.TrustedProxies,
		DocumentationURL: b.cfg.API.Documentation,
		Logger:           b.logger, Observer: b.house.metrics,
		Passthrough: proxy.Passthrough{
			Base: base, Transport: b.house.stack, Prefixes: b.cfg.Passthrough,
			HeaderCredentials: func(ctx context.Context) bool { return b.house.client.Dialect(ctx).HeaderCredentials },
			Failure:           bugzilla.Failure,
		},
	}
	if b.house.cache != nil {
		options.Revalidate = cache.Revalidate
		options.Passthrough.FlagTypesChanging = func(ctx context.Context) { _ = b.house.cache.Changed(ctx) }
	}
	b.house.front, err = proxy.New(options)
	return err
}

// front is the tracker as the facade sees it.
func (b *builder) front() upstream.Tracker {
	if b.house.cache != nil {
		return b.house.cache
	}
	return b.house.client
}

// operators builds the second listener's handler.
func (b *builder) operators() error {
	token, err := b.cfg.Admin.Token(b.lookup)
	if err != nil {
		return fmt.Errorf("token of the operators: %w", err)
	}
	options := admin.Options{
		Metrics: b.house.metrics, Status: b.status(),
		Token: string(token), Certificates: b.cfg.Admin.TLS.ClientCAFile != "",
	}
	if b.house.cache != nil {
		options.Pages = append(options.Pages, cacheDesk(b.house.cache).Page())
	}
	b.house.admin, err = admin.New(options)
	return err
}
