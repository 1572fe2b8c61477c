package verdict

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/state"
)

var testNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// tallied is n comparisons of flag type reads.
func tallied(n int64) state.Tally {
	return state.Tally{
		At: testNow, Answered: "old", Other: "new", Operation: mapping.OpFlagTypes, Compared: n, Same: n,
		AnsweredLatency: histogramOf(10 * time.Millisecond), OtherLatency: histogramOf(30 * time.Millisecond),
	}
}

func openFinding(count int64) state.Finding {
	d := compare.Difference{Class: compare.ClassType, Path: "$.bug[id].id"}
	return state.Finding{
		Signature: d.Signature(mapping.OpFlagTypes), Operation: mapping.OpFlagTypes, Class: string(d.Class), Path: d.Path,
		Kind: "reply", Count: count, First: testNow, Last: testNow, Status: state.StatusOpen,
	}
}

func judgeInput(tallies []state.Tally, findings ...state.Finding) JudgeInput {
	return JudgeInput{At: testNow, Pair: upstream.Sides{Serving: "old", Compared: "new"}, Tallies: tallies, Findings: findings}
}

// differing has so many comparisons with the finding of openFinding among them.
func differing(n, mismatches int64) state.Tally {
	tally := tallied(n)
	tally.Same, tally.Confirmed = n-mismatches, mismatches
	tally.Mismatch([]string{openFinding(0).Signature}, mismatches)
	return tally
}

func TestVerdictFollowsTheNumbers(t *testing.T) {
	accepted, fixed, slow, refused := openFinding(50), openFinding(50), openFinding(1), openFinding(1)
	accepted.Status, fixed.Status = state.StatusAccepted, state.StatusFixed
	slow.Class, slow.Path = string(compare.ClassLatency), "latency.p50"
	refused.Class, refused.Path = string(compare.ClassPlan), compare.PathRefused
	write := tallied(10)
	write.Operation = mapping.OpUpdateFlagTypes
	lost := state.Tally{At: testNow, Answered: "old", Other: "new", Operation: mapping.OpAttachment, Dropped: map[string]int64{"queue-full": 4}}
	explained, third, swapped := tallied(9000), tallied(9000), tallied(9000)
	explained.Same, explained.Transient = 1000, 8000
	third.Other, swapped.Answered, swapped.Other = "third", "new", "old"
	for name, test := range map[string]struct {
		input  JudgeInput
		want   Verdict
		needed int64
		bad    int64
	}{
		"nothing":                    {judgeInput(nil), Inconclusive, 2995, 0},
		"one too few":                {judgeInput([]state.Tally{tallied(2994)}), Inconclusive, 1, 0},
		"just enough":                {judgeInput([]state.Tally{tallied(2995)}), Pass, 0, 0},
		"in two minutes":             {judgeInput([]state.Tally{tallied(1000), tallied(1995)}), Pass, 0, 0},
		"more than allowed":          {judgeInput([]state.Tally{differing(10000, 11)}, openFinding(11)), Fail, 0, 11},
		"one of few":                 {judgeInput([]state.Tally{differing(10, 1)}, openFinding(1)), Fail, 0, 1},
		"less than allowed":          {judgeInput([]state.Tally{differing(100000, 1)}, openFinding(1)), Inconclusive, 0, 1},
		"seen again and again":       {judgeInput([]state.Tally{differing(10, 10)}, openFinding(99)), Fail, 0, 10},
		"accepted":                   {judgeInput([]state.Tally{differing(3000, 50)}, accepted), Pass, 0, 0},
		"fixed":                      {judgeInput([]state.Tally{differing(3000, 50)}, fixed), Pass, 0, 0},
		"slow":                       {judgeInput([]state.Tally{tallied(3000)}, slow), Fail, 0, 0},
		"refused":                    {judgeInput([]state.Tally{tallied(300000)}, refused), Fail, 0, 0},
		"a finding without tally":    {judgeInput(nil, openFinding(1)), Fail, 0, 0},
		"one operation has too few":  {judgeInput([]state.Tally{tallied(30000), write}), Inconclusive, 2985, 0},
		"most explained by writes":   {judgeInput([]state.Tally{explained}), Inconclusive, 1995, 0},
		"of other trackers":          {judgeInput([]state.Tally{third, swapped}), Inconclusive, 2995, 0},
		"one operation only dropped": {judgeInput([]state.Tally{tallied(30000), lost}), Inconclusive, 2995, 0},
	} {
		t.Run(name, func(t *testing.T) {
			report := Judge(test.input)
			if report.Verdict != test.want || report.Overall.Needed != test.needed || report.Overall.Confirmed != test.bad {
				t.Errorf("%s, %d needed, %d differ; want %s, %d, %d", report.Verdict, report.Overall.Needed, report.Overall.Confirmed, test.want, test.needed, test.bad)
			}
			if (len(report.Overall.Reasons) == 0) != (report.Verdict == Pass) {
				t.Errorf("%s for the reasons %q", report.Verdict, report.Overall.Reasons)
			}
		})
	}
}

// TestTargetThatIsNone: no number at all, or more than everything, allows no more than usual.
func TestTargetThatIsNone(t *testing.T) {
	for _, target := range []float64{math.NaN(), math.Inf(1), -1, 1.5} {
		input := judgeInput([]state.Tally{differing(3000, 100)}, openFinding(100))
		input.Target = target
		if report := Judge(input); report.Verdict != Fail || report.Target != defaultTarget {
			t.Errorf("%v: %s, %v are allowed", target, report.Verdict, report.Target)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for verdict, want := range map[Verdict]int{Pass: 0, Fail: 1, Inconclusive: 2, "": 2} {
		if got := verdict.ExitCode(); got != want {
			t.Errorf("%q exits with %d, want %d", verdict, got, want)
		}
	}
}

func TestReportNamesRulesThatDoNothing(t *testing.T) {
	list := []compare.Equivalence{goodRule("used"), goodRule("unused"), goodRule("ended")}
	list[2].Expires = testNow.Add(-time.Hour)
	rules, problems := compare.NewRules(list, testNow)
	if len(problems) != 1 || !problems[0].Warning || problems[0].Field != "expires" || problems[0].Rule != 2 {
		t.Errorf("the problems are %+v", problems)
	}
	input := judgeInput(nil)
	input.Rules, input.Uses = rules, []state.RuleUse{{Name: "used", Hits: 3, Last: testNow}, {Name: "ended", Hits: 1}}
	var states []string
	for _, view := range Judge(input).Rules {
		states = append(states, view.Name+" "+string(view.State))
	}
	if got := strings.Join(states, ", "); got != "used active, unused never hit, ended expired" {
		t.Errorf("the rules are %s", got)
	}
}

func TestTimelineKeepsEverything(t *testing.T) {
	var tallies []state.Tally
	for minute := range 1000 {
		tally := tallied(2)
		tally.At, tally.Dropped = testNow.Add(time.Duration(minute)*time.Minute), map[string]int64{"a": 1, "b": 2}
		tallies = append(tallies, tally)
	}
	points := Judge(judgeInput(tallies)).Timeline
	var sum TimePoint
	for i, point := range points {
		sum.Compared, sum.Dropped = sum.Compared+point.Compared, sum.Dropped+point.Dropped
		if near := func(d, want time.Duration) bool { return (d - want).Abs() < want/10 }; !near(point.Answered.P50, 10*time.Millisecond) || !near(point.Other.P95, 30*time.Millisecond) {
			t.Errorf("point %d has the latencies %v and %v", i, point.Answered, point.Other)
		}
		if i > 0 && !point.At.After(points[i-1].At) {
			t.Errorf("point %d is at %v after %v", i, point.At, points[i-1].At)
		}
	}
	if len(points) > maxPoints || sum.Compared != 2000 || sum.Dropped != 3000 {
		t.Errorf("%d points with %d compared and %d dropped", len(points), sum.Compared, sum.Dropped)
	}
}

// goodRule is an equivalence without a mistake.
func goodRule(name string) compare.Equivalence {
	return compare.Equivalence{
		Name: name, Type: compare.TimeWithin, Path: "$.attachments[*].last_change_time", Within: 5 * time.Second,
		Owner: "mara", Reason: "clocks differ", Expires: testNow.Add(24 * time.Hour),
	}
}

// marked is a finding with a signature and a status.
func marked(signature string, status state.FindingStatus) state.Finding {
	f := openFinding(10)
	f.Signature, f.Status = signature, status
	return f
}

// TestComparisonsAreCountedOnce, however many findings they have, and what people say
// of the findings reaches back.
func TestComparisonsAreCountedOnce(t *testing.T) {
	tally := tallied(100)
	tally.Same, tally.Confirmed = 80, 20
	tally.Mismatch([]string{"a", "b"}, 10)
	tally.Mismatch([]string{"b", "c"}, 6)
	tally.Mismatch(nil, 4)
	const open, accepted, fixed = state.StatusOpen, state.StatusAccepted, state.StatusFixed
	for name, c := range map[string]struct {
		a, b, c            state.FindingStatus
		differ, unlisted   int64
		accepted, findings int64
	}{
		"all open":         {open, open, open, 20, 0, 0, 3},
		"one accepted":     {accepted, open, open, 20, 0, 0, 2},
		"two accepted":     {accepted, accepted, open, 10, 0, 10, 1},
		"another two":      {open, accepted, fixed, 14, 0, 6, 1},
		"all judged":       {fixed, accepted, accepted, 0, 0, 20, 0},
		"one never listed": {accepted, accepted, "", 6, 6, 14, 0},
	} {
		t.Run(name, func(t *testing.T) {
			findings := []state.Finding{marked("a", c.a), marked("b", c.b)}
			if c.c != "" {
				findings = append(findings, marked("c", c.c))
			}
			report := Judge(judgeInput([]state.Tally{tally}, findings...))
			v := report.Overall
			if bound := upperBound(c.differ, 100); v.UpperBound != bound || v.Confirmed != c.differ || v.Unlisted != c.unlisted || v.Accepted != c.accepted || openFindings(report) != c.findings {
				t.Errorf("got %+v, want %+v", v, c)
			}
			if c.unlisted > 0 && !strings.Contains(strings.Join(v.Reasons, "; "), "6 comparisons had differences that are not listed") {
				t.Errorf("the reasons are %q", v.Reasons)
			}
			if c.differ > 0 && report.Verdict != Fail || c.differ == 0 && report.Verdict != Inconclusive {
				t.Errorf("the verdict is %s", report.Verdict)
			}
		})
	}
}

// TestFixedNeedsNewComparisons, and what is seen again counts alone.
func TestFixedNeedsNewComparisons(t *testing.T) {
	before, after := differing(5000, 20), tallied(80)
	fixed := testNow.Add(20 * time.Second)
	after.At = fixed
	judged := openFinding(20)
	judged.Status = state.StatusFixed
	input := judgeInput([]state.Tally{before}, judged)
	input.Since = map[mapping.Operation]time.Time{mapping.OpFlagTypes: fixed}
	other := tallied(5000)
	other.Operation = mapping.OpAttachment
	input.Tallies = append(input.Tallies, other)
	report := Judge(input)
	if v := report.Operations[0]; report.Verdict != Inconclusive || v.Compared != 0 || v.Needed != 2995 || !v.Since.Equal(fixed) ||
		!strings.Contains(strings.Join(report.Overall.Reasons, "; "), "nothing was compared since a finding was called fixed") {
		t.Errorf("%s: %+v", report.Verdict, v)
	}
	input.Tallies = append(input.Tallies, after)
	if v := Judge(input).Operations[0]; v.Verdict != Inconclusive || v.Compared != 80 || v.Confirmed != 0 {
		t.Errorf("after 80 more: %+v", v)
	}
	again := differing(1, 1)
	again.At = fixed.Add(40 * time.Second)
	input.Tallies, input.Findings = append(input.Tallies, again), []state.Finding{openFinding(21)}
	report = Judge(input)
	if v := report.Operations[0]; v.Verdict != Fail || v.Compared != 81 || v.Confirmed != 1 || report.Findings[0].Count != 21 {
		t.Errorf("seen again: %+v", v)
	}
}

// TestFindingsAreInOrder: open ones first, and of those the most frequent.
func TestFindingsAreInOrder(t *testing.T) {
	input := judgeInput(nil)
	for i, signature := range []string{"rare", "fixed", "often", "accepted", "equal", "same"} {
		f := openFinding([]int64{1, 100, 50, 80, 20, 20}[i])
		if f.Signature = signature; signature == "fixed" || signature == "accepted" {
			f.Status = state.FindingStatus(signature)
		}
		input.Findings = append(input.Findings, f)
	}
	var got []string
	for _, f := range Judge(input).Findings {
		got = append(got, f.Signature)
	}
	if want := "[often equal same rare fixed accepted]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestFindingFromBeforeIsLeftOpen: its operation was not compared since then.
func TestFindingFromBeforeIsLeftOpen(t *testing.T) {
	input := judgeInput(nil, openFinding(3))
	input.Since = map[mapping.Operation]time.Time{mapping.OpFlagTypes: testNow.Add(time.Second)}
	if report := Judge(input); report.Verdict != Inconclusive || len(report.Overall.Reasons) != 2 {
		t.Errorf("%s: %q", report.Verdict, report.Overall.Reasons)
	}
}

// TestSickCandidateDoesNotPass: calls that the candidate keeps from being compared are
// no proof. Those that the comparison itself leaves out do not matter.
func TestSickCandidateDoesNotPass(t *testing.T) {
	for name, c := range map[string]struct {
		compared  int64
		dropped   map[string]int64
		want      Verdict
		needed    int64
		prevented int64
	}{
		"a queue":         {3000, map[string]int64{"queue-full": 500, "rate-limit": 90000, "memory-full": 3}, Pass, 0, 0},
		"as many as may":  {9990, map[string]int64{"other-unreachable": 10}, Pass, 0, 10},
		"one more":        {9990, map[string]int64{"other-unreachable": 10, "other-overload": 1}, Inconclusive, 999, 11},
		"breaker":         {3000, map[string]int64{"other-breaker-open": 1000}, Inconclusive, 996000, 1000},
		"answers clients": {3000, map[string]int64{"candidate-failed": 1000}, Inconclusive, 996000, 1000},
		"dead":            {0, map[string]int64{"other-unreachable": 5}, Inconclusive, 4995, 5},
	} {
		t.Run(name, func(t *testing.T) {
			tally := tallied(c.compared)
			tally.Dropped = c.dropped
			report := Judge(judgeInput([]state.Tally{tally}))
			v := report.Overall
			if report.Verdict != c.want || v.Needed != c.needed || v.Prevented != c.prevented || v.TooOftenPrevented(report.Target) != (c.want != Pass) {
				t.Errorf("%s: %+v", report.Verdict, v)
			}
		})
	}
	tally := tallied(3000)
	tally.Dropped = map[string]int64{"other-breaker-open": 1000}
	want := "flag_type.get: the candidate prevented the comparison of 1,000 of 4,000 calls (25 %, limit 0.1 %)"
	if got := Judge(judgeInput([]state.Tally{tally})).Overall.Reasons; len(got) != 1 || got[0] != want {
		t.Errorf("the reasons are %q", got)
	}
}

func openFindings(r Report) (n int64) {
	for _, f := range r.Findings {
		if f.Status == state.StatusOpen {
			n++
		}
	}
	return n
}

// TestUnstableIsWhereNothingLasts: a comparison with an open finding that lasts is not one whose differences went away.
func TestUnstableIsWhereNothingLasts(t *testing.T) {
	gone := marked("a", state.StatusOpen)
	gone.Kind = KindUnstable
	tally := tallied(100)
	tally.Mismatch([]string{"a"}, 3)
	tally.Mismatch([]string{"a", "b"}, 2)
	v := Judge(judgeInput([]state.Tally{tally}, gone, marked("b", state.StatusOpen))).Overall
	if v.Confirmed != 5 || v.Unstable != 3 {
		t.Errorf("%d differ, %d of them unstable, want 5 and 3", v.Confirmed, v.Unstable)
	}
	tally.Mismatches = nil
	tally.Mismatch(nil, 4)
	if v := Judge(judgeInput([]state.Tally{tally}, gone)).Overall; v.Confirmed != 4 || v.Unstable != 0 {
		t.Errorf("%d differ, %d of them unstable, want 4 of which nothing else is known", v.Confirmed, v.Unstable)
	}
}

// TestUnfinishedNeverPasses, and still fails.
func TestUnfinishedNeverPasses(t *testing.T) {
	for want, report := range map[Verdict]Report{
		Inconclusive: Judge(judgeInput([]state.Tally{tallied(2995)})), Fail: Judge(judgeInput([]state.Tally{differing(10, 1)}, openFinding(1))),
	} {
		report.Unfinished("the recording was cut")
		reasons := report.Overall.Reasons
		if report.Verdict != want || report.Overall.Verdict != want || reasons[len(reasons)-1] != "the recording was cut" {
			t.Errorf("%s for %q, want %s", report.Verdict, reasons, want)
		}
	}
}
