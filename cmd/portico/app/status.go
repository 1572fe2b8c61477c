package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"portico/cache"
	"portico/cmd/portico/config"
	"portico/proxy/admin"
	"portico/upstream/journal"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// Status is what /status shows.
type Status struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Primary string    `json:"primary"`
	// Alarm and Traffic are those of the process.
	Alarm   admin.Alarm   `json:"alarm"`
	Traffic admin.Traffic `json:"traffic"`
	// NeedRestart are the keys that the file has changed and that take effect at the next start.
	NeedRestart []string                 `json:"need_restart,omitempty"`
	Trackers    map[string]TrackerStatus `json:"trackers"`
	Cache       *cache.Status            `json:"cache,omitempty"`
	// Canary and Switchover are nil without a candidate.
	Canary     *canaryStatus     `json:"canary,omitempty"`
	Switchover *switchoverStatus `json:"switchover,omitempty"`
	// Journal is as of some seconds ago, and nil where nothing is recorded.
	Journal *journal.Status `json:"journal,omitempty"`
}

// TrackerStatus is the state of one tracker in /status.
type TrackerStatus struct {
	URL string `json:"url"`
	// Problem is a reason why the tracker serves no request, with its remedy.
	Problem        string             `json:"problem,omitempty"`
	Dialect        string             `json:"dialect"`
	TrackerVersion string             `json:"tracker_version,omitempty"`
	DialectPinned  bool               `json:"dialect_pinned"`
	Breakers       []transport.Status `json:"breakers"`
	Slots          int                `json:"slots"`
	InUse          int                `json:"in_use"`
}

// canaryStatus is the comparison in brief; its pages have the rest.
type canaryStatus struct {
	Candidate string  `json:"candidate"`
	Sample    float64 `json:"sample"`
	Queued    int     `json:"queued"`
	Waiting   int     `json:"waiting"`
}

// switchoverStatus is the switchover in brief; its pages have the rest.
type switchoverStatus struct {
	Version int64  `json:"version"`
	Source  string `json:"source"`
	Killed  bool   `json:"killed"`
	// Undelivered, when not empty, says that only this process knows of the kill.
	Undelivered string       `json:"undelivered,omitempty"`
	Stale       string       `json:"stale,omitempty"`
	Rules       []ruleStatus `json:"rules"`
}

type ruleStatus struct {
	Rule   string           `json:"rule"`
	Reads  switchover.Phase `json:"reads"`
	Writes switchover.Phase `json:"writes"`
	// GoingBack says whether the rule's writes can go back to the primary without loss.
	GoingBack journal.Outlook `json:"going_back"`
}

// watchFor is how long trackers are probed after the state was read: longer than the usual time between two scrapes.
const watchFor = 2 * time.Minute

// watched is what the alarm depends on and no event tells of.
func (rt *Runtime) watched() admin.Watched {
	w := admin.Watched{
		Trackers:     map[string]admin.Tracker{},
		Unready:      rt.trackers[rt.cfg.Primary].problem(),
		Certificates: map[string]*tls.Config{"the listener of clients": rt.clientsTLS, "the listener of operators": rt.operatorsTLS},
		Folders:      map[string]string{"files of requests": cmp.Or(rt.cfg.Blobs.Dir, os.TempDir())},
	}
	if watching := time.Since(time.Unix(0, rt.looked.Load())) < watchFor; watching {
		for _, t := range rt.trackers {
			t.stack.Probe()
		}
	}
	for name, t := range rt.trackers {
		w.Trackers[name] = admin.Tracker{Breakers: t.breakers(), Idle: !rt.serves(name), Address: t.base.Host}
	}
	if rt.switchover != nil {
		w.Stale = rt.switchover.Status(context.Background()).Stale
		if file, local := strings.CutPrefix(rt.cfg.State, "sqlite:"); local {
			w.Folders["the state"] = filepath.Dir(file)
		}
	}
	return w
}

// serves reports whether the tracker may respond to clients: a candidate does so where a rule says so.
func (rt *Runtime) serves(name string) bool {
	if name == rt.cfg.Primary {
		return true
	}
	now := rt.switchover.Status(context.Background())
	return now.Passthrough.Reads.New() || now.Passthrough.Writes.New() || slices.ContainsFunc(now.Rules, func(r switchover.RuleStatus) bool {
		return r.Rule.Reads.New() || r.Rule.Writes.New()
	})
}

// status is what /status shows now. It waits for no tracker.
func (rt *Runtime) status() Status {
	s := Status{
		Version: version(), Started: rt.started, Alarm: rt.metrics.Alarm(), Traffic: rt.metrics.Traffic(),
		Primary: rt.cfg.Primary, NeedRestart: rt.needRestart,
		Trackers: map[string]TrackerStatus{},
	}
	for name, t := range rt.trackers {
		s.Trackers[name] = t.status()
	}
	if c := rt.trackers[rt.cfg.Primary].cache; c != nil {
		s.Cache = new(c.Status())
	}
	if rt.Canary != nil {
		load := rt.Canary.Load()
		s.Canary = &canaryStatus{rt.cfg.Candidate, rt.Canary.Sampling().Default, load.Queued, load.Waiting}
	}
	if rt.switchover != nil {
		held := rt.switchover.Status(context.Background())
		s.Switchover = &switchoverStatus{
			Version: held.Version, Source: held.Source, Killed: held.Killed != nil, Undelivered: held.Undelivered, Stale: held.Stale,
		}
		for _, each := range held.Rules {
			s.Switchover.Rules = append(s.Switchover.Rules, ruleStatus{each.Rule.Name, each.Rule.Reads, each.Rule.Writes, each.GoingBack})
		}
	}
	if held := rt.journal; held != nil {
		s.Journal = held.Last()
	}
	return s
}

func (t *tracker) status() TrackerStatus {
	dialect, version, certain := t.dialect()
	load := t.stack.Limiter.Load()
	return TrackerStatus{
		URL: config.RedactURL(t.settings.URL), Problem: t.problem(), Dialect: dialect, TrackerVersion: version, DialectPinned: certain,
		Breakers: t.breakers(),
		Slots:    load.Slots, InUse: load.InUse,
	}
}

func (t *tracker) breakers() []transport.Status {
	return []transport.Status{t.stack.Reads.Status(), t.stack.Writes.Status()}
}

// problem is a reason why the tracker serves no request, with its remedy; empty if none is known.
func (t *tracker) problem() string {
	if to := t.client.Redirect(); to != "" {
		return fmt.Sprintf("tracker %s redirects all requests to %s: set trackers.%s.host: %s", t.name, to, t.name, to)
	}
	if t.client.Absent() {
		return fmt.Sprintf("no tracker responds at %s: GET /rest/version has status 404 and no JSON; check trackers.%s.url", config.RedactURL(t.settings.URL), t.name)
	}
	return ""
}
