package main

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream/state"
)

// replaySecret names the secret in a store that fingerprints of creates are made
// under.
const replaySecret = "idempotency"

// storedReplays keeps creates that came with an Idempotency-Key in a store, so that
// they outlive the process and count for all that share it.
type storedReplays struct {
	store  *state.Store
	logger *slog.Logger
	now    func() time.Time
	// alone is from when on this process has had the store for itself: what began
	// before runs no more. It is zero where others share the store.
	alone time.Time
	late  *lateOutcomes
}

// newStoredReplays keeps creates in a store that was just opened.
func newStoredReplays(store *state.Store, at string, logger *slog.Logger) storedReplays {
	r := storedReplays{store: store, logger: logger, now: time.Now, late: newLateOutcomes()}
	if strings.HasPrefix(at, "sqlite:") {
		r.alone = time.Now().Truncate(time.Microsecond) // as the store keeps it
	}
	return r
}

var _ proxy.ReplayStore = storedReplays{}

const (
	// replayTime bounds how long a create waits for the store.
	replayTime = 5 * time.Second
	// abandoned is the age from which a create that still runs is one whose process
	// is no more: longer than any tracker is given.
	abandoned = time.Hour
)

// Begin implements proxy.ReplayStore. Where the store cannot be asked the create is
// refused, since it may have been carried out before.
func (r storedReplays) Begin(ctx context.Context, key, content [sha256.Size]byte) (proxy.Replay, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, replayTime)
	defer cancel()
	known, claimed, err := r.store.BeginCreate(ctx, key, content)
	if err == nil { // else what is kept here waits for a store that can be asked
		if outcome, ended := r.late.take(key); ended && !claimed && known.Running {
			r.end(ctx, key, outcome)
			if outcome != nil {
				return *outcome, false, nil
			}
			known, claimed, err = r.store.BeginCreate(ctx, key, content)
		}
	}
	if err != nil {
		return proxy.Replay{}, false, &mapping.Error{
			Code: mapping.CodeUnavailable, Status: http.StatusServiceUnavailable, Reason: mapping.ReasonInternal, RetryAfter: time.Second, Err: err,
			Message: "It cannot be looked up whether a request with this Idempotency-Key was carried out before.",
		}
	}
	replay := proxy.Replay{Content: known.Content, Running: known.Running, Body: known.Body, Failed: known.Failed}
	if known.Running && (known.Since.Before(r.alone) || r.now().Sub(known.Since) > abandoned) {
		replay.Running, replay.Failed = false, proxy.UnknownCreate()
	}
	return replay, claimed, nil
}

// End implements proxy.ReplayStore. What cannot be written yet is kept until the key
// is asked for again. If the process ends before, it stays a create that runs, and is
// not carried out again.
func (r storedReplays) End(ctx context.Context, key [sha256.Size]byte, outcome *proxy.Replay) {
	ctx, cancel := context.WithTimeout(ctx, replayTime)
	defer cancel()
	r.end(ctx, key, outcome)
}

func (r storedReplays) end(ctx context.Context, key [sha256.Size]byte, outcome *proxy.Replay) {
	var kept *state.Create
	if outcome != nil {
		kept = &state.Create{Content: outcome.Content, Body: outcome.Body, Failed: outcome.Failed}
	}
	if err := r.store.EndCreate(ctx, key, kept); err != nil {
		r.logger.Warn("the outcome of a create could not be kept", "cause", err)
		r.late.put(key, outcome)
	}
}
