package main

import (
	"fmt"
	"time"

	"portico/cache"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream"
	"portico/upstream/bugzilla"
)

// facade builds the front of house.
func (b *builder) facade() error {
	usual := b.house.trackers[b.cfg.Primary].target()
	options := proxy.Options{
		Tracker: b.front(), Responses: proxy.Responses(b.cfg.Responses),
		Limits:           proxy.Limits{Limits: b.bodyLimits(), IDs: b.cfg.Limits.IDs, Memory: int64(b.cfg.Limits.BodyMemory)},
		Rates:            b.rates(),
		Replays:          b.replays(),
		BlobDir:          b.cfg.Blobs.Dir,
		ReadTimeout:      b.longestTimeout(),
		WriteTimeout:     b.longestTimeout(),
		ClientPause:      proxy.ClientPause{Sending: b.cfg.Timeouts.Read, Taking: b.cfg.Timeouts.Write},
		TrustedProxies:   b.cfg.TrustedProxies,
		DocumentationURL: b.cfg.API.Documentation,
		Logger:           b.logger, Observer: b.house.metrics, Tracer: b.house.tracer(),
		Passthrough: proxy.Passthrough{
			Base: usual.Base, Transport: usual.Transport, HeaderCredentials: usual.HeaderCredentials,
			Prefixes: b.cfg.Passthrough, Choose: b.choose(), Failure: bugzilla.Failure,
		},
	}
	if caches := b.caches(); len(caches) > 0 {
		options.Revalidate = cache.Revalidate
		options.Passthrough.FlagTypesChanging = flagTypesChanging(caches)
	}
	var err error
	b.house.front, err = proxy.New(options)
	return err
}

// longestTimeout is that of the trackers in use whose answer may take longest.
func (b *builder) longestTimeout() time.Duration {
	longest := time.Duration(0)
	for _, t := range b.house.trackers {
		longest = max(longest, t.settings.Timeout)
	}
	return longest
}

// front is the tracker as the facade sees it.
func (b *builder) front() upstream.Tracker {
	if b.house.switchover != nil {
		return b.house.switchover
	}
	return b.house.trackers[b.cfg.Primary].front()
}

// replays are remembered creates, kept in the store where there is one.
func (b *builder) replays() *proxy.Replays {
	if b.house.store != nil {
		return b.house.store.replays
	}
	return b.lasting.replays
}

// rates are how often callers may ask.
func (b *builder) rates() proxy.RateLimits {
	rate := b.cfg.Limits.Rate
	return proxy.RateLimits{
		Anonymous: proxy.Rate{PerSecond: rate.Anonymous.PerSecond, Burst: rate.Anonymous.Burst},
		Keyed:     proxy.Rate{PerSecond: rate.Keyed.PerSecond, Burst: rate.Keyed.Burst},
	}
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
	if caches := b.caches(); len(caches) > 0 {
		options.Pages = append(options.Pages, cacheDesk(caches).Page())
	}
	options.Pages = append(options.Pages, b.pages()...)
	b.house.admin, err = admin.New(options)
	if err != nil {
		return err
	}
	b.house.operators = proxy.Patient(b.house.admin, operatorsPause(b.cfg))
	return nil
}
