package switchover

import (
	"slices"
	"strings"
)

// Step is a change of the phases of one rule. Without a change the rule is at the end of its way.
type Step struct {
	Rule     Rule
	From, To PhasePair
}

// Step returns the phases one step ahead or back: reads before writes, and the comparison of reads stays until writes have moved.
func (p PhasePair) Step(back bool) PhasePair {
	phases, reads, writes := Phases(), p.Reads.index(), p.Writes.index()
	last := len(phases) - 1
	switch {
	case back && (reads == last && writes == last || reads > 0 && writes == 0):
		reads--
	case back && writes > 0:
		writes--
	case back: // at its begin
	case reads < PhaseNewCompare.index(), reads < last && writes == last:
		reads++
	case writes < last:
		writes++
	}
	return PhasePair{phases[reads], phases[writes]}
}

// Distance returns by how many phases a step takes reads and writes ahead, and by how many back. Those that only start or end a comparison
// with the old tracker are not counted.
func (s Step) Distance() (ahead, back int) {
	begun := PhaseOldCompare.index()
	for _, pair := range [][2]Phase{{s.From.Reads, s.To.Reads}, {s.From.Writes, s.To.Writes}} {
		n := max(pair[1].index(), begun) - max(pair[0].index(), begun)
		ahead, back = ahead+max(n, 0), back+max(-n, 0)
	}
	return ahead, back
}

// MovesCopies reports whether a step has another tracker get writes that are copied.
func (s Step) MovesCopies() bool {
	return s.Rule.Replicate && s.From.Writes.New() != s.To.Writes.New()
}

// Steps lists the rules that the next table takes ahead, and those whose copied writes it moves. A rule that is new, or has other conditions, counts as taken from the least
// advanced phases of the present table; so do all rules where one is gone or they have another order.
func Steps(present, next Table) (steps []Step) {
	scope := func(r Rule) string { return r.Name + "\n" + strings.Join(r.Conditions(), "\n") }
	floor := present.Rules[0]
	for _, r := range present.Rules {
		floor.Replicate = floor.Replicate || r.Replicate
		if r.Reads.index() < floor.Reads.index() {
			floor.Reads = r.Reads
		}
		if r.Writes.index() < floor.Writes.index() {
			floor.Writes = r.Writes
		}
	}
	from, rest := map[string]Rule{}, present.Rules
	for _, rule := range next.Rules {
		if len(rest) > 0 && scope(rest[0]) == scope(rule) {
			from[rule.Name], rest = rest[0], rest[1:]
		}
	}
	for _, rule := range next.Rules {
		before, kept := from[rule.Name]
		if !kept || len(rest) > 0 {
			before = floor
		}
		rule.Replicate = rule.Replicate || before.Replicate
		steps = append(steps, Step{rule, before.Phases(), rule.Phases()})
	}
	if present.Passthrough != nil || next.Passthrough != nil {
		steps = append(steps, Step{Rule{Name: "passthrough"}, present.others(), next.others()})
	}
	return slices.DeleteFunc(steps, func(step Step) bool {
		ahead, _ := step.Distance()
		return ahead == 0 && !step.MovesCopies()
	})
}
