package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
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
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover/idmap"
)

// Runtime is everything that is built from one configuration: the components that a request passes.
type Runtime struct {
	// Front serves clients, Operators the listener for operators.
	Front     *proxy.Server
	Operators http.Handler
	// Canary is nil without a candidate.
	Canary *canary.Canary

	*resources
	cfg     config.Config
	started time.Time
	// needRestart are the keys that a reload has read and left at their former values.
	needRestart []string

	admin                    *admin.Server
	clientsTLS, operatorsTLS *tls.Config // nil for plain HTTP
	tracing                  *tracing    // nil if nothing is traced
	callers                  upstream.NamedCallers
	missing                  missingKeys
	trackers                 map[string]*tracker
	caches                   cache.Caches     // of the trackers in use, the primary one first
	ids                      *idmap.Map       // nil if both trackers have the same ids
	recorded                 *journal.Journal // nil without one; that of the resources may come with a reload, while this runtime runs
	// stacks and shared are the shared resources in use, by their labels in metrics and by trackers.
	stacks map[string]*sharedStack
	shared map[string]*cache.Shared
	// requests are those that are in the runtime.
	requests sync.WaitGroup
	// closers end what the components own, last opened first.
	closers []func()
}

// Build makes all components of a configuration that has no problems, starts what runs beside requests, and makes them the current ones.
// The former ones are closed after their last request. The end of ctx ends the wait for a database. A build that fails changes nothing.
func (s *Service) Build(ctx context.Context, cfg config.Config, needRestart ...string) (*Runtime, error) {
	rt := &Runtime{
		resources: &s.resources, cfg: cfg, started: time.Now(), needRestart: needRestart, callers: namedCallers(&cfg),
		missing: missingKeys{seen: map[string][]string{}}, trackers: map[string]*tracker{}, stacks: map[string]*sharedStack{}, shared: map[string]*cache.Shared{},
	}
	rt.onClose(rt.release)
	if err := rt.build(ctx); err != nil {
		rt.close()
		return nil, err
	}
	s.adopt(rt)
	return rt, nil
}

// build opens the components in the order in which they need each other. What may fail comes before what changes shared resources.
func (rt *Runtime) build(ctx context.Context) (err error) {
	if rt.clientsTLS, err = serverTLS(config.AdminTLS{KeyPair: rt.cfg.TLS}); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if rt.operatorsTLS, err = serverTLS(rt.cfg.Admin.TLS); err != nil {
		return fmt.Errorf("admin.tls: %w", err)
	}
	if err := rt.openTracing(); err != nil {
		return fmt.Errorf("set up traces: %w", err)
	}
	if err := rt.openTracker(rt.cfg.Primary); err != nil {
		return err
	}
	if rt.cfg.Candidate != "" {
		if err := rt.openCandidate(ctx); err != nil {
			return err
		}
	} else if len(rt.cfg.Switchover.IDs) > 0 && rt.dry == nil {
		if err := rt.openLastIDs(ctx); err != nil {
			return err
		}
	}
	rt.Front, err = proxy.New(rt.frontOptions())
	rt.openOperators()
	return err
}

func (rt *Runtime) onClose(end func()) { rt.closers = append(rt.closers, end) }

// close waits for the requests that were let in, and ends what the components own.
func (rt *Runtime) close() {
	rt.requests.Wait()
	for _, end := range slices.Backward(rt.closers) {
		end()
	}
}

// frontOptions join the handler of clients with the trackers.
func (rt *Runtime) frontOptions() proxy.Options {
	cfg, limits, callTime := &rt.cfg, &rt.cfg.Limits, rt.maxCallTime()
	primary := rt.trackers[cfg.Primary]
	options := proxy.Options{
		Tracker: rt.ids.Tracker(cfg.Primary, primary.front()), FlagTypeWrites: rt.flagTypeWrites, Responses: proxy.Responses(cfg.Responses),
		Limits: proxy.Limits{
			Limits: jsonblob.Limits{Body: limits.Body, Depth: limits.Depth, BlobMemory: rt.blobMemory()},
			IDs:    limits.IDs, Memory: limits.BodyMemory,
		},
		Rates:       proxy.RateLimits{Anonymous: proxy.Rate(limits.Rate.Anonymous), Keyed: proxy.Rate(limits.Rate.Keyed)},
		Idempotency: rt.idempotency, BlobDir: cfg.Blobs.Dir, Timeout: callTime,
		ClientPause:    cfg.Timeouts.ClientPause,
		TrustedProxies: cfg.TrustedProxies, DocumentationURL: cfg.API.Documentation,
		Logger: rt.logger, Observer: rt.metrics,
		Passthrough: proxy.Passthrough{Target: *primary.target, Prefixes: cfg.Passthrough, Operations: rt.translatesRPC},
	}
	if rt.tracing != nil {
		options.Tracer = rt.tracing
	}
	if rt.switchover != nil {
		options.Tracker = rt.switchover
		options.Passthrough.Choose = func(write bool) *proxy.Target {
			return rt.trackers[rt.switchover.Passthrough(write)].target
		}
		if rt.recorded != nil {
			options.Passthrough.Writes = func(ctx context.Context, target *proxy.Target, what string) func(bool) {
				receiver := cfg.Candidate
				if target == rt.trackers[cfg.Candidate].target {
					receiver = cfg.Primary
				}
				return rt.recorded.Lose(ctx, state.JournalLoss{Receiver: receiver, Kind: state.LossPassed, What: what})
			}
		}
	}
	if len(rt.caches) > 0 || rt.Canary != nil {
		options.Passthrough.FlagTypesChanging = rt.changeFlagTypes
	}
	if rt.dry != nil {
		options.Observer = dryResponse{rt.dry}
	}
	return options
}

// translatesRPC reports whether operations in the form of an older interface are carried out as operations: where writes are copied, or ids translated.
func (rt *Runtime) translatesRPC() bool {
	return rt.ids != nil || rt.switchover != nil && rt.switchover.Replicates()
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
func (rt *Runtime) callTime(name string) time.Duration {
	timeout := rt.cfg.Trackers[name].Timeout
	return timeout + queueWait(&rt.cfg.Limits, timeout)
}

// maxCallTime is the longer callTime of the trackers in use.
func (rt *Runtime) maxCallTime() time.Duration {
	return max(rt.callTime(rt.cfg.Primary), rt.callTime(rt.cfg.Candidate))
}

// replySplit is how the replies of trackers are split.
func (rt *Runtime) replySplit() jsonblob.SplitOptions {
	return jsonblob.SplitOptions{Limits: jsonblob.AnswerLimits(rt.blobMemory()), Dir: rt.cfg.Blobs.Dir}
}

// blobMemory is blobs.memory as jsonblob takes it, for which 0 is the default.
func (rt *Runtime) blobMemory() int64 { return cmp.Or(rt.cfg.Blobs.Memory, -1) }

// openOperators builds the handler of the listener for operators.
func (rt *Runtime) openOperators() {
	cfg := &rt.cfg
	options := admin.Options{
		Metrics: rt.metrics, Status: rt.shown, Unready: rt.trackers[cfg.Primary].problem,
		Looked: func() { rt.looked.Store(time.Now().UnixNano()) },
		Token:  cfg.Admin.Token.Text(), Certificates: cfg.Admin.TLS.ClientCAFile != "", Pages: slices.Clone(rt.Pages),
	}
	add := func(more ...admin.Page) { options.Pages = append(options.Pages, more...) }
	if len(rt.caches) > 0 {
		add(admin.CachePage(rt.caches))
	}
	if rt.Canary == nil {
		const alone = "no second tracker; the key candidate of the configuration names one"
		add(pages.Absent("/canary", alone), pages.Absent("/switchover", alone))
	} else {
		known := pages.CanaryOptions{Trackers: map[string]string{}, HeaderCredentials: rt.readsHeaders}
		for name, t := range rt.trackers {
			known.Trackers[name] = t.settings.URL
		}
		add(pages.CanaryPages(rt.Canary, rt.store, known), pages.SwitchoverPages(rt.switchover, rt.newGate(), rt.ids.Unpaired))
	}
	if rt.recorded != nil {
		add(pages.JournalPages(rt.store))
	} else {
		add(pages.Absent("/journal", "no journal; rules with replicate need one, and the key switchover.journal.key_file"))
	}
	rt.admin = admin.New(options)
	rt.admin.SetReady(true)
	// Operators send little, so they may pause for less time than clients.
	pause := cfg.Timeouts.ClientPause
	pause.Sending = min(pause.Sending, 5*time.Second)
	rt.Operators = proxy.Patient(rt.admin, pause)
}

// readsHeaders reports whether a tracker reads credentials in headers.
func (rt *Runtime) readsHeaders(tracker string) bool {
	name, _, _ := rt.trackers[tracker].dialect()
	dialect, _ := mapping.DialectNamed(name)
	return dialect.HeaderCredentials
}
