package verdict

import (
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
	lost := state.Tally{At: testNow, Operation: mapping.OpAttachment, Dropped: map[string]int64{"queue-full": 4}}
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
