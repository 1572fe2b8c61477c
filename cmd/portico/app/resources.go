package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"portico/cache"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream/canary"
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// Resources are the shared resources: what survives a reload of the configuration. Runtimes are built one after another; a former one
// may still be closing meanwhile.
type Resources struct {
	metrics *admin.Metrics
	tracing atomic.Pointer[tracing] // of the current runtime, nil if nothing is traced
	dry     *Explanation            // not nil if nothing may be sent
	pages   []admin.Page            // for operators, beside those of the components

	// store, idempotency and switchover belong to the goroutine that builds.
	store       *state.Store // nil without a candidate, and so is switchover
	idempotency *proxy.Idempotency
	switchover  *switchover.Switchover
	journal     *journal.Journal // nil unless there is a key for it

	mu     sync.Mutex               // guards what follows
	stacks map[string]*sharedStack  // connections to trackers, by their labels in metrics
	caches map[string]*cache.Shared // by trackers
	canary *canary.Canary           // of the current runtime
}

// NewResources returns resources of which nothing is open yet. The caller closes them after the last runtime.
func NewResources() *Resources {
	metrics := admin.NewMetrics()
	metrics.Build(Version)
	return &Resources{
		metrics: metrics, idempotency: proxy.NewIdempotency(nil, nil),
		stacks: map[string]*sharedStack{}, caches: map[string]*cache.Shared{},
	}
}

// Close closes everything that is open.
func (r *Resources) Close() error {
	var failed error
	if r.switchover != nil {
		failed = r.switchover.Close()
	}
	if r.journal != nil {
		failed = errors.Join(failed, r.journal.Close())
	}
	for _, shared := range r.caches {
		failed = errors.Join(failed, shared.Close())
	}
	for _, stack := range r.stacks {
		stack.Close()
	}
	if r.store != nil {
		failed = errors.Join(failed, r.store.Close())
	}
	return failed
}

// openStore opens the store at the first call. Another address needs a restart.
func (r *Resources) openStore(ctx context.Context, at string, logger *slog.Logger) error {
	if r.store != nil {
		return nil
	}
	store, err := state.Open(ctx, at)
	if err != nil {
		return fmt.Errorf("open the state: %w", err)
	}
	secret, err := store.Secret(ctx, idempotencySecret)
	if err != nil {
		return errors.Join(fmt.Errorf("open the state: %w", err), store.Close())
	}
	r.store, r.idempotency = store, proxy.NewIdempotency(newIdempotencyRecords(store, at, logger), secret[:])
	return nil
}

// openSwitchover makes the switchover at the first call. Later ones give it new settings.
func (r *Resources) openSwitchover(ctx context.Context, options switchover.Options) (_ *switchover.Switchover, err error) {
	if r.switchover == nil {
		r.switchover, err = switchover.New(ctx, options)
	} else {
		err = r.switchover.Set(ctx, options.Settings)
	}
	if err != nil {
		return nil, fmt.Errorf("set up the switchover: %w", err)
	}
	return r.switchover, nil
}

// sharedStack is the connections to a tracker. Those with the same key are alike.
type sharedStack struct {
	*transport.Stack
	key string
}

// stackKey is the same for connections that are alike: where they go, with which certificates, within which bounds.
func stackKey(t *tracker, options transport.Options) string {
	key := fmt.Append(nil, t.base, options.Base, options.Limit, options.Tries)
	for _, file := range []string{t.settings.CAFile, t.settings.CertFile, t.settings.KeyFile} {
		text, _ := os.ReadFile(file) // errors were reported when the certificates were read; no name is no text
		key = fmt.Append(key, sha256.Sum256(text))
	}
	return string(key)
}

// stack returns the connections with a label, new ones if anything about them has changed. A reload that changes nothing keeps
// them: an open breaker stays open, and calls under way count for the limit. adopt registers new ones.
func (r *Resources) stack(label, key string, options transport.Options) *sharedStack {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held := r.stacks[label]; held != nil && held.key == key {
		return held
	}
	return &sharedStack{transport.New(options), key}
}

// trace begins the span of a call, if the current runtime traces.
func (r *Resources) trace(tracker string) transport.Trace {
	return func(req *http.Request, begun time.Time) (*http.Request, transport.Observer) {
		if t := r.tracing.Load(); t != nil {
			return t.call(tracker, req, begun)
		}
		return req, nil
	}
}

// cache returns the shared part of a tracker's cache, a new one if it does not fit the options. adopt registers a new one.
func (r *Resources) cache(options cache.Options) *cache.Shared {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held := r.caches[options.Tracker]; held != nil && held.Fits(options) {
		return held
	}
	return cache.OpenShared(options)
}

// adopt registers what a runtime uses, which is about to become the current one.
func (r *Resources) adopt(rt *Runtime) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for label, stack := range rt.stacks {
		former := r.stacks[label]
		if former == nil {
			if err := r.metrics.Limiter(label, func() transport.Load { return r.load(label) }); err != nil {
				return err
			}
		}
		if former != stack {
			r.metrics.Breaker(label, "read", stack.Reads.State())
			r.metrics.Breaker(label, "write", stack.Writes.State())
		}
		r.stacks[label] = stack
	}
	for tracker, shared := range rt.shared {
		if former := r.caches[tracker]; former != nil && former != shared {
			former.ForwardChanges(shared) // a write that ends in the former runtime counts for this one
		}
		r.caches[tracker] = shared
	}
	r.tracing.Store(rt.tracing)
	registered := r.canary != nil
	if r.canary = rt.Canary; registered || r.canary == nil {
		return nil
	}
	return r.metrics.CanaryQueue(func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.canary.Load().Queued
	})
}

// release closes what a runtime that has ended used and the current one does not use.
func (r *Resources) release(rt *Runtime) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed error
	for tracker, shared := range rt.shared {
		if r.caches[tracker] != shared {
			failed = errors.Join(failed, shared.Close())
		}
	}
	for label, stack := range rt.stacks {
		if r.stacks[label] != stack {
			stack.Close()
		}
	}
	return failed
}

// load is the load of a tracker as metrics show it.
func (r *Resources) load(label string) transport.Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stacks[label].Limiter.Load()
}
