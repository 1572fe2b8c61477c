package switchover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Changes says in words how two tables differ.
func Changes(before, after Table) []string {
	var changes []string
	switch {
	case before.Killed == nil && after.Killed != nil:
		changes = []string{"kill switch thrown"}
	case before.Killed != nil && after.Killed == nil:
		changes = []string{"kill switch taken back"}
	}
	if len(after.Moving) > 0 {
		changes = append(changes, "writes wait while they move: "+strings.Join(after.Moving, ", "))
	}
	old := map[string]Rule{}
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
	if before.PassedCopied != after.PassedCopied {
		changes = append(changes, fmt.Sprintf("passthrough: copied %t → %t", before.PassedCopied, after.PassedCopied))
	}
	if len(changes) == 0 && !slices.EqualFunc(before.Rules, after.Rules, func(a, b Rule) bool { return a.Name == b.Name }) {
		changes = append(changes, "other order")
	}
	if len(changes) == 0 && len(before.Moving) > 0 {
		changes = append(changes, "writes go on as before")
	}
	return changes
}

func ruleChanges(before, after Rule) []string {
	var changes []string
	if before.Reads != after.Reads {
		changes = append(changes, fmt.Sprintf("%s: reads %s → %s", after.Name, before.Reads, after.Reads))
	}
	if before.Writes != after.Writes {
		changes = append(changes, fmt.Sprintf("%s: writes %s → %s", after.Name, before.Writes, after.Writes))
	}
	if before.Replicate != after.Replicate {
		changes = append(changes, fmt.Sprintf("%s: replicate %t → %t", after.Name, before.Replicate, after.Replicate))
	}
	if !slices.Equal(before.Conditions(), after.Conditions()) {
		changes = append(changes, after.Name+": conditions")
	}
	return changes
}

func inWords(pair *PhasePair) string {
	if pair == nil {
		return ""
	}
	return fmt.Sprintf("reads %s, writes %s", pair.Reads, pair.Writes)
}
