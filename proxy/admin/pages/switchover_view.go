package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"portico/mapping"
	"portico/upstream/state"
	"portico/upstream/switchover"
)

// switchoverView is what the page shows.
type switchoverView struct {
	Done      string
	Status    switchover.Status
	Rules     []ruleView
	History   []historyEntry
	NoHistory string
	Form      judgement
}

// ruleView is one rule, or what holds for everything else.
type ruleView struct {
	Name string
	// Conditions are what a request must meet, in words; none means every request.
	Conditions []condition
	// Otherwise is what a rule without conditions is about.
	Otherwise     string
	Reads, Writes []step
	Hits          []hits
}

type condition struct{ Name, Text string }

// step is one of the four phases as a rule stands to it.
type step struct {
	Phase switchover.Phase
	// Here says that the rule is in this phase, Passed that it is beyond.
	Here, Passed bool
}

type hits struct {
	Tracker string
	Count   int64
}

func (v *switchoverView) fill(status switchover.Status) {
	v.Status = status
	for i, rule := range status.Rules {
		one := ruleView{Name: rule.Rule.Name, Conditions: conditionsOf(rule.Rule), Reads: stepsTo(rule.Rule.Reads), Writes: stepsTo(rule.Rule.Writes)}
		if one.Otherwise = "every request"; i > 0 {
			one.Otherwise = "everything else"
		}
		for _, name := range []string{status.Old, status.New} {
			one.Hits = append(one.Hits, hits{name, rule.Hits[name]})
		}
		v.Rules = append(v.Rules, one)
	}
}

// Passthrough gives the phases of everything that no rule is about.
func (v *switchoverView) Passthrough() ruleView {
	return ruleView{Reads: stepsTo(v.Status.Passthrough.Reads), Writes: stepsTo(v.Status.Passthrough.Writes)}
}

func stepsTo(here switchover.Phase) []step {
	place := slices.Index(switchover.Phases(), here)
	var all []step
	for i, phase := range switchover.Phases() {
		all = append(all, step{Phase: phase, Here: i == place, Passed: i < place})
	}
	return all
}

// conditionsOf says in words what a rule asks of a request.
func conditionsOf(rule switchover.Rule) []condition {
	var all []condition
	add := func(name string, values []string) {
		if len(values) > 0 {
			all = append(all, condition{name, strings.Join(values, ", ")})
		}
	}
	add("product", rule.Products)
	add("component", rule.Components)
	add("bug", texts(rule.Bugs, switchover.Range.String))
	add("attachment", texts(rule.Attachments, switchover.Range.String))
	add("operation", texts(rule.Operations, func(o mapping.Operation) string { return string(o) }))
	add("caller", rule.Callers)
	add("user agent", rule.UserAgents)
	if rule.Percent != nil {
		add("share", []string{strconv.FormatFloat(*rule.Percent, 'f', -1, 64) + " % of callers"})
	}
	return all
}

func texts[T any](list []T, text func(T) string) []string {
	all := make([]string, len(list))
	for i, one := range list {
		all[i] = text(one)
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

// viewHistory says of each revision what it changed. The oldest one that is given has nothing to be compared with.
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

// changesBetween says in words what became of a table.
func changesBetween(before, after switchover.Table) []string {
	changes := killChange(before.Killed, after.Killed)
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

func killChange(before, after *switchover.Kill) []string {
	switch {
	case before == nil && after != nil:
		return []string{"kill switch thrown"}
	case before != nil && after == nil:
		return []string{"kill switch taken back"}
	default:
		return nil
	}
}

func ruleChanges(before, after switchover.Rule) []string {
	var changes []string
	if before.Reads != after.Reads {
		changes = append(changes, fmt.Sprintf("%s: reads %s → %s", after.Name, before.Reads, after.Reads))
	}
	if before.Writes != after.Writes {
		changes = append(changes, fmt.Sprintf("%s: writes %s → %s", after.Name, before.Writes, after.Writes))
	}
	if !slices.Equal(conditionsOf(before), conditionsOf(after)) {
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
