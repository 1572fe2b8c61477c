package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"portico/cache"
	"portico/cmd/portico/config"
	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/proxy/admin/pages"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
)

// Runtime is everything that is built from one configuration: the components that a request passes. What survives a reload belongs
// to Resources.
type Runtime struct {
	// Front serves clients, Operators the listener for operators.
	Front     *proxy.Server
	Operators http.Handler
	// Canary is nil without a candidate.
	Canary *canary.Canary

	cfg       config.Config
	logger    *slog.Logger
	resources *Resources
	started   time.Time
	// needRestart are the keys that a reload has read and left at their former values.
	needRestart []string

	admin                    *admin.Server
	clientsTLS, operatorsTLS *tls.Config // nil for plain HTTP
	tracing                  *tracing    // nil if nothing is traced
	callers                  upstream.NamedCallers
	missing                  missingKeys
	trackers                 map[string]*tracker
	caches                   cache.Caches           // of the trackers in use, the primary one first
	switchover               *switchover.Switchover // nil without a candidate
	ids                      *idmap.Map             // nil if both trackers have the same ids
	// stacks and shared are the shared resources in use, by their labels in metrics and by trackers.
	stacks map[string]*sharedStack
	shared map[string]*cache.Shared
	// requests are those that are in the runtime.
	requests sync.WaitGroup
	// closers end what the components own, last opened first.
	closers []func()
}

// Build makes all components of a configuration that has no problems, and starts what runs beside requests. Secrets are read with
// lookup. The end of ctx ends the wait for a database. A build that fails changes nothing. The caller closes the runtime.
func Build(ctx context.Context, cfg config.Config, lookup config.Variables, logger *slog.Logger, resources *Resources) (*Runtime, error) {
	rt := &Runtime{
		cfg: cfg, logger: logger, resources: resources, started: time.Now(),
		missing: missingKeys{seen: map[string][]string{}}, trackers: map[string]*tracker{}, stacks: map[string]*sharedStack{}, shared: map[string]*cache.Shared{},
	}
	rt.onClose(func() {
		if err := resources.release(rt); err != nil {
			logger.Warn("connections of the former configuration could not be closed", "cause", err)
		}
	})
	if err := rt.build(ctx, lookup); err != nil {
		rt.Close()
		return nil, err
	}
	return rt, nil
}

// build opens the components in the order in which they need each other. What may fail comes before what changes shared resources.
func (rt *Runtime) build(ctx context.Context, lookup config.Variables) (err error) {
	if rt.clientsTLS, err = rt.cfg.TLS.Server(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if rt.operatorsTLS, err = rt.cfg.Admin.TLS.Server(); err != nil {
		return fmt.Errorf("admin.tls: %w", err)
	}
	token, err := rt.cfg.Admin.Token.Read(lookup)
	if err != nil {
		return fmt.Errorf("admin.token: %w", err)
	}
	if err := rt.openTracing(lookup); err != nil {
		return fmt.Errorf("set up traces: %w", err)
	}
	if rt.callers, err = rt.cfg.NamedCallers(lookup); err != nil {
		return err
	}
	if err := rt.openTracker(rt.cfg.Primary, lookup); err != nil {
		return err
	}
	if rt.cfg.Candidate != "" {
		if err := rt.openCandidate(ctx, lookup); err != nil {
			return err
		}
	}
	if rt.Front, err = proxy.New(rt.frontOptions()); err != nil {
		return err
	}
	rt.openOperators(string(token))
	return rt.resources.adopt(rt)
}

func (rt *Runtime) onClose(end func()) { rt.closers = append(rt.closers, end) }

// Close waits for the requests that Service has let in, and ends what the components own.
func (rt *Runtime) Close() {
	rt.requests.Wait()
	for _, end := range slices.Backward(rt.closers) {
		end()
	}
}

// frontOptions join the handler of clients with the trackers.
func (rt *Runtime) frontOptions() proxy.Options {
	cfg, limits, rate, callTime := &rt.cfg, &rt.cfg.Limits, &rt.cfg.Limits.Rate, rt.maxCallTime()
	primary := rt.trackers[cfg.Primary]
	options := proxy.Options{
		Tracker: primary.front(), FlagTypeWrites: rt.flagTypeWrites, Responses: proxy.Responses(cfg.Responses),
		Limits: proxy.Limits{
			Limits: jsonblob.Limits{Body: int64(limits.Body), Depth: limits.Depth, BlobMemory: int64(cfg.Blobs.Memory)},
			IDs:    limits.IDs, Memory: int64(limits.BodyMemory),
		},
		Rates: proxy.RateLimits{
			Anonymous: proxy.Rate{PerSecond: rate.Anonymous.PerSecond, Burst: rate.Anonymous.Burst},
			Keyed:     proxy.Rate{PerSecond: rate.Keyed.PerSecond, Burst: rate.Keyed.Burst},
		},
		Idempotency: rt.resources.idempotency, BlobDir: cfg.Blobs.Dir, ReadTimeout: callTime, WriteTimeout: callTime,
		ClientPause:    proxy.ClientPause{Sending: cfg.Timeouts.Read, Taking: cfg.Timeouts.Write},
		TrustedProxies: cfg.TrustedProxies, DocumentationURL: cfg.API.Documentation,
		Revalidate: cache.Revalidate, Logger: rt.logger, Observer: rt.resources.metrics,
		Passthrough: proxy.Passthrough{Target: *primary.target, Prefixes: cfg.Passthrough},
	}
	if rt.tracing != nil {
		options.Tracer = rt.tracing
	}
	if rt.switchover != nil {
		options.Tracker = rt.switchover
		options.Passthrough.Choose = func(_ upstream.Caller, write bool) *proxy.Target {
			return rt.trackers[rt.switchover.Passthrough(write)].target
		}
	}
	if len(rt.caches) > 0 || rt.Canary != nil {
		options.Passthrough.FlagTypesChanging = rt.changeFlagTypes
	}
	if rt.resources.dry != nil {
		options.Observer = dryResponse{rt.resources.dry}
	}
	return options
}

// flagTypeWrites reports whether one of the trackers can create and update flag types.
func (rt *Runtime) flagTypeWrites(ctx context.Context) bool {
	for _, t := range rt.trackers {
		if t.client.Dialect(ctx).FlagTypeWrites {
			return true
		}
	}
	return false
}

// changeFlagTypes makes a pass-through call that may change flag types. Every cache and the comparison are told of it, since the other
// tracker may get the change in another way.
func (rt *Runtime) changeFlagTypes(ctx context.Context, call func() error) error {
	if rt.Canary != nil {
		rt.Canary.Wrote(upstream.Call{})
		defer rt.Canary.Wrote(upstream.Call{})
	}
	for _, c := range rt.caches {
		within := call
		call = func() error { return c.WriteAround(ctx, within) }
	}
	return call()
}

// callTime is the maximum time until the response of a tracker begins: the wait in the queue and the tracker's timeout.
func (rt *Runtime) callTime(t config.Tracker) time.Duration {
	return t.Timeout + rt.cfg.Limits.WaitFor(t.Timeout)
}

// maxCallTime is the longer callTime of the trackers in use.
func (rt *Runtime) maxCallTime() time.Duration {
	return max(rt.callTime(rt.cfg.Trackers[rt.cfg.Primary]), rt.callTime(rt.cfg.Trackers[rt.cfg.Candidate]))
}

// replySplit is how the replies of trackers are split.
func (rt *Runtime) replySplit() jsonblob.SplitOptions {
	return jsonblob.SplitOptions{Limits: jsonblob.AnswerLimits(int64(rt.cfg.Blobs.Memory)), Dir: rt.cfg.Blobs.Dir}
}

// openOperators builds the handler of the listener for operators.
func (rt *Runtime) openOperators(token string) {
	cfg := &rt.cfg
	options := admin.Options{
		Metrics: rt.resources.metrics, Status: func(context.Context) any { return rt.status() },
		Unready: func() string { return rt.trackers[cfg.Primary].problem() },
		Token:   token, Certificates: cfg.Admin.TLS.ClientCAFile != "", Pages: slices.Clone(rt.resources.pages),
	}
	if len(rt.caches) > 0 {
		options.Pages = append(options.Pages, admin.CachePage(rt.caches))
	}
	if rt.Canary == nil {
		options.Pages = append(options.Pages, pages.Absent("/canary"), pages.Absent("/switchover"))
	} else {
		known := pages.CanaryOptions{Facade: rt.facadeURL(), Trackers: map[string]string{}, HeaderCredentials: rt.readsHeaders}
		for name, t := range rt.trackers {
			known.Trackers[name] = config.RedactURL(t.settings.URL)
		}
		options.Pages = append(options.Pages, pages.CanaryPages(rt.Canary, rt.resources.store, known), pages.SwitchoverPages(rt.switchover, rt.newGate()))
	}
	rt.admin = admin.New(options)
	// Operators send little, so they may pause for less time than clients.
	rt.Operators = proxy.Patient(rt.admin, proxy.ClientPause{Sending: min(cfg.Timeouts.Read, 5*time.Second), Taking: cfg.Timeouts.Write})
}

// readsHeaders reports whether a tracker reads credentials in headers.
func (rt *Runtime) readsHeaders(tracker string) bool {
	name, _, _ := rt.trackers[tracker].dialect()
	dialect, _ := mapping.DialectNamed(name)
	return dialect.HeaderCredentials
}

// facadeURL is the base URL that clients use, empty if the configuration does not tell.
func (rt *Runtime) facadeURL() string {
	host, port, err := net.SplitHostPort(rt.cfg.Listen)
	switch {
	case err != nil || port == "0" || config.EveryHost(host):
		return ""
	case rt.cfg.TLS.On():
		return "https://" + rt.cfg.Listen
	}
	return "http://" + rt.cfg.Listen
}
