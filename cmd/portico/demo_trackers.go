package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"portico/test/tracker"
)

// demoTrackers are the two reference trackers of the demo. The second one follows
// the first.
type demoTrackers struct {
	primary, candidate *listener
	servers            []*tracker.Server
	ended              chan error
}

// demoQuirks are the planted differences: those of the second tracker, and what is
// different on each read on both.
func demoQuirks(same bool) (primary, candidate []tracker.Quirk) {
	if same {
		return nil, nil
	}
	return []tracker.Quirk{tracker.QuirkVolatile}, []tracker.Quirk{
		tracker.QuirkVolatile, tracker.QuirkMissingField, tracker.QuirkChangedType, tracker.QuirkReordered,
		tracker.QuirkWrongGroupValues, tracker.QuirkSlow, tracker.QuirkLag,
	}
}

// startDemoTrackers starts both, each on a free port of this machine.
func startDemoTrackers(same bool, cfg Config, logger *slog.Logger) (*demoTrackers, error) {
	ofPrimary, ofCandidate := demoQuirks(same)
	first := tracker.New(tracker.Options{Seed: tracker.SeedDemo, Quirks: ofPrimary})
	second := tracker.New(tracker.Options{Follows: first, Quirks: ofCandidate})
	d := &demoTrackers{servers: []*tracker.Server{first, second}, ended: make(chan error, 2)}
	var err error
	if d.primary, err = listen("the reference tracker", "127.0.0.1:0", first, cfg, logger); err != nil {
		return nil, errors.Join(err, first.Close(), second.Close())
	}
	if d.candidate, err = listen("the second reference tracker", "127.0.0.1:0", second, cfg, logger); err != nil {
		return nil, errors.Join(err, d.primary.socket.Close(), first.Close(), second.Close())
	}
	for _, l := range []*listener{d.primary, d.candidate} {
		go func() { d.ended <- l.run() }()
	}
	return d, nil
}

// close ends both as long as ctx lasts.
func (d *demoTrackers) close(ctx context.Context) error {
	var failed error
	for _, server := range d.servers {
		failed = errors.Join(failed, server.Close())
	}
	for _, l := range []*listener{d.primary, d.candidate} {
		failed = errors.Join(failed, l.close(ctx), <-d.ended)
	}
	return failed
}

// demoKey finds the API key of a user of the demo by the part of the login
// before the @.
func demoKey(user string) string {
	for login, key := range tracker.Keys(tracker.SeedDemo) {
		if name, _, _ := strings.Cut(login, "@"); name == user {
			return key
		}
	}
	return ""
}
