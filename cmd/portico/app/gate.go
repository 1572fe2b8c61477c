package app

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"portico/cmd/portico/config"
	"portico/proxy/admin/pages/transition"
	"portico/upstream"
)

// maxMissing bounds the callers that are remembered for each tracker.
const maxMissing = 100

// missingKeys remembers callers that had no key at a tracker, by name or by user agent, never by credential.
type missingKeys struct {
	mu   sync.Mutex
	seen map[string][]string // by tracker
}

// note remembers a caller.
func (m *missingKeys) note(tracker, name string, caller upstream.Caller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	label := cmp.Or(name, "a key without a name (user agent "+cmp.Or(caller.UserAgent, "unknown")+")")
	if seen := m.seen[tracker]; len(seen) < maxMissing && !slices.Contains(seen, label) {
		m.seen[tracker] = append(seen, label)
	}
}

// list returns the callers of one tracker.
func (m *missingKeys) list(tracker string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen[tracker])
}

// newGate joins the gate of the switchover with the comparison and both trackers.
func (rt *Runtime) newGate() *transition.Gate {
	candidate := rt.trackers[rt.cfg.Candidate]
	g := &transition.Gate{
		Switchover: rt.switchover, Report: rt.Canary.Report, Callers: map[string]upstream.Caller{}, Missing: rt.missing.list,
		OtherKeys: candidate.keys.Forwards() && rt.cfg.Canary.Credentials != config.Default().Canary.Credentials,
		Probe: func(ctx context.Context, tracker string, caller upstream.Caller) error {
			_, _, err := rt.trackers[tracker].client.FlagTypePlaces(ctx, caller, nil, nil)
			return err
		},
	}
	for _, named := range rt.callers {
		key := cmp.Or(named.Keys[rt.cfg.Primary], named.Keys[rt.cfg.Candidate])
		g.Callers[named.Name] = upstream.Caller{Credentials: upstream.Credentials{APIKey: key}, UserAgent: "Portico"}
	}
	return g
}
