package switchover

import (
	"time"

	"portico/mapping"
)

// Status is what there is to see of a switchover.
type Status struct {
	// Old and New are the trackers' names.
	Old string `json:"old"`
	New string `json:"new"`
	// Version is what a change is made on. Source is config or admin.
	Version int64  `json:"version"`
	Source  string `json:"source"`
	// Base is the digest of the configured rules, with the trackers that they are about.
	Base string `json:"base"`
	// Actor, Reason and Changed are those of the last change.
	Actor   string    `json:"actor,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Changed time.Time `json:"changed,omitzero"`
	Killed  *Kill     `json:"killed,omitempty"`
	// Undelivered, when not empty, says that only this process knows of the kill, and
	// why.
	Undelivered string `json:"undelivered,omitempty"`
	// Rules are in their order, with their hits since this process took them.
	Rules []RuleStatus `json:"rules"`
	// Passthrough is what counts for paths outside the seven operations.
	Passthrough PhasePair `json:"passthrough"`
	// Table is what a change begins with, Callers the names that it may use.
	Table   Table    `json:"table"`
	Callers []string `json:"callers"`
	// Stale, when not empty, is why the store could not be asked of late.
	Stale string `json:"stale,omitempty"`
	// Followed counts reads that went where the caller had written, Split reads
	// that both trackers answered, Refused writes that no one tracker could do.
	Followed int64 `json:"followed"`
	Split    int64 `json:"split"`
	Refused  int64 `json:"refused"`
	// Lookups counts questions for what a rule needed to know.
	Lookups int64 `json:"lookups"`
}

// RuleStatus is one rule and how often it decided.
type RuleStatus struct {
	Rule Rule `json:"rule"`
	// Hits are by the name of the tracker that was chosen.
	Hits map[string]int64 `json:"hits"`
}

// Decision is what the rules say of one call, with nothing sent but lookups.
type Decision struct {
	// Rule is the name of the rule that decides, Index its place.
	Rule  string `json:"rule"`
	Index int    `json:"index"`
	Reads Phase  `json:"reads"`
	// Writes is the phase of writes under the same rule.
	Writes Phase `json:"writes"`
	// Operation is what was asked for.
	Operation mapping.Operation `json:"operation"`
	// Objects are what this decision is about, such as "bug 5".
	Objects []string `json:"objects,omitempty"`
	// Tracker is the name of the one that answers, Compared that of the other if
	// it is compared.
	Tracker  string `json:"tracker"`
	Compared string `json:"compared,omitempty"`
	// Followed says that the caller's own last write decides and not the rule.
	Followed bool `json:"followed,omitempty"`
	// Killed says that the kill switch decides.
	Killed bool `json:"killed,omitempty"`
	// Looked lists what had to be looked up, in words.
	Looked []string `json:"looked,omitempty"`
	// Parts are set when both trackers answer, one for each.
	Parts []Decision `json:"parts,omitempty"`
}
