package verdict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/state"
)

// defaultTarget is the allowed mismatch rate where none is configured: 0.1 %.
const defaultTarget = 0.001

// JudgeInput is everything that a report is made of.
type JudgeInput struct {
	At       time.Time
	Campaign state.Campaign
	// Pair is the tracker that responds to clients, and the one that may take its place.
	Pair upstream.Sides
	// Target is the allowed mismatch rate, from 0 to 1; an invalid one means 0.001.
	Target float64
	// Tallies, Findings and Uses are those of the campaign, as the store has them, and
	// Since is when the comparisons of an operation started again from zero. Tallies of other pairs do not count.
	Tallies  []state.Tally
	Findings []state.Finding
	Since    map[mapping.Operation]time.Time
	Rules    compare.Rules
	Uses     []state.RuleUse
}

// Judge makes the report. It is FAIL when a larger share of the comparisons than the target allows had a finding that is open, or
// when an open finding is of slowness or of a call that the candidate has no form for. It is PASS when nothing is open, the upper
// bound is within the target, and so is the share of calls that the candidate kept from being compared, for every operation that
// clients use and for all together. Otherwise it is INCONCLUSIVE, also without any comparison.
func Judge(input JudgeInput) Report {
	if !(input.Target > 0 && input.Target <= 1) { // which NaN is not
		input.Target = defaultTarget
	}
	report := Report{
		At: input.At, Pair: input.Pair, Target: input.Target,
		Campaign: input.Campaign, Operations: []OperationVerdict{}, Findings: sorted(input.Findings), Rules: ruleViews(input.Rules.At(input.At), input.Uses),
		Dropped: map[string]int64{},
	}
	known := map[string]state.Finding{}
	for _, finding := range input.Findings {
		known[finding.Signature] = finding
	}
	input.Tallies = slices.DeleteFunc(slices.Clone(input.Tallies), func(t state.Tally) bool {
		return t.At.Before(input.Since[t.Operation]) || t.Answered != input.Pair.Serving || t.Other != input.Pair.Compared
	})
	for _, operation := range mapping.Operations() {
		about := gather(input, operation, known)
		if about.Compared+about.open+about.Dropped > 0 || !about.Since.IsZero() {
			report.Operations = append(report.Operations, about.decide(input.Target))
		}
	}
	all := gather(input, "", known)
	for _, tally := range input.Tallies {
		for reason, n := range tally.Dropped {
			report.Dropped[reason] += n
		}
	}
	report.Overall = overall(all.decide(input.Target), report.Operations)
	report.Verdict, report.Timeline = report.Overall.Verdict, timeline(input.Tallies, known, input.At)
	return report
}

// overall joins the verdict on all comparisons with those on each operation. Where these are not all PASS, their reasons are the
// reasons.
func overall(all OperationVerdict, operations []OperationVerdict) OperationVerdict {
	rank := map[Verdict]int{Pass: 0, Inconclusive: 1, Fail: 2}
	var needed int64
	var reasons []string
	for _, v := range operations {
		needed += v.Needed
		for _, reason := range v.Reasons {
			reasons = append(reasons, string(v.Operation)+": "+reason)
		}
		if rank[v.Verdict] > rank[all.Verdict] {
			all.Verdict = v.Verdict
		}
	}
	all.Needed = max(all.Needed, needed)
	if len(reasons) > 0 {
		all.Reasons = reasons
	}
	return all
}

// evidence is what is known of one operation, or of all together.
type evidence struct {
	OperationVerdict
	reference, candidate []int64 // latencies
	// open is the number of open findings, and recent of those seen since the comparisons count.
	open, recent int64
	failures     []string // why no mismatch rate excuses some of them
}

// gather counts what is known of one operation, or of all where it is empty. known holds the findings by signature.
func gather(input JudgeInput, operation mapping.Operation, known map[string]state.Finding) evidence {
	e := evidence{OperationVerdict: OperationVerdict{Operation: operation, Since: input.Since[operation]}}
	for _, finding := range input.Findings {
		if operation != "" && finding.Operation != operation || finding.Status != state.StatusOpen {
			continue
		}
		e.open++
		if !finding.Last.Before(input.Since[finding.Operation]) {
			e.recent++
		}
		if _, failure := compare.Class(finding.Class).At(finding.Path); failure != "" {
			e.failures = append(e.failures, failure)
		}
	}
	for _, tally := range input.Tallies {
		if operation == "" || tally.Operation == operation {
			e.count(tally, known)
		}
	}
	return e
}

// count adds the comparisons of a tally, those with an open finding once. Where it is not known any more which findings a
// comparison had, any open one of the operation counts; a finding that is not kept was never judged.
func (e *evidence) count(tally state.Tally, known map[string]state.Finding) {
	e.Compared += tally.Compared
	e.Transient += tally.Transient
	e.Noisy += tally.Noisy
	e.Failed += tally.Failed
	e.reference, e.candidate = state.AddBuckets(e.reference, tally.AnsweredLatency), state.AddBuckets(e.candidate, tally.OtherLatency)
	const none, unstable, lasting, unlisted = 0, 1, 2, 3
	rank := func(f state.Finding) int {
		switch {
		case f.Operation != tally.Operation || f.Status != state.StatusOpen:
			return none
		case f.Kind == KindUnstable:
			return unstable
		}
		return lasting
	}
	differ := int64(0)
	for mismatch, n := range tally.Mismatches {
		worst := none
		if mismatch == state.AnyMismatch {
			for _, f := range known {
				worst = max(worst, min(2*rank(f), lasting))
			}
		}
		for _, signature := range state.Signatures(mismatch) {
			if f, listed := known[signature]; listed {
				worst = max(worst, rank(f))
			} else {
				worst = unlisted
			}
		}
		if worst > none {
			differ += n
		}
		switch worst {
		case unstable:
			e.Unstable += n
		case unlisted:
			e.Unlisted += n
		}
	}
	e.Confirmed += differ
	e.Accepted += max(tally.Confirmed+tally.Accepted-differ, 0)
	for reason, n := range tally.Dropped {
		e.Dropped += n
		if DropReason(reason).isCandidates() {
			e.Prevented += n
		}
	}
}

// decide completes the verdict.
func (e *evidence) decide(target float64) OperationVerdict {
	v := e.OperationVerdict
	proving := v.Compared - v.Transient // a difference that a write explains proves nothing
	v.UpperBound, v.Answered, v.Other = upperBound(v.Confirmed, proving), quantilesOf(e.reference), quantilesOf(e.candidate)
	if v.Answered.P50 > 0 {
		v.Ratio = float64(v.Other.P50) / float64(v.Answered.P50)
	}
	if v.Compared > 0 {
		v.Rate, v.ErrorRate = float64(v.Confirmed)/float64(v.Compared), float64(v.Failed)/float64(v.Compared)
	}
	e.judge(&v, target)
	if v.Verdict == Inconclusive {
		v.Needed = needed(v.Confirmed, proving, target)
		if v.TooOftenPrevented(target) {
			v.Needed = max(v.Needed, int64(math.Ceil(float64(v.Prevented)/target))-v.Prevented-v.Compared)
		}
	}
	return v
}

// judge sets the verdict and every reason why it is not PASS.
func (e *evidence) judge(v *OperationVerdict, target float64) {
	prevented := v.Compared + v.Prevented
	nothing := "nothing was compared yet"
	switch {
	case v.Dropped > 0:
		nothing = "every comparison was dropped"
	case !v.Since.IsZero():
		nothing = "nothing was compared since a finding was called fixed"
	}
	v.Verdict, v.Reasons = Pass, slices.Compact(slices.Sorted(slices.Values(e.failures)))
	if len(e.failures) > 0 {
		v.Verdict = Fail
	}
	for _, rule := range []struct {
		applies bool
		verdict Verdict // empty where the reason only adds to others
		reason  string
	}{
		{v.Rate > target || v.Compared == 0 && e.recent > 0, Fail, percent(v.Rate) + " of comparisons differ (limit " + percent(target) + ")"},
		{v.Compared == 0, Inconclusive, nothing},
		{v.Compared > 0 && v.Rate <= target && v.UpperBound > target, Inconclusive,
			"the true mismatch rate could be as high as " + percent(v.UpperBound) + " (limit " + percent(target) + ")"},
		{v.TooOftenPrevented(target), Inconclusive, fmt.Sprintf("the candidate prevented the comparison of %s of %s (%s, limit %s)",
			number(v.Prevented), counted(prevented, "call"), percent(float64(v.Prevented)/float64(prevented)), percent(target))},
		{e.open > 0, Inconclusive, counted(e.open, "open finding") + " must be judged"},
		{v.Unlisted > 0, Inconclusive, counted(v.Unlisted, "comparison") + " had differences that are not listed, because too many findings are kept"},
		{v.Transient > 0, "", counted(v.Transient, "comparison") + " had differences that a write explains, which prove nothing"},
		{v.Unstable > 0, "", counted(v.Unstable, "comparison") + " had differences that went away although nothing was written"},
		{v.Failed > 0, "", counted(v.Failed, "comparison") + " had no valid reply of the candidate (" + percent(v.ErrorRate) + ")"},
	} {
		if !rule.applies || rule.verdict == "" && v.Verdict == Pass {
			continue
		}
		if v.Verdict != Fail && rule.verdict != "" {
			v.Verdict = rule.verdict
		}
		v.Reasons = append(v.Reasons, rule.reason)
	}
}

// TooOftenPrevented reports whether the candidate kept a larger share of the calls from being compared than may differ. A tracker
// that gets no request contradicts nothing.
func (v OperationVerdict) TooOftenPrevented(target float64) bool {
	return float64(v.Prevented) > target*float64(v.Compared+v.Prevented)
}
