package verdict

import (
	"cmp"
	"slices"
	"time"

	"portico/upstream/canary/compare"
	"portico/upstream/state"
)

// findingViews gives all findings, open ones first, the most frequent first.
func findingViews(findings []state.Finding) []FindingView {
	views := make([]FindingView, 0, len(findings))
	for _, f := range findings {
		views = append(views, FindingView{
			Signature: f.Signature, Operation: f.Operation, Class: compare.Class(f.Class), Path: f.Path, Kind: cmp.Or(f.Kind, "reply"),
			Status: string(f.Status), Count: f.Count, First: f.First, Last: f.Last, Note: f.Note, Samples: f.Samples,
			Actor: f.Actor, Reason: f.Reason, Until: f.Until,
		})
	}
	slices.SortStableFunc(views, func(a, b FindingView) int {
		return cmp.Or(cmp.Compare(b.Status, a.Status), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Signature, b.Signature))
	})
	return views
}

// open is the status of findings that count.
const open = string(state.StatusOpen)

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
const maxPoints = 120

// timeline sums up the minutes, several to a point when there are many. As in the verdict, only open findings are
// mismatches.
func timeline(tallies []state.Tally, known map[string]state.Finding) []TimePoint {
	if len(tallies) == 0 {
		return nil
	}
	byTime := func(a, b state.Tally) int { return a.At.Compare(b.At) }
	first := slices.MinFunc(tallies, byTime).At.Truncate(time.Minute) // At may lie within a minute
	length := slices.MaxFunc(tallies, byTime).At.Sub(first)
	step := time.Minute
	for length/step >= maxPoints {
		step *= 2
	}
	points := make([]TimePoint, length/step+1)
	for i := range points {
		points[i].At = first.Add(time.Duration(i) * step).UTC()
	}
	for _, tally := range tallies {
		var e evidence
		e.count(tally, known)
		p := &points[tally.At.Sub(first)/step]
		p.Compared += e.Compared
		p.Confirmed += e.Confirmed
		p.Transient += e.Transient
		p.Noisy += e.Noisy
		p.Dropped += e.Dropped
	}
	return points
}
