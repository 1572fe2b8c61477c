package switchover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Changes says in words how two tables differ.
func Changes(before, after Table) (changes []string) {
	add := func(differs bool, format string, args ...any) {
		if differs {
			changes = append(changes, fmt.Sprintf(format, args...))
		}
	}
	changed := func(name, what string, from, to any) { add(from != to, "%s: %s %v → %v", name, what, from, to) }
	add(before.Killed == nil && after.Killed != nil, "kill switch thrown")
	add(before.Killed != nil && after.Killed == nil, "kill switch taken back")
	add(len(after.Moving) > 0, "writes wait while they move: %s", joined(after.Moving, ", "))
	old := map[string]Rule{}
	for _, rule := range before.Rules {
		old[rule.Name] = rule
	}
	for _, rule := range after.Rules {
		former, known := old[rule.Name]
		delete(old, rule.Name)
		if !known {
			add(true, "%s: new, reads %s, writes %s", rule.Name, rule.Reads, rule.Writes)
			continue
		}
		changed(rule.Name, "reads", former.Reads, rule.Reads)
		changed(rule.Name, "writes", former.Writes, rule.Writes)
		changed(rule.Name, "replicate", former.Replicate, rule.Replicate)
		add(!slices.Equal(former.Conditions(), rule.Conditions()), "%s: conditions", rule.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		add(true, "%s: removed", name)
	}
	add(inWords(before.Passthrough) != inWords(after.Passthrough), "passthrough: %s", cmp.Or(inWords(after.Passthrough), "as the last rule"))
	changed("passthrough", "copied", before.PassedCopied, after.PassedCopied)
	add(len(changes) == 0 && !slices.EqualFunc(before.Rules, after.Rules, func(a, b Rule) bool { return a.Name == b.Name }), "other order")
	add(len(changes) == 0 && len(before.Moving) > 0, "writes go on as before")
	return changes
}

func inWords(pair *PhasePair) string {
	if pair == nil {
		return ""
	}
	return fmt.Sprintf("reads %s, writes %s", pair.Reads, pair.Writes)
}
