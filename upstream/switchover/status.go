package switchover

import (
	"time"

	"portico/upstream/journal"
)

// Status is the state of a switchover as operators see it.
type Status struct {
	// Old and New are the trackers' names.
	Old string `json:"old"`
	New string `json:"new"`
	// Version is the one that a change is made on. Source is config or admin.
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
	// CopyingPaused says that writes are recorded and not copied, as of some seconds ago.
	CopyingPaused bool `json:"copying_paused,omitempty"`
	// Moving names the rules whose writes wait until they are moved to the other tracker.
	Moving []string `json:"moving,omitempty"`
	// Rules are in their order, with their hits since this process took them over.
	Rules []RuleStatus `json:"rules"`
	// Passthrough is what holds for paths outside the seven operations.
	Passthrough PhasePair `json:"passthrough"`
	// Table is what a change begins with, Callers the names that it may use.
	Table   Table    `json:"table"`
	Callers []string `json:"callers"`
	// Stale, when not empty, is why the store could not be asked of late.
	Stale string `json:"stale,omitempty"`
	// Followed counts reads that went where the caller had written, Split reads
	// that both trackers responded to, Refused writes that no one tracker could carry out.
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
	// GoingBack says whether the rule's writes can go back to the old tracker without loss, as of some seconds ago.
	GoingBack journal.Outlook `json:"going_back"`
}

// GoingBack says whether the writes of a rule, which are in a phase, can go back to the old tracker without loss.
func (s Status) GoingBack(writes Phase, rule Rule, recorded *journal.Status) journal.Outlook {
	if !writes.New() {
		return journal.Outlook{State: journal.OutlookSafe} // no write is elsewhere
	}
	if s.precedesKill(recorded) {
		recorded = nil
	}
	return s.Outlook(rule, s.Old, recorded)
}

// Outlook says whether the writes of a rule can move to a tracker without losing those of the other one.
func (s Status) Outlook(rule Rule, receiver string, recorded *journal.Status) journal.Outlook {
	scope := journal.Scope{Rule: rule.Name, Receiver: receiver, Replicates: rule.Replicate, PassedCopied: s.Table.PassedCopied}
	for _, each := range s.Table.Rules {
		scope.Rules = append(scope.Rules, each.Name)
	}
	return recorded.Outlook(scope)
}

// killSpread is how long it takes at most until each process that reaches the store goes by a kill.
const killSpread = 2 * time.Second

// precedesKill reports whether a state of the journal may lack writes that came before the kill, and does not say that copying is paused.
func (s Status) precedesKill(recorded *journal.Status) bool {
	return s.Killed != nil && recorded != nil && recorded.Read.Before(s.Killed.At.Add(killSpread))
}

// Status tells which rules are in force and how often each decided.
func (s *Switchover) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status(s.rules.Load())
}

// status is Status; the caller holds mu.
func (s *Switchover) status(rules *ruleSet) Status {
	revision := rules.revision
	status := Status{
		Callers: append([]string{}, rules.CallerNames...),
		Old:     s.names[oldSide], New: s.names[newSide], Version: revision.Version, Source: revision.Source, Base: s.base,
		Actor: revision.Actor, Reason: revision.Reason, Changed: revision.At, Killed: rules.killed, Stale: s.stale,
		Passthrough: rules.passthrough, Table: rules.source,
		Followed: s.followed.Load(), Split: s.split.Load(), Refused: s.refusals.Load(), Lookups: s.lookups.Load(),
	}
	var recorded *journal.Status
	if rules.Journal != nil {
		recorded = rules.Journal.Last()
		status.CopyingPaused = recorded != nil && recorded.Paused || status.precedesKill(recorded)
	}
	for i, rule := range rules.source.Rules { // in the phases that a kill takes back
		hits := &rules.hits[i]
		status.Rules = append(status.Rules, RuleStatus{
			rule, map[string]int64{status.Old: hits[oldSide].Load(), status.New: hits[newSide].Load()}, status.GoingBack(rule.Writes, rule, recorded),
		})
	}
	status.Moving, status.Table.Moving = rules.source.Moving, nil
	if s.pending.Load() != nil {
		status.Undelivered = *s.undelivered.Load()
	}
	return status
}
