package verdict

import (
	"cmp"
	"slices"
	"time"

	"portico/upstream/canary/compare"
	"portico/upstream/state"
)

// sorted gives all findings, open ones first, the most frequent first.
func sorted(findings []state.Finding) []state.Finding {
	list := append([]state.Finding{}, findings...) // in JSON, none are [] and not null
	slices.SortStableFunc(list, func(a, b state.Finding) int {
		return cmp.Or(cmp.Compare(b.Status, a.Status), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Signature, b.Signature))
	})
	return list
}

// ruleViews gives all rules with their use, in their order.
func ruleViews(rules compare.Rules, uses []state.RuleUse) []RuleView {
	views := []RuleView{}
	for _, rule := range rules.List() {
		view := RuleView{Equivalence: rule, State: RuleUnused}
		for _, use := range uses {
			if use.Name == rule.Name {
				view.State, view.Hits, view.Last = RuleActive, use.Hits, use.Last
			}
		}
		if rules.IsExpired(rule) {
			view.State = RuleExpired
		}
		views = append(views, view)
	}
	return views
}

// maxPoints is the maximum number of points of a time line.
const maxPoints = 60

// timeline sums up the minutes until a time, several to a point when there are many. As in the verdict, only open findings are
// mismatches.
func timeline(tallies []state.Tally, known map[string]state.Finding, until time.Time) []TimePoint {
	if len(tallies) == 0 {
		return nil
	}
	first := until
	for _, tally := range tallies {
		if tally.At.Before(first) {
			first = tally.At
		}
		if tally.At.After(until) { // by the clock of another machine
			until = tally.At
		}
	}
	first = first.Truncate(time.Minute).UTC() // At may lie within a minute
	step := time.Minute
	for until.Sub(first)/step >= maxPoints {
		step *= 2
	}
	counted := make([]evidence, until.Sub(first)/step+1)
	for _, tally := range tallies {
		counted[tally.At.Sub(first)/step].count(tally, known)
	}
	points := make([]TimePoint, len(counted))
	for i, e := range counted {
		points[i] = TimePoint{
			At: first.Add(time.Duration(i) * step), Compared: e.Compared, Confirmed: e.Confirmed, Transient: e.Transient, Noisy: e.Noisy,
			Dropped: e.Dropped, Answered: quantilesOf(e.reference), Other: quantilesOf(e.candidate),
		}
	}
	return points
}
