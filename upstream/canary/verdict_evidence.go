package canary

import (
	"fmt"
	"math"
	"slices"
	"time"

	"portico/mapping"
	"portico/upstream/state"
)

// evidence is what is known of one operation, or of several.
type evidence struct {
	compared, transient, noisy, accepted int64
	failed                               int64
	dropped                              map[string]int64
	answered, other                      []int64
	// confirmed are the comparisons that had an open finding, unlisted those of them
	// that had one which is not kept.
	confirmed, unlisted int64
	// open is how many findings are open, and seen how many of them were seen since the
	// comparisons count; slow and refused are those that no share excuses.
	open, seen, slow, refused int
	// since is when the comparisons began to count anew, the zero time when they did not.
	since time.Time
}

func gather(input JudgeInput, operation mapping.Operation) evidence {
	e := evidence{since: input.Since[operation], dropped: map[string]int64{}}
	open := map[string]bool{} // false for findings that were judged
	for _, finding := range input.Findings {
		if finding.Operation != operation {
			continue
		}
		open[finding.Signature] = finding.Status == state.StatusOpen
		if finding.Status == state.StatusOpen {
			e.finding(finding)
		}
	}
	for _, tally := range input.Tallies {
		if tally.Operation == operation && !tally.At.Before(e.since) {
			e.tally(tally, tally.Answered == input.Pair.Other && tally.Other == input.Pair.Answered)
			e.mismatches(tally, open)
		}
	}
	return e
}

// tally adds one minute. Where the candidate answered clients already, the
// latencies are the other way round.
func (e *evidence) tally(tally state.Tally, swapped bool) {
	e.compared += tally.Compared
	e.transient += tally.Transient
	e.failed += tally.Failed
	e.noisy += tally.Noisy
	e.drop(tally.Dropped)
	answered, other := tally.AnsweredLatency, tally.OtherLatency
	if swapped {
		answered, other = other, answered
	}
	e.answered, e.other = sumHistograms(e.answered, answered), sumHistograms(e.other, other)
}

func (e *evidence) drop(dropped map[string]int64) {
	for reason, n := range dropped {
		e.dropped[reason] += n
	}
}

// mismatches counts the comparisons with a finding that is open now, each once. Where
// nobody knows which findings a comparison had, any open one will do; and one that
// nobody has heard of was never judged.
func (e *evidence) mismatches(tally state.Tally, open map[string]bool) {
	var confirmed int64
	for mismatch, n := range tally.Mismatches {
		signatures := state.Signatures(mismatch)
		unknown := slices.ContainsFunc(signatures, func(s string) bool { _, known := open[s]; return !known })
		switch {
		case unknown:
			e.unlisted += n
			confirmed += n
		case signatures == nil && e.open > 0, slices.ContainsFunc(signatures, func(s string) bool { return open[s] }):
			confirmed += n
		}
	}
	e.confirmed += confirmed
	e.accepted += max(tally.Confirmed+tally.Accepted-confirmed, 0)
}

func (e *evidence) finding(finding state.Finding) {
	e.open++
	if !finding.Last.Before(e.since) {
		e.seen++
	}
	switch {
	case Class(finding.Class) == ClassLatency:
		e.slow++
	case Class(finding.Class) == ClassPlan && finding.Path == PathRefused:
		e.refused++
	}
}

func (e *evidence) add(more evidence) {
	e.compared += more.compared
	e.transient += more.transient
	e.failed += more.failed
	e.noisy += more.noisy
	e.accepted += more.accepted
	e.drop(more.dropped)
	e.answered, e.other = sumHistograms(e.answered, more.answered), sumHistograms(e.other, more.other)
	e.confirmed += more.confirmed
	e.unlisted += more.unlisted
	e.open += more.open
	e.seen += more.seen
	e.slow += more.slow
	e.refused += more.refused
}

func (e *evidence) lost() int64 {
	var n int64
	for _, count := range e.dropped {
		n += count
	}
	return n
}

// prevented are the drops that are the candidate's fault.
func (e *evidence) prevented() int64 {
	var n int64
	for reason, count := range e.dropped {
		if DropReason(reason).isCandidates() {
			n += count
		}
	}
	return n
}

func (e *evidence) any() bool {
	return e.compared > 0 || e.open > 0 || e.lost() > 0 || !e.since.IsZero()
}

func (e *evidence) verdict(operation mapping.Operation, target float64) OperationVerdict {
	v := OperationVerdict{
		Operation: operation, Compared: e.compared, Confirmed: e.confirmed, Transient: e.transient, Failed: e.failed, Noisy: e.noisy,
		Accepted: e.accepted, Dropped: e.lost(), Prevented: e.prevented(), Unlisted: e.unlisted, Since: e.since,
		UpperBound: upperBound(e.confirmed, e.compared), Answered: QuantilesOf(e.answered), Other: QuantilesOf(e.other),
	}
	v.Ratio = v.Answered.ratio(v.Other)
	if e.compared > 0 {
		v.Rate = float64(e.confirmed) / float64(e.compared)
	}
	v.Verdict, v.Reasons = e.decide(v, target)
	if v.Verdict == Inconclusive {
		v.Needed = max(needed(e.confirmed, e.compared, target), v.neededToOutweigh(target), v.neededToExcuse(target))
	}
	return v
}

// TooOftenPrevented tells whether the candidate kept a larger share of the calls from
// being compared than may differ. Who is not asked contradicts nobody.
func (v OperationVerdict) TooOftenPrevented(target float64) bool {
	return float64(v.Prevented) > target*float64(v.Compared+v.Prevented)
}

// neededToOutweigh is how many more comparisons make Prevented rare enough.
func (v OperationVerdict) neededToOutweigh(target float64) int64 {
	if target <= 0 || !v.TooOftenPrevented(target) {
		return 0
	}
	all := math.Ceil(float64(v.Prevented) / target)
	return int64(min(all, math.MaxInt64/4)) - v.Prevented - v.Compared
}

// TooOftenFailed tells whether the candidate failed to answer in a larger share of the comparisons than may differ, and was
// fine when it was asked again. A client is not.
func (v OperationVerdict) TooOftenFailed(target float64) bool {
	return float64(v.Failed) > target*float64(v.Compared)
}

// neededToExcuse is how many more comparisons make Failed rare enough.
func (v OperationVerdict) neededToExcuse(target float64) int64 {
	if target <= 0 || !v.TooOftenFailed(target) {
		return 0
	}
	return int64(min(math.Ceil(float64(v.Failed)/target), math.MaxInt64/4)) - v.Compared
}

// decide gives the verdict and why it is not PASS.
func (e *evidence) decide(v OperationVerdict, target float64) (Verdict, []string) {
	var reasons []string
	if e.slow > 0 {
		reasons = append(reasons, "the other tracker is slower than it may be")
	}
	if e.refused > 0 {
		reasons = append(reasons, "the other tracker has no form for a call that clients make")
	}
	if v.Rate > target || e.compared == 0 && e.seen > 0 {
		reasons = append(reasons, fmt.Sprintf("%s of comparisons differ, %s are allowed", percent(v.Rate), percent(target)))
	}
	if len(reasons) > 0 {
		return Fail, append(reasons, e.untold()...)
	}
	switch {
	case e.compared == 0 && e.lost() > 0:
		reasons = append(reasons, "every comparison was dropped")
	case e.compared == 0 && !e.since.IsZero():
		reasons = append(reasons, "nothing was compared since a finding was called fixed")
	case e.compared == 0:
		reasons = append(reasons, "nothing was compared yet")
	case v.UpperBound > target:
		reasons = append(reasons, fmt.Sprintf("up to %s may differ as far as is known, %s are allowed", percent(v.UpperBound), percent(target)))
	}
	if v.TooOftenPrevented(target) {
		all := v.Compared + v.Prevented
		reasons = append(reasons, fmt.Sprintf("the candidate kept %s of %s from being compared (%s), %s are allowed",
			count(v.Prevented), plural2(all, "call"), percent(float64(v.Prevented)/float64(all)), percent(target)))
	}
	if v.TooOftenFailed(target) {
		reasons = append(reasons, fmt.Sprintf("the candidate failed in %s of %s before it was asked again (%s), %s are allowed",
			count(v.Failed), plural2(v.Compared, "comparison"), percent(float64(v.Failed)/float64(v.Compared)), percent(target)))
	}
	if e.open > 0 {
		reasons = append(reasons, fmt.Sprintf("somebody has to judge %d open %s", e.open, plural(e.open, "finding")))
	}
	if reasons = append(reasons, e.untold()...); len(reasons) > 0 {
		return Inconclusive, reasons
	}
	return Pass, nil
}

// untold says that there is more than the findings show.
func (e *evidence) untold() []string {
	if e.unlisted == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s had differences that are not listed, because too many findings are kept", plural2(e.unlisted, "comparison"))}
}
