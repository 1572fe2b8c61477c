package app

import (
	"context"
	"net/url"
	"time"

	"portico/cmd/portico/config"
	"portico/upstream"
	"portico/upstream/bugzilla"
	"portico/upstream/canary"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/switchover"
	"portico/upstream/switchover/idmap"
	"portico/upstream/transport"
)

// openCandidate builds what a second tracker needs: the store, its own components, the comparison and the switchover.
func (rt *Runtime) openCandidate(ctx context.Context, lookup config.Variables) error {
	if err := rt.resources.openStore(ctx, rt.cfg.State, rt.logger); err != nil {
		return err
	}
	if err := rt.openTracker(rt.cfg.Candidate, lookup); err != nil {
		return err
	}
	if settings := rt.cfg.Switchover.Settings; len(settings.IDs) > 0 && rt.resources.dry == nil {
		rt.ids = idmap.New(idmap.Options{Store: rt.resources.store, Settings: settings, Split: rt.replySplit()})
		for name, t := range rt.trackers {
			t.target.Check = func(ctx context.Context, path string, query url.Values, isOperation bool) error {
				return rt.ids.CheckPassing(ctx, rt.side(name), path, query, isOperation)
			}
		}
	}
	if len(rt.caches) == 2 { // a write to one tracker may reach the other in another way
		rt.caches[0].CopiedTo(rt.cfg.Switchover.Follow, rt.caches[1])
		rt.caches[1].CopiedTo(rt.cfg.Switchover.Follow, rt.caches[0])
	}
	if rt.resources.dry == nil {
		if err := rt.openCanary(lookup); err != nil {
			return err
		}
	}
	if err := rt.openJournal(lookup); err != nil {
		return err
	}
	var err error
	rt.switchover, err = rt.resources.openSwitchover(ctx, switchover.Options{
		Old: rt.cfg.Primary, New: rt.cfg.Candidate, Store: rt.resources.store, Settings: rt.switchoverSettings(),
	})
	return err
}

// openCanary builds the comparison. It shares nothing with what clients wait for: each tracker gets a second client with connections,
// limits and breakers of its own.
func (rt *Runtime) openCanary(lookup config.Variables) error {
	settings := rt.cfg.Canary
	trackers, keys := map[string]upstream.Tracker{}, map[string]switchover.Keys{}
	for name, t := range rt.trackers {
		if err := rt.openShadow(t); err != nil {
			return err
		}
		trackers[name] = rt.translated(name, t.shadow)
		shown, err := rt.cfg.ComparisonKeys(t.keys, lookup)
		if err != nil {
			return err
		}
		keys[name] = shown
	}
	rules, _ := compare.NewRules(settings.Equivalences, time.Now()) // config has reported problems
	rt.Canary = canary.New(canary.Options{
		Trackers: trackers, Store: rt.resources.store, Reference: rt.cfg.Primary, Candidate: rt.cfg.Candidate,
		Sampling: canary.Sampling{Default: settings.Sample, Operations: settings.Operations, Sticky: settings.Sticky},
		Workers:  settings.Workers, Queue: settings.Queue, PerSecond: settings.PerSecond, Timeout: settings.Timeout,
		MaxBody: int64(settings.MaxBody), Split: rt.replySplit(), ConfirmAfter: settings.ConfirmAfter, NoiseShare: settings.Noise,
		Samples: settings.KeepSamples, Rules: rules, Caller: func(caller upstream.Caller, tracker string) (upstream.Caller, bool) {
			return keys[tracker].ForComparison(caller)
		},
		CallerName: rt.callers.Name,
		Plan: func(ctx context.Context, tracker string, call upstream.Call) ([]byte, error) {
			return rt.trackers[tracker].shadow.ShowPlan(ctx, call)
		},
		Address: func(ctx context.Context, tracker string, call upstream.Call) string {
			return rt.trackers[tracker].shadow.ReadAddress(ctx, call)
		},
		Refuses: func(tracker string) bool { return rt.stacks[shadowLabel(tracker)].Reads.Refuses() },
		Follows: settings.Follows, ReadBack: settings.ReadBack, Isolated: settings.Isolated, Marker: settings.Marker,
		Target: settings.Target / 100, Latency: verdict.LatencyTarget{Ratio: settings.Latency.Ratio, Slack: settings.Latency.Slack},
		Logger: rt.logger, Observer: rt.resources.metrics,
	})
	rt.onClose(func() {
		if err := rt.Canary.Close(); err != nil {
			rt.logger.Warn("the last findings could not be stored", "cause", err)
		}
	})
	return nil
}

// shadowLabel is the label of a tracker's connections for comparisons.
func shadowLabel(tracker string) string { return "shadow:" + tracker }

// openShadow builds the client of a tracker for comparisons.
func (rt *Runtime) openShadow(t *tracker) error {
	workers, label := rt.cfg.Canary.Workers, shadowLabel(t.name)
	options := transport.Options{
		Base:  transport.BaseOptions{MaxIdleConns: workers, HeaderTimeout: rt.cfg.Canary.Timeout},
		Limit: transport.LimitOptions{Slots: 2 * workers, ReserveWrites: -1, Queue: 2 * workers},
	}
	if t.name == rt.cfg.Candidate {
		options.Tries = 1 // a retry would hide a failure of the candidate
	}
	stack, err := rt.openStack(t, label, options)
	if err != nil {
		return err
	}
	t.shadow, err = rt.newClient(t, label, bugzilla.ForComparison(stack), nil) // package canary has the keys
	return err
}

// translated is a tracker with the ids and names that clients know.
func (rt *Runtime) translated(name string, t upstream.Tracker) upstream.Tracker {
	if rt.ids == nil {
		return t
	}
	return rt.ids.Tracker(rt.side(name), t)
}

// side is the side of a tracker in the store of ids.
func (rt *Runtime) side(name string) idmap.Side {
	if name == rt.cfg.Primary {
		return idmap.OldSide
	}
	return idmap.NewSide
}

// switchoverSettings join the switchover with both trackers.
func (rt *Runtime) switchoverSettings() switchover.Settings {
	metrics := rt.resources.metrics
	settings := switchover.Settings{
		Table: rt.cfg.Switchover.Table(), Trackers: map[string]upstream.Tracker{}, Locate: map[string]switchover.Locator{},
		CallerNames: config.SortedKeys(rt.cfg.Callers), Caller: rt.callers.Name, Shadow: rt.Canary, Follow: rt.cfg.Switchover.Follow,
		Journal:        rt.switchoverJournal(),
		UnknownOutcome: max(time.Minute, 4*rt.maxCallTime()), // as for the cache
		Split:          rt.replySplit(), Logger: rt.logger,
		Observer: switchover.Observer{
			Routed: metrics.Routed, Refused: metrics.RefusedWrite, LookedUp: metrics.Lookup, Changed: metrics.Phases,
		},
	}
	for name, t := range rt.trackers {
		settings.Trackers[name], settings.Locate[name] = rt.translated(name, t.front()), t.client
		if rt.ids != nil {
			settings.Locate[name] = rt.ids.Locator(rt.side(name), t.client)
		}
	}
	if dry := rt.resources.dry; dry != nil {
		dry.Rules.Replace(&settings, dry.table)
	}
	return settings
}
