package app

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
	"portico/upstream/state"
)

const (
	// idempotencySecret names the secret in the store under which fingerprints of creates are made.
	idempotencySecret = "idempotency"
	// storeTimeout bounds how long a create waits for the store.
	storeTimeout = 5 * time.Second
	// heartbeatInterval is the time between two heartbeats of a process that carries out creates.
	heartbeatInterval = 3 * time.Second
	// abandonedAfter is the time without a heartbeat after which the process of a running create counts as dead.
	abandonedAfter = 5 * heartbeatInterval
)

// idempotencyRecords is the proxy.IdempotencyStore in the state: its records survive the process and count for all processes that
// share the state.
type idempotencyRecords struct {
	store  *state.Store
	logger *slog.Logger
	now    func() time.Time
	// beats are the timers of the next heartbeats of the creates that this process carries out, by their keys.
	beats sync.Map
}

var _ proxy.IdempotencyStore = (*idempotencyRecords)(nil)

// Begin implements proxy.IdempotencyStore. If the store fails the create is refused, since it may have been carried out before.
func (r *idempotencyRecords) Begin(ctx context.Context, key, content [sha256.Size]byte) (upstream.IdempotencyRecord, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	known, claimed, err := r.store.BeginCreate(ctx, key, content)
	if err != nil {
		return known, false, mapping.TryLater(mapping.ReasonInternal, err,
			"It cannot be looked up whether a request with this Idempotency-Key was carried out before.")
	}
	if claimed {
		r.beats.Store(key, time.AfterFunc(heartbeatInterval, func() { r.heartbeat(key) }))
	}
	if known.Running && r.now().Sub(known.Since) > abandonedAfter {
		known.Running, known.Failed = false, proxy.UnknownCreate(nil)
	}
	return known, claimed, nil
}

// End implements proxy.IdempotencyStore. An outcome that cannot be stored is unknown to later requests.
func (r *idempotencyRecords) End(ctx context.Context, key [sha256.Size]byte, outcome *upstream.IdempotencyRecord) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := r.store.EndCreate(ctx, key, outcome); err != nil {
		r.logger.Warn("the outcome of a create could not be stored; to later requests it is unknown", "cause", err)
	}
	if beat, running := r.beats.LoadAndDelete(key); running {
		beat.(*time.Timer).Stop()
	}
}

// heartbeat tells all processes that this one is carrying out a create, and again after heartbeatInterval.
func (r *idempotencyRecords) heartbeat(key [sha256.Size]byte) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := r.store.KeepCreate(ctx, key); err != nil {
		r.logger.Warn("the heartbeat of a create could not be stored; later requests may take its outcome for unknown", "cause", err)
	}
	if beat, running := r.beats.Load(key); running {
		beat.(*time.Timer).Reset(heartbeatInterval)
	}
}
