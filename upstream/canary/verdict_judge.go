package canary

import (
	"fmt"
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
	// Target is the share of mismatches that is allowed, from 0 to 1; 0 means 0.001.
	Target float64
	// Tallies, Findings and Uses are those of the campaign, as the store has them.
	Tallies  []state.Tally
	Findings []state.Finding
	Rules    Rules
	Uses     []state.RuleUse
}

// Judge makes the report. It is FAIL when open findings were seen in a larger
// share of comparisons than the target allows, or when one of them is of slowness or of a
// call that the other tracker has no form for. It is PASS when nothing is open and the
// upper bound is within the target, for every operation that clients use and for all
// together. Otherwise it is INCONCLUSIVE, and no comparison at all is that too.
func Judge(input JudgeInput) Report {
	if input.Target <= 0 {
		input.Target = defaultTarget
	}
	report := Report{
		At: input.At, Pair: input.Pair, Target: input.Target,
		Campaign:   CampaignView{Started: input.Campaign.Started, Actor: input.Campaign.Actor, Reason: input.Campaign.Reason},
		Operations: []OperationVerdict{}, Findings: findingViews(input.Findings), Rules: ruleViews(input.Rules.At(input.At), input.Uses),
		Dropped: map[string]int64{}, Timeline: timeline(input.Tallies),
	}
	var all evidence
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

// evidence is what is known of one operation, or of several.
type evidence struct {
	compared, transient, noisy, accepted int64
	dropped                              map[string]int64
	answered, other                      []int64
	// seen is how often open findings were seen, open how many there are; slow and
	// refused are those that no share excuses.
	seen                int64
	open, slow, refused int
	// confirmed is seen, and at most compared for each operation.
	confirmed int64
}

func gather(input JudgeInput, operation mapping.Operation) evidence {
	var e evidence
	for _, tally := range input.Tallies {
		if tally.Operation == operation {
			e.tally(tally, tally.Answered == input.Pair.Other && tally.Other == input.Pair.Answered)
		}
	}
	for _, finding := range input.Findings {
		if finding.Operation == operation && finding.Status == state.StatusOpen {
			e.finding(finding)
		}
	}
	e.confirmed = min(e.seen, e.compared)
	return e
}

// tally adds one minute. Where the candidate answered clients already, the
// latencies are the other way round.
func (e *evidence) tally(tally state.Tally, swapped bool) {
	e.compared += tally.Compared
	e.transient += tally.Transient
	e.noisy += tally.Noisy
	e.accepted += tally.Accepted
	e.drop(tally.Dropped)
	answered, other := tally.AnsweredLatency, tally.OtherLatency
	if swapped {
		answered, other = other, answered
	}
	e.answered, e.other = sumHistograms(e.answered, answered), sumHistograms(e.other, other)
}

func (e *evidence) drop(dropped map[string]int64) {
	if e.dropped == nil {
		e.dropped = map[string]int64{}
	}
	for reason, n := range dropped {
		e.dropped[reason] += n
	}
}

func (e *evidence) finding(finding state.Finding) {
	e.open++
	switch {
	case Class(finding.Class) == ClassLatency:
		e.slow++
	case Class(finding.Class) == ClassPlan && finding.Path == PathRefused:
		e.refused++
		e.seen += finding.Count
	default:
		e.seen += finding.Count
	}
}

func (e *evidence) add(more evidence) {
	e.compared += more.compared
	e.transient += more.transient
	e.noisy += more.noisy
	e.accepted += more.accepted
	e.drop(more.dropped)
	e.answered, e.other = sumHistograms(e.answered, more.answered), sumHistograms(e.other, more.other)
	e.seen += more.seen
	e.open += more.open
	e.slow += more.slow
	e.refused += more.refused
	e.confirmed += more.confirmed
}

func (e *evidence) lost() int64 {
	var n int64
	for _, count := range e.dropped {
		n += count
	}
	return n
}

func (e *evidence) any() bool { return e.compared > 0 || e.open > 0 || e.lost() > 0 }

func (e *evidence) verdict(operation mapping.Operation, target float64) OperationVerdict {
	v := OperationVerdict{
		Operation: operation, Compared: e.compared, Confirmed: e.confirmed, Transient: e.transient, Noisy: e.noisy,
		Accepted: e.accepted, Dropped: e.lost(), UpperBound: upperBound(e.confirmed, e.compared),
		Answered: QuantilesOf(e.answered), Other: QuantilesOf(e.other),
	}
	v.Ratio = v.Answered.ratio(v.Other)
	if e.compared > 0 {
		v.Rate = float64(e.confirmed) / float64(e.compared)
	}
	v.Verdict, v.Reasons = e.decide(v.Rate, v.UpperBound, target)
	if v.Verdict == Inconclusive {
		v.Needed = needed(e.confirmed, e.compared, target)
	}
	return v
}

// decide gives the verdict and why it is not PASS.
func (e *evidence) decide(rate, bound, target float64) (Verdict, []string) {
	var reasons []string
	if e.slow > 0 {
		reasons = append(reasons, "the other tracker is slower than it may be")
	}
	if e.refused > 0 {
		reasons = append(reasons, "the other tracker has no form for a call that clients make")
	}
	if e.seen > 0 && (e.compared == 0 || rate > target) {
		reasons = append(reasons, fmt.Sprintf("%s of comparisons differ, %s are allowed", percent(rate), percent(target)))
	}
	if len(reasons) > 0 {
		return Fail, reasons
	}
	switch {
	case e.compared == 0 && e.lost() > 0:
		reasons = append(reasons, "every comparison was dropped")
	case e.compared == 0:
		reasons = append(reasons, "nothing was compared yet")
	case bound > target:
		reasons = append(reasons, fmt.Sprintf("up to %s may differ as far as is known, %s are allowed", percent(bound), percent(target)))
	}
	if e.open > 0 {
		reasons = append(reasons, fmt.Sprintf("somebody has to judge %d open %s", e.open, plural(e.open, "finding")))
	}
	if len(reasons) > 0 {
		return Inconclusive, reasons
	}
	return Pass, nil
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
