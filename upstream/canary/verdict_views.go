package canary

import (
	"cmp"
	"slices"
	"time"

	"portico/upstream/state"
)

// findingViews gives all findings, open ones first, the most frequent first.
func findingViews(findings []state.Finding) []FindingView {
	views := make([]FindingView, 0, len(findings))
	for _, f := range findings {
		views = append(views, FindingView{
			Signature: f.Signature, Operation: f.Operation, Class: Class(f.Class), Path: f.Path, Kind: cmp.Or(f.Kind, "reply"),
			Status: string(f.Status), Count: f.Count, First: f.First, Last: f.Last, Note: f.Note, Samples: f.Samples,
			Actor: f.Actor, Reason: f.Reason, Until: f.Until,
		})
	}
	slices.SortStableFunc(views, func(a, b FindingView) int {
		return cmp.Or(cmp.Compare(closed(a.Status), closed(b.Status)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Signature, b.Signature))
	})
	return views
}

func closed(status string) int {
	if status == string(state.StatusOpen) {
		return 0
	}
	return 1
}

// ruleViews gives all rules with their use, in their order.
func ruleViews(rules Rules, uses []state.RuleUse) []RuleView {
	views := make([]RuleView, 0, len(rules.list))
	for _, rule := range rules.list {
		view := RuleView{Equivalence: rule.Equivalence, State: RuleUnused}
		for _, use := range uses {
			if use.Name == rule.Name {
				view.Hits, view.Last = view.Hits+use.Hits, use.Last
			}
		}
		if view.Hits > 0 {
			view.State = RuleActive
		}
		if rule.expired {
			view.State = RuleExpired
		}
		views = append(views, view)
	}
	return views
}

// maxPoints is how many points a time line has at most.
const maxPoints = 120

// timeline sums up the minutes, several to a point when there are many.
func timeline(tallies []state.Tally) []TimePoint {
	if len(tallies) == 0 {
		return nil
	}
	first, last := tallies[0].At, tallies[0].At // At may lie within a minute
	for _, tally := range tallies {
		if tally.At.Before(first) {
			first = tally.At
		}
		if tally.At.After(last) {
			last = tally.At
		}
	}
	first = first.Truncate(time.Minute)
	step := time.Minute
	for last.Sub(first)/step >= maxPoints {
		step *= 2
	}
	points := make([]TimePoint, last.Sub(first)/step+1)
	for i := range points {
		points[i].At = first.Add(time.Duration(i) * step).UTC()
	}
	for _, tally := range tallies {
		points[tally.At.Sub(first)/step].add(tally)
	}
	return points
}

func (p *TimePoint) add(tally state.Tally) {
	p.Compared += tally.Compared
	p.Confirmed += tally.Confirmed
	p.Transient += tally.Transient
	p.Noisy += tally.Noisy
	for _, n := range tally.Dropped {
		p.Dropped += n
	}
}
