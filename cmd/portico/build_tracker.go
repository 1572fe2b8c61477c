package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"portico/cache"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/transport"
)

// trackerRooms are what asks one tracker for clients. They share nothing with
// those of another.
type trackerRooms struct {
	settings TrackerConfig
	base     *url.URL
	stack    *transport.Stack
	client   *bugzilla.Client
	// cache is nil where it is off.
	cache *cache.Cache
}

// front is the tracker with its cache, if it has one.
func (t *trackerRooms) front() upstream.Tracker {
	if t.cache != nil {
		return t.cache
	}
	return t.client
}

// target is the tracker for paths outside the interface.
func (t *trackerRooms) target() *proxy.Target {
	return &proxy.Target{
		Base: t.base, Transport: linked{transport.Streaming(t.stack)},
		HeaderCredentials: func(ctx context.Context) bool { return t.client.Dialect(ctx).HeaderCredentials },
	}
}

// linked sends links that change something as writes.
type linked struct{ next http.RoundTripper }

// RoundTrip makes one call.
func (l linked) RoundTrip(r *http.Request) (*http.Response, error) {
	if proxy.ChangesByLink(r) {
		r = r.WithContext(transport.WithWrite(r.Context()))
	}
	return l.next.RoundTrip(r)
}

// tracker builds what asks one tracker for clients: connections, what guards them,
// client and cache.
func (b *builder) tracker(name string) (*trackerRooms, error) {
	t := &trackerRooms{settings: b.cfg.Trackers[name]}
	b.house.trackers[name] = t
	limits := b.cfg.Limits
	options := transport.Options{
		Base:  transport.BaseOptions{MaxIdleConns: limits.Concurrency},
		Limit: transport.LimitOptions{Slots: limits.Concurrency, Queue: orOff(limits.Queue), QueueWait: orOff(limits.QueueWait)},
	}
	var err error
	if t.stack, err = b.stack(name, t.settings, name, options); err != nil {
		return nil, err
	}
	if t.base, err = trackerBase(name, t.settings); err != nil {
		return nil, err
	}
	if err := b.watchTransport(name, t.stack); err != nil {
		return nil, err
	}
	if t.client, err = b.client(name, t.settings, t.stack); err != nil {
		return nil, err
	}
	return t, b.cached(name, t)
}

func trackerBase(name string, settings TrackerConfig) (*url.URL, error) {
	base, err := url.Parse(settings.URL)
	if err != nil {
		return nil, fmt.Errorf("tracker %s: its URL cannot be read", name)
	}
	return base, nil
}

// stack builds connections to a tracker and what guards them, shown to operators
// under a label.
func (b *builder) stack(name string, settings TrackerConfig, label string, options transport.Options) (*transport.Stack, error) {
	secured, err := settings.TLS().Client()
	if err != nil {
		return nil, fmt.Errorf("tracker %s: %w", name, err)
	}
	base, err := trackerBase(name, settings)
	if err != nil {
		return nil, err
	}
	options.Base.DialTimeout, options.Base.TLSHandshakeTimeout = b.cfg.Timeouts.Connect, b.cfg.Timeouts.Connect
	options.Base.ResponseHeaderTimeout = cmp.Or(options.Base.ResponseHeaderTimeout, settings.Timeout)
	who := watchers{
		observer: trackerObserver{b.house.metrics, label},
		changed: func(change transport.Change) {
			b.house.metrics.Breaker(label, change.Breaker, string(change.To))
		},
	}
	if label == name { // calls for comparison belong to no request, and nobody waits for the tracker to be well again
		who.trace = b.house.tracing.calls(name)
	}
	key := stackKey(label, base.String(), settings.TLS(), options, who.trace != nil)
	options.Base.TLS = secured
	if label == name {
		options.Break.Probe = transport.GetProbe(base.JoinPath("rest", "version").String(), bugzilla.SoundsWell)
	}
	logged(&options.Break, label, b.logger)
	held, leave, err := b.lasting.stack(key, options, who)
	if err != nil {
		return nil, fmt.Errorf("tracker %s: %w", name, err)
	}
	b.house.closing(leave)
	return held.Stack, nil
}

// watchTransport shows the state of breakers and limiter from the start.
func (b *builder) watchTransport(label string, stack *transport.Stack) error {
	for name, breaker := range map[string]*transport.Breaker{"read": stack.Breakers.Reads, "write": stack.Breakers.Writes} {
		b.house.metrics.Breaker(label, name, string(breaker.State()))
	}
	return b.house.metrics.Limiter(label, func() admin.Load {
		load := stack.Limiter.Load()
		shown := admin.Load{InUse: load.InUse, Slots: load.Slots}
		for class := range load.Waiting {
			shown.Waiting += load.Waiting[class]
			shown.Shed += load.Shed[class]
		}
		return shown
	})
}

// orOff turns the configuration's zero, which means none, into transport's.
func orOff[T int | time.Duration](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

// logged has the log told of what becomes of breakers. They outlive the house, so nothing of that is held here.
func logged(options *transport.BreakOptions, label string, logger *slog.Logger) {
	options.OnChange = func(change transport.Change) {
		logger.Warn("breaker changed", "tracker", label, "breaker", change.Breaker,
			"from", change.From, "to", change.To, "reason", change.Reason)
	}
	options.OnPanic = func(cause any) { // what it says may have content in it
		logger.Error("a probe panicked", "tracker", label, "kind", fmt.Sprintf("%T", cause), "stack", string(debug.Stack()))
	}
}

// client builds the client of a tracker over its connections.
func (b *builder) client(name string, settings TrackerConfig, transport http.RoundTripper) (*bugzilla.Client, error) {
	base, err := trackerBase(name, settings)
	if err != nil {
		return nil, err
	}
	return bugzilla.New(bugzilla.Options{
		URL: base, Dialect: settings.Dialect, Transport: transport, Split: b.answerSplit(),
		Logger: b.logger.With("tracker", name),
	})
}
