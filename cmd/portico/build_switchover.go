package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream"
	"portico/upstream/switchover"
)

// twoTrackers builds what a second tracker needs: its own rooms, the store, the
// comparison and the switchover. Without one there is nothing of it but a kill that
// is in force still.
func (b *builder) twoTrackers() error {
	if b.cfg.Candidate == "" {
		return b.lasting.memory.Unturned(b.cfg.Primary)
	}
	held, err := b.lasting.acquire(b.lasting.life, b.cfg.State, b.logger)
	if err != nil {
		return err
	}
	b.house.store = held
	b.house.closing(func() { b.lasting.release(held, b.logger) })
	if _, err := b.tracker(b.cfg.Candidate); err != nil {
		return err
	}
	b.copied()
	if err := b.compared(); err != nil {
		return err
	}
	return b.switched()
}

// switched builds the switchover before both trackers.
func (b *builder) switched() error {
	callers, err := b.callers()
	if err != nil {
		return err
	}
	board := &phaseBoard{metrics: b.house.metrics}
	o := switchover.Options{
		Old: b.cfg.Primary, New: b.cfg.Candidate, Table: b.cfg.table(),
		Trackers: map[string]upstream.Tracker{}, Locate: map[string]switchover.Locator{},
		CallerNames: sortedKeys(b.cfg.Callers), Caller: callers.name,
		Shadow: b.house.canary, Memory: b.lasting.memory, Store: b.house.store.Store, Follow: negativeIfNone(b.cfg.Switchover.Follow),
		Doubt: b.doubt(), Split: b.answerSplit(), Logger: b.logger, Observer: board.observer(),
	}
	for name, t := range b.house.trackers {
		o.Trackers[name], o.Locate[name] = t.front(), t.client
	}
	if b.house.switchover, err = switchover.New(b.lasting.life, o); err != nil {
		return fmt.Errorf("set up the switchover: %w", err)
	}
	b.house.closing(func() { _ = b.house.switchover.Close() }) // it has no way to fail
	board.moves.Store(b.house.switchover)
	board.show()
	return nil
}

// doubt is how long a tracker may still carry out a write that nobody waits for: as long as for the cache.
func (b *builder) doubt() time.Duration {
	longest := time.Duration(0)
	for _, settings := range b.cfg.Trackers {
		longest = max(longest, settings.Timeout+b.cfg.Limits.QueueWait)
	}
	return max(time.Minute, 4*longest)
}

// negativeIfNone turns the configuration's zero, which means none, into the
// switchover's.
func negativeIfNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// choose gives the function that finds the tracker for a path outside the
// interface, or nil where there is one only.
func (b *builder) choose() func(upstream.Caller, bool) *proxy.Target {
	moves := b.house.switchover
	if moves == nil {
		return nil
	}
	targets := map[string]*proxy.Target{}
	for name, t := range b.house.trackers {
		targets[name] = t.target()
	}
	return func(caller upstream.Caller, write bool) *proxy.Target {
		return targets[moves.Passthrough(caller, write)]
	}
}

// observer hands what the switchover tells to the metrics.
func (p *phaseBoard) observer() switchover.Observer {
	metrics := p.metrics
	return switchover.Observer{
		Routed: func(operation mapping.Operation, rule, tracker string) {
			metrics.Routed(string(operation), rule, tracker)
		},
		Refused: func(operation mapping.Operation) { metrics.RefusedWrite(string(operation)) },
		Looked:  metrics.Lookup,
		Changed: func(int64, bool) { p.show() },
	}
}

// phaseBoard shows operators the rules that count.
type phaseBoard struct {
	metrics *admin.Metrics
	// moves is nil as long as the switchover is being made.
	moves atomic.Pointer[switchover.Switchover]
}

func (p *phaseBoard) show() {
	moves := p.moves.Load()
	if moves == nil {
		return
	}
	status := moves.Status(context.Background())
	var rules []admin.RulePhase
	for _, each := range status.Rules {
		rules = append(rules, admin.RulePhase{Rule: each.Rule.Name, Reads: string(each.Rule.Reads), Writes: string(each.Rule.Writes)})
	}
	p.metrics.Phases(status.Version, status.Killed != nil, rules)
}
