package app

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"portico/proxy/admin"
	"portico/upstream/transport"
)

// watchFor is how long trackers are probed after a request of an operator: longer than the usual time between two scrapes.
const watchFor = 2 * time.Minute

// watched is what the alarm depends on and no event tells of.
func (rt *Runtime) watched() admin.Watched {
	w := admin.Watched{
		Status:       rt.status(),
		Certificates: map[string]*tls.Config{"the listener of clients": rt.clientsTLS, "the listener of operators": rt.operatorsTLS},
		Folders:      map[string]string{"files of requests": cmp.Or(rt.cfg.Blobs.Dir, os.TempDir())},
	}
	if watching := time.Since(time.Unix(0, rt.looked.Load())) < watchFor; watching {
		for _, t := range rt.trackers {
			t.stack.Probe()
		}
	}
	if file, local := strings.CutPrefix(rt.cfg.State, "sqlite:"); local && rt.switchover != nil {
		w.Folders["the state"] = filepath.Dir(file)
	}
	return w
}

// shown is what /status shows now.
func (rt *Runtime) shown() admin.Status {
	s := rt.status()
	s.Alarm, s.Traffic = rt.metrics.Alarm(), rt.metrics.Traffic()
	return s
}

// status is the present state without alarm and traffic, which need more. It waits for no tracker.
func (rt *Runtime) status() admin.Status {
	s := admin.Status{
		Version: ThisVersion(), Started: rt.started, Primary: rt.cfg.Primary, NeedRestart: rt.needRestart,
		Trackers: map[string]admin.TrackerStatus{},
	}
	if c := rt.trackers[rt.cfg.Primary].cache; c != nil {
		s.Cache = new(c.Status())
	}
	if rt.Canary != nil {
		load := rt.Canary.Load()
		s.Canary = &admin.CanaryStatus{Candidate: rt.cfg.Candidate, Sample: rt.Canary.Sampling().Default, Queued: load.Queued, Waiting: load.Waiting}
	}
	candidateServes := false
	if rt.switchover != nil {
		held := rt.switchover.Status()
		s.Switchover = &admin.SwitchoverStatus{
			Version: held.Version, Source: held.Source, Killed: held.Killed != nil, Undelivered: held.Undelivered, Stale: held.Stale,
		}
		candidateServes = held.Passthrough.Reads.New() || held.Passthrough.Writes.New()
		for _, each := range held.Rules {
			s.Switchover.Rules = append(s.Switchover.Rules, admin.RuleStatus{Rule: each.Rule.Name, Reads: each.Rule.Reads, Writes: each.Rule.Writes, GoingBack: each.GoingBack})
			candidateServes = candidateServes || each.Rule.Reads.New() || each.Rule.Writes.New()
		}
	}
	if rt.recorded != nil {
		s.Journal = rt.recorded.Last()
	}
	for name, t := range rt.trackers {
		dialect, version, certain := t.dialect()
		load := t.stack.Limiter.Load()
		s.Trackers[name] = admin.TrackerStatus{
			URL: t.settings.URL, Address: t.base.Host, Serves: name == rt.cfg.Primary || candidateServes, Problem: t.problem(),
			Dialect: dialect, TrackerVersion: version, DialectPinned: certain,
			Breakers: []transport.Status{t.stack.Reads.Status(), t.stack.Writes.Status()}, Slots: load.Slots, InUse: load.InUse,
		}
	}
	return s
}

// problem is a reason why the tracker serves no request, with its remedy; empty if none is known.
func (t *tracker) problem() string {
	if to := t.client.Redirect(); to != "" {
		return fmt.Sprintf("tracker %s redirects all requests to %s: set trackers.%s.host: %s", t.name, to, t.name, to)
	}
	if t.client.Absent() {
		return fmt.Sprintf("no tracker responds at %s: GET /rest/version has status 404 and no JSON; check trackers.%s.url", t.settings.URL, t.name)
	}
	return ""
}
