package app

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"portico/cache"
	"portico/cmd/portico/config"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// tracker is everything that belongs to one tracker. Nothing of it is shared with another one.
type tracker struct {
	name     string
	settings config.Tracker
	base     *url.URL
	stack    *transport.Stack // nil in a dry run
	client   *bugzilla.Client
	shadow   *bugzilla.Client // of comparisons, nil without them
	target   *proxy.Target    // for paths outside the interface
	keys     switchover.Keys
	cache    *cache.Cache // nil if it is off
}

// openTracker builds what a tracker needs to serve clients: connections with limit and breakers, client and cache.
func (rt *Runtime) openTracker(name string) (err error) {
	limits, t := &rt.cfg.Limits, &tracker{name: name, settings: rt.cfg.Trackers[name], keys: rt.liveKeys(name)}
	t.base, _ = url.Parse(t.settings.URL) // config has reported problems
	host := t.settings.SentHost()
	var over http.RoundTripper
	if rt.dry != nil {
		over = host.Over(rt.dry.transport(name))
	} else {
		t.stack, err = rt.openStack(t, name, transport.Options{
			Base: transport.BaseOptions{MaxIdleConns: maxCalls(limits)},
			Limit: transport.LimitOptions{
				Slots: limits.Concurrency, MaxSlots: maxCalls(limits),
				Queue: cmp.Or(limits.Queue, -1), QueueWait: cmp.Or(queueWait(limits, t.settings.Timeout), -1), // 0 would mean the default
			},
		})
		over = t.stack
	}
	if err != nil {
		return err
	}
	t.keys.Missing = func(caller upstream.Caller) {
		if caller.RequestID != "" { // what the gate tries is no request of a client
			rt.missing.note(name, rt.callers.Name(caller), caller)
		}
	}
	if t.client, err = rt.newClient(t, name, over, t.keys.For); err != nil {
		return err
	}
	t.target = &proxy.Target{
		Base: t.base, Transport: over, MaxBody: t.client.MaxBody, For: t.client.For, Dialect: t.client.Dialect,
	}
	if !t.keys.Forwards() || t.keys.RefuseLogins {
		t.target.Keys = t.keys.For
	}
	if host.Name != "" {
		t.target.Names = []string{host.Name}
	}
	rt.trackers[name] = t
	if name == rt.cfg.Primary && t.stack != nil { // a candidate that fails is left alone
		ctx, cancel := context.WithCancel(context.Background())
		var watching sync.WaitGroup
		watching.Go(func() { t.client.WatchRedirect(ctx) })
		rt.onClose(func() { cancel(); watching.Wait() })
	}
	if rt.cfg.Cache.Scope == cache.ScopeOff {
		return nil
	}
	return rt.openCache(t)
}

const (
	usualCalls = 64   // the default of limits.concurrency
	grownCalls = 1024 // concurrent calls where that is in force
)

// maxCalls returns how far the number of concurrent calls may grow.
func maxCalls(l *config.Limits) int {
	if l.MaxConcurrency == 0 && l.Concurrency == usualCalls {
		return grownCalls
	}
	return max(l.Concurrency, l.MaxConcurrency)
}

// queueWait returns the maximum wait in the queue of a tracker with this timeout.
func queueWait(l *config.Limits, timeout time.Duration) time.Duration {
	if l.QueueWait != nil {
		return *l.QueueWait
	}
	return timeout
}

// openStack returns connections to a tracker, which metrics show under a label: those of the current runtime, unless anything about them has
// changed. So an open breaker stays open, and calls under way count for the limit.
func (rt *Runtime) openStack(t *tracker, label string, options transport.Options) (*transport.Stack, error) {
	secured, err := t.settings.TLSFiles.Client()
	if err != nil {
		return nil, fmt.Errorf("tracker %s: %w", t.name, err)
	}
	options.Base.Host = t.settings.SentHost()
	options.Base.ConnectTimeout = rt.cfg.Timeouts.Connect
	options.Base.HeaderTimeout = cmp.Or(options.Base.HeaderTimeout, t.settings.Timeout)
	authorities, _ := os.ReadFile(t.settings.CAFile) // it was read above; no name is no content
	certificate, _ := os.ReadFile(t.settings.CertFile)
	key := fmt.Sprint(t.base, options, string(authorities), string(certificate))
	options.Base.TLS = secured
	metrics, logger, address := rt.metrics, rt.logger, t.base.Host // not rt: connections may outlive it
	options.Observer = admin.Calls{Metrics: metrics, Tracker: label}
	if label == t.name { // not for comparison: those calls belong to no request, and no client waits for the tracker to recover
		options.Trace = rt.trace(label)
		options.Break.ProbeURL, options.Break.Well = t.base.JoinPath("rest", "version").String(), bugzilla.IsHealthy
	}
	options.Break.OnChange = func(change transport.Change) {
		metrics.BreakerChanged(label, change.Breaker, change.To)
		changed := logger.With("tracker", label, "breaker", change.Breaker, "from", change.From, "to", change.To, "address", address)
		if change.To == transport.Closed { // what it failed with is over
			changed.Info("breaker changed")
			return
		}
		changed.Warn("breaker changed", "reason", change.Reason, "cause", change.Cause)
	}
	held := rt.current().stacks[label]
	if held == nil || held.key != key {
		held = &sharedStack{transport.New(options), key}
	}
	rt.stacks[label] = held
	return held.Stack, nil
}

// newClient makes a client of a tracker, which sees the callers that keys returns. The log shows label.
func (rt *Runtime) newClient(
	t *tracker, label string, over http.RoundTripper, keys func(upstream.Caller) (upstream.Caller, error),
) (*bugzilla.Client, error) {
	return bugzilla.New(bugzilla.Options{
		URL: t.base, Dialect: t.settings.Dialect, HideKeys: t.settings.HideKeys, MaxBody: t.settings.MaxBody, Transport: over,
		Split: rt.replySplit(), Keys: keys, ForComparison: keys == nil, Logger: rt.logger.With("tracker", label),
	})
}

// front is the tracker as clients reach it: with its cache, if it has one.
func (t *tracker) front() upstream.Tracker {
	if t.cache != nil {
		return t.cache
	}
	return t.client
}

// dialect returns the name of the dialect, the version that told it, and whether one of the clients has found it out.
func (t *tracker) dialect() (dialect, version string, certain bool) {
	dialect, version, certain = t.client.Pinned()
	if !certain && t.shadow != nil {
		return t.shadow.Pinned()
	}
	return dialect, version, certain
}

// openCache puts a cache before the client of a tracker. Its shared part is that of the current runtime, if it fits.
func (rt *Runtime) openCache(t *tracker) error {
	redis, err := RedisOptions(&rt.cfg)
	if err != nil {
		return err
	}
	settings, metrics := &rt.cfg.Cache, rt.metrics
	options := cache.Options{
		Tracker: t.name, Address: strings.TrimSpace(bugzilla.SameAddress(t.base) + " " + t.settings.Dialect + " " + t.settings.Host),
		Settings: settings.Settings, Redis: redis, Secret: []byte(settings.Secret.Text()), Groups: t.client.Groups, Keys: t.target.Keys,
		FillTimeout: rt.callTime(t.name), Logger: rt.logger.With("tracker", t.name),
		Observer: cache.Observer{
			Read: metrics.CacheRead, Fill: metrics.CacheFill, Redis: metrics.Redis, RedisState: metrics.RedisState, Change: metrics.CacheChange,
		},
	}
	options.Shared = rt.current().shared[t.name]
	if options.Shared == nil || !options.Shared.Fits(options) {
		options.Shared = cache.OpenShared(options)
	}
	rt.shared[t.name] = options.Shared
	t.cache = cache.New(t.client, options)
	rt.onClose(func() { _ = t.cache.Close() })
	rt.caches = append(rt.caches, t.cache)
	return nil
}

// RedisOptions returns the options of the cache that the configuration of Redis stands for.
func RedisOptions(cfg *config.Config) (cache.Redis, error) {
	c := &cfg.Cache.Redis
	options, _ := cache.ParseRedis(c.URL) // config has reported problems; without a URL there are addresses
	secured, err := c.Client()
	options.TLS, options.Addrs = secured, append(options.Addrs, c.Addrs...)
	options.MasterName, options.DialTimeout, options.Timeout = c.MasterName, cfg.Timeouts.Connect, cfg.Timeouts.Redis
	options.Username, options.Password = cmp.Or(c.Username, options.Username), cmp.Or(c.Password.Text(), options.Password)
	return options, err
}
