package admin

import (
	"time"

	"portico/cache"
	"portico/upstream/journal"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// Status is what /status and the first page show. It holds no credential.
type Status struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Primary string    `json:"primary"`
	Alarm   Alarm     `json:"alarm"`
	Traffic Traffic   `json:"traffic"`
	// NeedRestart are the keys that the file has changed and that take effect at the next start.
	NeedRestart []string                 `json:"need_restart,omitempty"`
	Trackers    map[string]TrackerStatus `json:"trackers"`
	Cache       *cache.Status            `json:"cache,omitempty"`
	// Canary and Switchover are nil without a candidate.
	Canary     *CanaryStatus     `json:"canary,omitempty"`
	Switchover *SwitchoverStatus `json:"switchover,omitempty"`
	// Journal is as of some seconds ago, and nil where nothing is recorded.
	Journal *journal.Status `json:"journal,omitempty"`
}

// TrackerStatus is the state of one tracker in /status.
type TrackerStatus struct {
	URL string `json:"url"`
	// Address is its host and port, which the alarm names.
	Address string `json:"-"`
	// Serves says that requests of clients reach it: not those of a candidate to which no rule sends any.
	Serves bool `json:"serves_clients"`
	// Problem is a reason why the tracker serves no request, with its remedy.
	Problem        string             `json:"problem,omitempty"`
	Dialect        string             `json:"dialect"`
	TrackerVersion string             `json:"tracker_version,omitempty"`
	DialectPinned  bool               `json:"dialect_pinned"`
	Breakers       []transport.Status `json:"breakers"`
	Slots          int                `json:"slots"`
	InUse          int                `json:"in_use"`
}

// CanaryStatus is the comparison in brief; its pages have the rest.
type CanaryStatus struct {
	Candidate string  `json:"candidate"`
	Sample    float64 `json:"sample"`
	Queued    int     `json:"queued"`
	Waiting   int     `json:"waiting"`
}

// SwitchoverStatus is the switchover in brief; its pages have the rest.
type SwitchoverStatus struct {
	Version int64  `json:"version"`
	Source  string `json:"source"`
	Killed  bool   `json:"killed"`
	// Undelivered, when not empty, says that only this process knows of the kill.
	Undelivered string       `json:"undelivered,omitempty"`
	Stale       string       `json:"stale,omitempty"`
	Rules       []RuleStatus `json:"rules"`
}

// RuleStatus is a rule and its phases in /status.
type RuleStatus struct {
	Rule   string           `json:"rule"`
	Reads  switchover.Phase `json:"reads"`
	Writes switchover.Phase `json:"writes"`
	// GoingBack says whether the rule's writes can go back to the primary without loss.
	GoingBack journal.Outlook `json:"going_back"`
}
