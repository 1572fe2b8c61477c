package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"portico/upstream/state"
	"portico/upstream/switchover"
)

// switchoverPage is the data of the page.
type switchoverPage struct {
	Done      string
	Status    switchover.Status
	History   []historyEntry
	NoHistory string
	Form      judgement
}

// step is one phase as it is drawn.
type step struct {
	Phase switchover.Phase
	// Class is passed, here, or empty for what is still to come.
	Class string
}

// steps returns all phases, as seen from one of them.
func steps(here switchover.Phase) []step {
	var all []step
	class := "passed"
	for _, phase := range switchover.Phases() {
		switch {
		case phase == here:
			all, class = append(all, step{phase, "here"}), ""
		default:
			all = append(all, step{phase, class})
		}
	}
	return all
}

// historyEntry is one change of the rules.
type historyEntry struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	Source  string    `json:"source"`
	Actor   string    `json:"actor,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	// Changes say in words what became different.
	Changes []string         `json:"changes"`
	Table   switchover.Table `json:"table"`
}

// viewHistory says what each revision changed. The oldest one has nothing to be compared with.
func viewHistory(revisions []state.Revision) []historyEntry {
	all := make([]historyEntry, len(revisions))
	for i, r := range slices.Backward(revisions) {
		all[i] = historyEntry{Version: r.Version, At: r.At, Source: r.Source, Actor: r.Actor, Reason: r.Reason}
		_ = json.Unmarshal(r.Table, &all[i].Table) // a table that cannot be read is shown as an empty one
		if i+1 < len(revisions) {
			all[i].Changes = changesBetween(all[i+1].Table, all[i].Table)
		} else {
			all[i].Changes = []string{plural(int64(len(all[i].Table.Rules)), "rule", "rules")}
		}
	}
	return all
}

// changesBetween says in words how two tables differ.
func changesBetween(before, after switchover.Table) []string {
	var changes []string
	switch {
	case before.Killed == nil && after.Killed != nil:
		changes = []string{"kill switch thrown"}
	case before.Killed != nil && after.Killed == nil:
		changes = []string{"kill switch taken back"}
	}
	old := map[string]switchover.Rule{}
	for _, rule := range before.Rules {
		old[rule.Name] = rule
	}
	for _, rule := range after.Rules {
		former, known := old[rule.Name]
		delete(old, rule.Name)
		if !known {
			changes = append(changes, fmt.Sprintf("%s: new, reads %s, writes %s", rule.Name, rule.Reads, rule.Writes))
			continue
		}
		changes = append(changes, ruleChanges(former, rule)...)
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		changes = append(changes, name+": removed")
	}
	if inWords(before.Passthrough) != inWords(after.Passthrough) {
		changes = append(changes, "passthrough: "+cmp.Or(inWords(after.Passthrough), "as the last rule"))
	}
	if len(changes) == 0 && !slices.EqualFunc(before.Rules, after.Rules, func(a, b switchover.Rule) bool { return a.Name == b.Name }) {
		changes = append(changes, "other order")
	}
	return changes
}

func ruleChanges(before, after switchover.Rule) []string {
	var changes []string
	if before.Reads != after.Reads {
		changes = append(changes, fmt.Sprintf("%s: reads %s → %s", after.Name, before.Reads, after.Reads))
	}
	if before.Writes != after.Writes {
		changes = append(changes, fmt.Sprintf("%s: writes %s → %s", after.Name, before.Writes, after.Writes))
	}
	if !slices.Equal(before.Conditions(), after.Conditions()) {
		changes = append(changes, after.Name+": conditions")
	}
	return changes
}

func inWords(pair *switchover.PhasePair) string {
	if pair == nil {
		return ""
	}
	return fmt.Sprintf("reads %s, writes %s", pair.Reads, pair.Writes)
}
