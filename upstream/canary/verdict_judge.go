package canary

import (
	"maps"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/state"
)

// defaultTarget is the share of mismatches that is allowed when nobody says: 0.1 %.
const defaultTarget = 0.001

// JudgeInput is everything that a report is made of.
type JudgeInput struct {
	At       time.Time
	Campaign state.Campaign
	// Pair is the tracker that answers clients, and the one that may take its place.
	Pair upstream.Sides
	// Target is the share of mismatches that is allowed, from 0 to 1; what is none means 0.001.
	Target float64
	// Tallies, Findings and Uses are those of the campaign, as the store has them, and
	// Since is when the comparisons of an operation began to count anew.
	Tallies  []state.Tally
	Findings []state.Finding
	Since    map[mapping.Operation]time.Time
	Rules    Rules
	Uses     []state.RuleUse
}

// Judge makes the report. It is FAIL when a larger share of the comparisons than the
// target allows had a finding that is open, or when one of those is of slowness or of a
// call that the candidate has no form for. It is PASS when nothing is open, the upper
// bound is within the target, and so is the share of calls that the candidate kept from
// being compared, for every operation that clients use and for all together. Otherwise
// it is INCONCLUSIVE, and no comparison at all is that too.
func Judge(input JudgeInput) Report {
	if !(input.Target > 0 && input.Target <= 1) { // which NaN is not
		input.Target = defaultTarget
	}
	report := Report{
		At: input.At, Pair: input.Pair, Target: input.Target,
		Campaign:   CampaignView{Started: input.Campaign.Started, Actor: input.Campaign.Actor, Reason: input.Campaign.Reason},
		Operations: []OperationVerdict{}, Findings: findingViews(input.Findings), Rules: ruleViews(input.Rules.At(input.At), input.Uses),
		Dropped: map[string]int64{}, Timeline: timeline(input.Tallies),
	}
	all := evidence{dropped: map[string]int64{}}
	for _, operation := range mapping.Operations() {
		about := gather(input, operation)
		if !about.any() {
			continue
		}
		report.Operations = append(report.Operations, about.verdict(operation, input.Target))
		all.add(about)
	}
	maps.Copy(report.Dropped, all.dropped)
	report.Overall = overall(all.verdict("", input.Target), report.Operations)
	report.Verdict = report.Overall.Verdict
	return report
}

// overall joins the verdict on all comparisons with those on each operation. Where
// these are not all PASS, their reasons are the reasons.
func overall(all OperationVerdict, operations []OperationVerdict) OperationVerdict {
	var still int64
	var reasons []string
	for _, v := range operations {
		still += v.Needed
		for _, reason := range v.Reasons {
			reasons = append(reasons, string(v.Operation)+": "+reason)
		}
		if rank(v.Verdict) > rank(all.Verdict) {
			all.Verdict = v.Verdict
		}
	}
	all.Needed = max(all.Needed, still)
	if len(reasons) > 0 {
		all.Reasons = reasons
	}
	return all
}

// rank orders verdicts by what they outweigh.
func rank(v Verdict) int {
	return map[Verdict]int{Pass: 0, Inconclusive: 1, Fail: 2}[v]
}
