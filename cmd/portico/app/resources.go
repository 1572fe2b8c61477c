package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// resources are the shared resources: what survives a reload of the configuration.
type resources struct {
	// Pages are for operators, beside those of the components.
	Pages []admin.Page

	logger  *slog.Logger
	metrics *admin.Metrics
	looked  atomic.Int64 // when an operator last asked for anything, in nanoseconds since 1970
	dry     *Explanation // not nil if nothing may be sent

	// These belong to the goroutine that builds.
	store       *state.Store // nil without a candidate, and so is switchover
	idempotency *proxy.Idempotency
	switchover  *switchover.Switchover
	journal     *journal.Journal // nil unless there is a key for it

	mu      sync.RWMutex // guards runtime
	runtime *Runtime     // the current one, an empty one before the first is built
	leaving sync.WaitGroup
}

// current returns the current runtime.
func (r *resources) current() *Runtime {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.runtime
}

// adopt makes a runtime the current one, and closes the former one after its last request.
func (r *resources) adopt(rt *Runtime) {
	former := r.current()
	for label, stack := range rt.stacks {
		held := former.stacks[label]
		if held == nil {
			r.metrics.Limiter(label, func() transport.Load { return r.current().stacks[label].Limiter.Load() })
		}
		if held != stack {
			r.metrics.Breaker(label, "read", stack.Reads.State())
			r.metrics.Breaker(label, "write", stack.Writes.State())
		}
	}
	for tracker, shared := range rt.shared {
		if held := former.shared[tracker]; held != nil && held != shared {
			held.ForwardChanges(shared) // a write that ends in the former runtime counts for this one
		}
	}
	if former.Canary == nil && rt.Canary != nil {
		r.metrics.CanaryQueue(func() int { return r.current().Canary.Load().Queued })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runtime = rt
	r.leaving.Go(former.close)
}

// release closes the shared resources that only this runtime has used.
func (rt *Runtime) release() {
	current := rt.current()
	for label, stack := range rt.stacks {
		if current == rt || current.stacks[label] != stack {
			stack.Close()
		}
	}
	for tracker, shared := range rt.shared {
		if current == rt || current.shared[tracker] != shared {
			_ = shared.Close() // connections to Redis, which nothing uses any more
		}
	}
	if len(current.shared) == 0 {
		rt.metrics.WithoutRedis()
	}
}

// Close closes all runtimes and the shared resources.
func (s *Service) Close() error {
	s.current().close()
	s.leaving.Wait()
	if s.switchover != nil {
		s.switchover.Close()
	}
	if s.journal != nil {
		s.journal.Close()
	}
	if s.store != nil {
		return s.store.Close()
	}
	return nil
}

// openStore opens the store at the first call. Another address needs a restart.
func (rt *Runtime) openStore(ctx context.Context) error {
	if rt.store != nil {
		return nil
	}
	store, err := state.Open(ctx, rt.cfg.State)
	if err != nil {
		return fmt.Errorf("open the state: %w", err)
	}
	secret, err := store.Secret(ctx, idempotencySecret)
	if err != nil {
		return errors.Join(fmt.Errorf("open the state: %w", err), store.Close())
	}
	records := &idempotencyRecords{store: store, logger: rt.logger, now: time.Now}
	rt.store, rt.idempotency = store, proxy.NewIdempotency(records, secret[:])
	return nil
}

// sharedStack is the connections to a tracker. Those with the same key are alike.
type sharedStack struct {
	*transport.Stack
	key string
}

// trace begins the span of a call, if the current runtime traces.
func (r *resources) trace(tracker string) transport.Trace {
	return func(req *http.Request, begun time.Time) (*http.Request, transport.Observer) {
		if t := r.current().tracing; t != nil {
			return t.call(tracker, req, begun)
		}
		return req, nil
	}
}
