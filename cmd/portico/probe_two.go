package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/state"
)

// probesOfTwo lists what a second tracker needs besides an answer of its own: the
// store, and the marker where the candidate is said to be isolated.
func probesOfTwo(cfg Config) []probe {
	if cfg.Candidate == "" {
		return nil
	}
	all := []probe{{
		name: "state",
		try:  func(ctx context.Context) (string, error) { return probeState(ctx, cfg.State) },
	}}
	if cfg.Canary.Isolated {
		all = append(all, probe{
			name: "marker",
			try:  func(ctx context.Context) (string, error) { return probeMarker(ctx, cfg) },
		})
	}
	return all
}

// probeState opens the store as start-up does, which brings its form up to date.
func probeState(ctx context.Context, at string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	store, err := state.Open(ctx, at)
	if err != nil {
		return "", err
	}
	_, known, failed := store.CurrentRevision(ctx)
	if err := errors.Join(failed, store.Close()); err != nil {
		return "", err
	}
	if known {
		return "opens, and holds rules of an earlier run", nil
	}
	return "opens, and is empty", nil
}

// probeMarker asks both trackers for the product that only the candidate has.
func probeMarker(ctx context.Context, cfg Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if there, err := hasProduct(ctx, cfg.Trackers[cfg.Candidate], cfg.Canary.Marker); err != nil {
		return "", fmt.Errorf("asking the candidate: %w", err)
	} else if !there {
		return "", fmt.Errorf("the candidate has no product %q that everybody may see", cfg.Canary.Marker)
	}
	if there, err := hasProduct(ctx, cfg.Trackers[cfg.Primary], cfg.Canary.Marker); err != nil {
		return "", fmt.Errorf("asking the primary tracker: %w", err)
	} else if there {
		return "", fmt.Errorf("the primary tracker has the product %q too, so it proves nothing", cfg.Canary.Marker)
	}
	return "the candidate has it, the primary tracker has not", nil
}

// hasProduct asks a tracker, without any credential, for the flag types of a
// product.
func hasProduct(ctx context.Context, t TrackerConfig, product string) (bool, error) {
	base, err := trackerBase("probed", t)
	if err != nil {
		return false, err
	}
	settings, err := t.TLS().Client()
	if err != nil {
		return false, err
	}
	transport := &http.Transport{TLSClientConfig: settings, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client, err := bugzilla.New(bugzilla.Options{URL: base, Dialect: t.Dialect, Transport: transport})
	if err != nil {
		return false, err
	}
	reply, err := client.FlagTypes(ctx, upstream.Caller{}, mapping.FlagTypesRequest{Product: product})
	if err == nil {
		return true, reply.Close()
	}
	const noProduct = 106 // or one that is out of sight
	if said, ok := errors.AsType[*mapping.Error](err); ok && said.FromTracker() && (said.Code == noProduct || said.Code == mapping.CodeNotFound) {
		return false, nil
	}
	return false, err
}
