package main

import (
	"context"
	"runtime/debug"
	"time"

	"portico/cache"
	"portico/upstream/transport"
)

// status is what /status shows.
type status struct {
	Version  string                   `json:"version"`
	Started  time.Time                `json:"started"`
	Primary  string                   `json:"primary"`
	Trackers map[string]trackerStatus `json:"trackers"`
	Cache    *cacheStatus             `json:"cache,omitempty"`
	// Canary and Switchover are there where there is a candidate.
	Canary     *canaryStatus     `json:"canary,omitempty"`
	Switchover *switchoverStatus `json:"switchover,omitempty"`
}

// canaryStatus is the comparison in brief; its pages have the rest.
type canaryStatus struct {
	Candidate string  `json:"candidate"`
	Sample    float64 `json:"sample"`
	Queued    int     `json:"queued"`
	Waiting   int     `json:"waiting"`
}

// switchoverStatus is who answers, in brief.
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
	Rule   string `json:"rule"`
	Reads  string `json:"reads"`
	Writes string `json:"writes"`
}

type trackerStatus struct {
	URL            string          `json:"url"`
	Dialect        string          `json:"dialect"`
	TrackerVersion string          `json:"tracker_version,omitempty"`
	DialectPinned  bool            `json:"dialect_pinned"`
	Breakers       []breakerStatus `json:"breakers"`
	Slots          int             `json:"slots"`
	InUse          int             `json:"in_use"`
}

type breakerStatus struct {
	Breaker    string          `json:"breaker"`
	State      string          `json:"state"`
	Since      time.Time       `json:"since"`
	LastReason string          `json:"last_reason,omitempty"`
	Successes  int             `json:"successes"`
	Failures   int             `json:"failures"`
	Opens      uint64          `json:"opens"`
	Rejected   uint64          `json:"rejected"`
	History    []breakerChange `json:"history"`
}

type breakerChange struct {
	At     time.Time `json:"at"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Reason string    `json:"reason,omitempty"`
}

func showBreaker(s transport.Status) breakerStatus {
	shown := breakerStatus{
		Breaker: s.Breaker, State: string(s.State), Since: s.Since, LastReason: string(s.Reason),
		Successes: s.Successes, Failures: s.Failures, Opens: s.Opens, Rejected: s.Rejected, History: []breakerChange{},
	}
	for _, change := range s.History {
		shown.History = append(shown.History, breakerChange{
			At: change.At, From: string(change.From), To: string(change.To), Reason: string(change.Reason),
		})
	}
	return shown
}

type cacheStatus struct {
	Redis       bool `json:"redis"`
	Embedded    bool `json:"embedded"`
	Subscribed  bool `json:"subscribed"`
	Undelivered bool `json:"undelivered"`
	TrackerSick bool `json:"tracker_sick"`
	LocalItems  int  `json:"local_items"`
}

func programVersion() string {
	info, _ := debug.ReadBuildInfo()
	return buildVersion(info)
}

// status gives the function behind /status. It waits for nobody.
func (b *builder) status() func(context.Context) any {
	started := time.Now()
	rooms, cfg := &b.house, b.cfg
	return func(context.Context) any {
		s := status{Version: programVersion(), Started: started, Primary: cfg.Primary, Trackers: map[string]trackerStatus{}}
		for name, t := range rooms.trackers {
			s.Trackers[name] = t.status()
		}
		s.Cache = showCache(rooms.trackers[cfg.Primary].cache)
		s.Canary, s.Switchover = rooms.canaryStatus(cfg.Candidate), rooms.switchoverStatus()
		return s
	}
}

func (t *trackerRooms) status() trackerStatus {
	dialect, told, certain := t.client.Pinned()
	load := t.stack.Limiter.Load()
	return trackerStatus{
		URL: redactURL(t.settings.URL), Dialect: dialect, TrackerVersion: told, DialectPinned: certain,
		Breakers: []breakerStatus{showBreaker(t.stack.Breakers.Reads.Status()), showBreaker(t.stack.Breakers.Writes.Status())},
		Slots:    load.Slots, InUse: load.InUse,
	}
}

func showCache(c *cache.Cache) *cacheStatus {
	if c == nil {
		return nil
	}
	held := c.Status()
	return &cacheStatus{
		Redis: held.Redis, Embedded: held.Embedded, Subscribed: held.Subscribed,
		Undelivered: held.Undelivered, TrackerSick: held.TrackerSick, LocalItems: held.LocalItems,
	}
}

func (h *house) canaryStatus(candidate string) *canaryStatus {
	if h.canary == nil {
		return nil
	}
	load := h.canary.Load()
	return &canaryStatus{Candidate: candidate, Sample: h.canary.Sampling().Default, Queued: load.Queued, Waiting: load.Waiting}
}

func (h *house) switchoverStatus() *switchoverStatus {
	if h.switchover == nil {
		return nil
	}
	held := h.switchover.Status(context.Background())
	shown := &switchoverStatus{
		Version: held.Version, Source: held.Source, Killed: held.Killed != nil, Undelivered: held.Undelivered, Stale: held.Stale,
	}
	for _, each := range held.Rules {
		shown.Rules = append(shown.Rules, ruleStatus{each.Rule.Name, string(each.Rule.Reads), string(each.Rule.Writes)})
	}
	return shown
}
