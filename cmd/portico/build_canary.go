package main

import (
	"fmt"
	"net/http"
	"time"

	"portico/mapping"
	"portico/proxy/admin"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/canary"
	"portico/upstream/transport"
)

// compared builds the comparison. Nothing of it is shared with what clients wait
// for: each tracker gets a second client with connections, limits and breakers of
// their own.
func (b *builder) compared() error {
	settings := b.cfg.Canary
	clients, trackers, reads := map[string]*bugzilla.Client{}, map[string]upstream.Tracker{}, map[string]*transport.Breaker{}
	for _, name := range []string{b.cfg.Primary, b.cfg.Candidate} {
		client, breakers, err := b.shadowClient(name)
		if err != nil {
			return err
		}
		clients[name], trackers[name], reads[name] = client, client, breakers.Reads
	}
	policy, err := b.shadowCallers()
	if err != nil {
		return err
	}
	rules, _ := canary.NewRules(b.cfg.equivalences(), time.Now()) // Load has reported what is wrong
	b.house.canary, err = canary.New(canary.Options{
		Trackers: trackers, Store: b.house.store.Store, Candidate: b.cfg.Candidate,
		Sampling: canary.Sampling{Default: settings.Sample, Operations: settings.Operations, Sticky: settings.Sticky},
		Workers:  settings.Workers, Queue: settings.Queue, PerSecond: settings.PerSecond, Timeout: settings.Timeout,
		MaxBody: int64(settings.MaxBody), Split: b.answerSplit(), ConfirmAfter: settings.ConfirmAfter, NoiseShare: settings.Noise,
		Samples: settings.KeepSamples, Caller: policy, Rules: rules, Plan: planner(clients),
		Refuses: func(tracker string) bool { return reads[tracker].Refuses() },
		Follows: settings.Follows, ReadBack: settings.ReadBack, Isolated: settings.Isolated, Marker: settings.Marker,
		Target: settings.Target / 100, Latency: canary.LatencyTarget{Ratio: settings.Latency.Ratio, Slack: settings.Latency.Slack},
		Logger: b.logger, Observer: canaryObserver{b.house.metrics},
	})
	if err != nil {
		return fmt.Errorf("set up the comparison: %w", err)
	}
	b.house.closing(func() { b.closeCanary() })
	return b.house.metrics.CanaryQueue(func() int { return b.house.canary.Load().Queued })
}

func (b *builder) closeCanary() {
	if err := b.house.canary.Close(); err != nil {
		b.logger.Warn("what was found last could not be kept", "cause", err)
	}
}

// shadowLabel is how metrics call the connections of comparisons.
func shadowLabel(name string) string { return "shadow:" + name }

// shadowClient builds the second client of a tracker.
func (b *builder) shadowClient(name string) (*bugzilla.Client, *transport.Breakers, error) {
	settings, most := b.cfg.Trackers[name], b.cfg.Canary.Workers
	stack, err := b.stack(name, settings, shadowLabel(name), transport.Options{
		Base:  transport.BaseOptions{MaxIdleConns: most, ResponseHeaderTimeout: b.cfg.Canary.Timeout},
		Limit: transport.LimitOptions{Slots: 2 * most, ReserveWrites: -1, ReserveReads: -1, Queue: 2 * most},
	})
	if err != nil {
		return nil, nil, err
	}
	if err := b.watchTransport(shadowLabel(name), stack); err != nil {
		return nil, nil, err
	}
	client, err := b.client(shadowLabel(name), settings, shadowed{stack})
	return client, stack.Breakers, err
}

// shadowed gives calls the lowest priority, and ends answers that nobody reads to
// their end.
type shadowed struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s shadowed) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := transport.WithShadow(r.Context())
	if most := upstream.Most(ctx); most > 0 {
		ctx = transport.WithMost(ctx, most)
	}
	return s.RoundTripper.RoundTrip(r.WithContext(ctx))
}

// canaryObserver hands what the comparison tells to the metrics.
type canaryObserver struct{ metrics *admin.Metrics }

// Compared implements canary.Observer.
func (o canaryObserver) Compared(operation mapping.Operation, outcome canary.Outcome, n int64) {
	o.metrics.Compared(string(operation), string(outcome), n)
}

// Dropped implements canary.Observer.
func (o canaryObserver) Dropped(operation mapping.Operation, reason canary.DropReason, n int64) {
	o.metrics.Dropped(string(operation), string(reason), n)
}

// equivalences gives the configured ones in the form of the room that applies them.
func (c *Config) equivalences() []canary.Equivalence {
	var list []canary.Equivalence
	for _, e := range c.Canary.Equivalences {
		list = append(list, canary.Equivalence{
			Name: e.Name, Type: canary.EquivalenceType(e.Type), Operation: mapping.Operation(e.Operation), Path: e.Path,
			Within: e.Within, Pattern: e.Pattern, Offset: int64(e.Offset), Table: e.Table,
			Owner: e.Owner, Reason: e.Reason, Expires: e.Expires.Time,
		})
	}
	return list
}
