package verdict

import (
	"encoding/json"
	"encoding/xml"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"portico/mapping"
	"portico/upstream/canary/compare"
	"portico/upstream/state"
)

// sampleReport has something of everything.
func sampleReport(t *testing.T) Report {
	t.Helper()
	list := []compare.Equivalence{goodRule("clock-skew"), goodRule("old-hosts")}
	list[1].Expires = testNow.Add(-time.Hour)
	rules, _ := compare.NewRules(list, testNow)
	accepted := openFinding(7)
	accepted.Signature, accepted.Status, accepted.Actor, accepted.Reason = "00000000000000aa", state.StatusAccepted, "mara", "known & <harmless>"
	accepted.Until = testNow.Add(30 * 24 * time.Hour)
	tally := tallied(12345)
	tally.Mismatch([]string{openFinding(0).Signature}, 1234)
	tally.Dropped, tally.Noisy, tally.Transient = map[string]int64{"queue-full": 3}, 4, 5
	small := tallied(10)
	small.Operation = mapping.OpAttachment
	input := judgeInput([]state.Tally{tally, small}, openFinding(1234), accepted)
	input.Rules, input.Campaign = rules, state.Campaign{Started: testNow.Add(-time.Hour), Actor: "mara", Reason: "version\x1b 5.2"}
	return Judge(input)
}

// TestText compares the texts of several reports with testdata/report.txt, byte for byte: one of everything, an empty one, a good one,
// one with too many findings, one with odd values, and one with next steps only.
func TestText(t *testing.T) {
	many, odd := Judge(judgeInput(nil)), sampleReport(t)
	many.Findings = make([]state.Finding, maxShown+7)
	odd.Campaign.Reason, odd.Verdict, odd.Target = "", Pass, 0.5
	odd.Findings = append(odd.Findings,
		state.Finding{Signature: "x", Status: "open", Until: testNow, Kind: "plan", Class: "plan", Count: 1234567, Note: "n\tm\x07", Last: testNow},
		state.Finding{Signature: "y", Status: "accepted", Until: testNow, Kind: "unstable", Class: string(compare.ClassTime), Operation: mapping.OpAttachment, Note: "<b>"},
		state.Finding{Signature: "z", Status: "accepted", Kind: "reply", Class: string(compare.ClassTime)})
	odd.Overall.Ratio, odd.Overall.Answered.P95 = 12.3456, 1234567*time.Microsecond
	odd.Operations[0].Operation, odd.Operations[0].Rate, odd.Dropped["a%d"] = "", 1, 1000
	steps := odd
	steps.Findings, steps.Rules, steps.Dropped, steps.Operations, steps.Overall.Reasons = nil, nil, nil, nil, nil
	steps.Verdict = Inconclusive
	var got strings.Builder
	for _, r := range []Report{sampleReport(t), Judge(JudgeInput{At: testNow}), Judge(judgeInput([]state.Tally{tallied(2995)})), many, odd, steps} {
		if err := r.Text(&got); err != nil {
			t.Fatal(err)
		}
		got.WriteString("=====\n")
	}
	want, err := os.ReadFile("testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i, line := range wantLines[:min(len(wantLines), len(gotLines))] {
		if gotLines[i] != line {
			t.Errorf("line %d is\n%q, want\n%q", i+1, gotLines[i], line)
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Errorf("%d lines, want %d", len(gotLines), len(wantLines))
	}
}

// A recording has no times of its own, so a replay against it measures none.
func TestTextWithoutTimes(t *testing.T) {
	report := Report{Operations: []OperationVerdict{{Operation: "flag_type.get", Compared: 3}}}
	var text strings.Builder
	if err := report.Text(&text); err != nil || !strings.Contains(text.String(), "not measured") || strings.Contains(text.String(), "ms") {
		t.Errorf("%v: %s", err, &text)
	}
}

func TestReportSurvivesJSON(t *testing.T) {
	report := sampleReport(t)
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(report, back) {
		t.Errorf("%+v became %+v", report, back)
	}
	if !strings.Contains(string(text), `"pair":{"answered":"old","other":"new"}`) {
		t.Errorf("it is %s", text)
	}
	if text, err := json.Marshal(Judge(JudgeInput{Findings: []state.Finding{}})); err != nil || strings.Contains(string(text), "null") {
		t.Errorf("an empty report is %s, %v", text, err)
	}
}

func TestJUnitHasACaseForEverything(t *testing.T) {
	var out strings.Builder
	if err := sampleReport(t).JUnit(&out); err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal([]byte(out.String()), &suites); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	var counts [][3]int
	for _, suite := range suites.Suites {
		counts = append(counts, [3]int{suite.Tests, suite.Failures, suite.Skipped})
	}
	if want := [][3]int{{1, 1, 0}, {2, 1, 1}, {2, 1, 1}}; !slices.Equal(counts, want) {
		t.Errorf("the suites have %v tests, failures and skipped ones, want %v", counts, want)
	}
	accepted := suites.Suites[2].Cases[1]
	if accepted.Skipped == nil || accepted.Skipped.Message != "mara: known & <harmless>" || accepted.Failure != nil {
		t.Errorf("the accepted finding is %+v", accepted)
	}
	if one := suites.Suites[1].Cases[0]; one.Name != "flag_type.get" || one.Failure == nil {
		t.Errorf("the first operation is %+v", one)
	}
}

// The bounds were computed with 40 digits.
func TestUpperBoundIsExact(t *testing.T) {
	for _, test := range []struct {
		mismatches, compared int64
		want                 float64
	}{
		{0, 0, 1}, {0, 1, 0.95}, {7, 7, 1}, {9, 3, 1},
		{0, 2995, 0.00099974442090114232}, {0, 100, 0.029513049607039935}, {1, 10, 0.39416330243650478},
		{5, 10, 0.77755889899187092}, {9, 10, 0.9948838031081763}, {3, 4742, 0.0016342832011515296},
		{10, 100, 0.16371762327581479}, {50, 100, 0.58637828536908824}, {300, 1000, 0.32475361271934874},
		{999, 1000, 0.99994870802109098}, {1, 1e9, 4.7438645095103854e-9},
	} {
		if got := upperBound(test.mismatches, test.compared); math.Abs(got-test.want) > 1e-5*test.want {
			t.Errorf("%d of %d: %.17g, want %.17g", test.mismatches, test.compared, got, test.want)
		}
	}
}

func TestUpperBoundIsABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1e6).Draw(t, "n")
		k := rapid.Int64Range(0, n-1).Draw(t, "k")
		if rapid.Bool().Draw(t, "few") {
			k = min(k, rapid.Int64Range(0, 20).Draw(t, "few k"))
		}
		bound := upperBound(k, n)
		if rate := float64(k) / float64(n); !(bound > rate) || bound > 1 {
			t.Fatalf("%d of %d: %g", k, n, bound)
		}
		if p := atMost(k, n, bound); math.Abs(p-0.05) > 1e-6 {
			t.Fatalf("%d of %d: at the bound %g the probability is %g", k, n, bound, p)
		}
		if more := upperBound(k+1, n); more < bound {
			t.Fatalf("one mismatch more than %d of %d takes the bound from %g to %g", k, n, bound, more)
		}
	})
}

func TestNeededIsJustEnough(t *testing.T) {
	for target, want := range map[float64]int64{0.001: 2995, 0.01: 299, 0.1: 29, 0.5: 5, 1e-8: 299573226} {
		if got := needed(0, 0, target); got != want {
			t.Errorf("for %g it takes %d, want %d", target, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		k, n := rapid.Int64Range(0, 50).Draw(t, "k"), rapid.Int64Range(0, 1e6).Draw(t, "n")
		target := rapid.SampledFrom([]float64{0.1, 0.01, 0.001, 1e-5}).Draw(t, "target")
		more := needed(k, n, target)
		if bound := upperBound(k, n+more); bound > target*(1+1e-6) {
			t.Fatalf("%d more than %d of %d leave the bound at %g", more, k, n, bound)
		}
		if more > 0 && upperBound(k, n+more-1) <= target*(1-1e-6) {
			t.Fatalf("%d more than %d of %d are too many", more, k, n)
		}
	})
}

func TestBoundsCoverWhatTrackersTake(t *testing.T) {
	if latencyBound(0) != 100*time.Microsecond || latencyBound(bounds-1) != 120*time.Second {
		t.Errorf("the bounds are %v to %v", latencyBound(0), latencyBound(bounds-1))
	}
	bucket := func(took time.Duration) int { return slices.Index(CountLatency(nil, took), 1) }
	for i := range bounds {
		bound := latencyBound(i)
		if i > 0 && math.Abs(float64(bound)/float64(latencyBound(i-1))-1.1) > 0.01 {
			t.Errorf("bound %d is %v after %v", i, bound, latencyBound(i-1))
		}
		if at, next := bucket(bound), bucket(bound+1); at != i || next != i+1 {
			t.Errorf("%v is in bucket %d, and what is longer in %d", bound, at, next)
		}
	}
	if bucket(0) != 0 || bucket(time.Hour) != bounds {
		t.Error("nothing or an hour is in the wrong bucket")
	}
}

// histogramOf counts durations.
func histogramOf(durations ...time.Duration) (histogram []int64) {
	for _, d := range durations {
		histogram = CountLatency(histogram, d)
	}
	return histogram
}

// repeated is n times the same duration.
func repeated(d time.Duration, n int) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

func TestQuantilesAreNearTheTrueOnes(t *testing.T) {
	var list []time.Duration
	for i := 1; i <= 1000; i++ {
		list = append(list, time.Duration(i)*time.Millisecond)
	}
	got := quantilesOf(histogramOf(list...))
	for want, have := range map[time.Duration]time.Duration{500: got.P50, 950: got.P95, 990: got.P99} {
		if want *= time.Millisecond; math.Abs(float64(have)/float64(want)-1) > 0.03 {
			t.Errorf("it is %v, want %v", have, want)
		}
	}
	if none := quantilesOf(nil); none != (Quantiles{}) {
		t.Errorf("of nothing: %v", none)
	}
	if long := quantilesOf(histogramOf(time.Hour)); long.P50 != 120*time.Second {
		t.Errorf("an hour is %v", long.P50)
	}
}

// tailed are answers of which some took ten times as long as the others.
func tailed(fast, slow int) []int64 {
	return histogramOf(append(repeated(100*time.Millisecond, fast), repeated(time.Second, slow)...)...)
}

func TestSlowerNeedsRatioAndSlackAndEnough(t *testing.T) {
	target := LatencyTarget{Ratio: 2, Slack: 50 * time.Millisecond, Least: 20}
	base := histogramOf(repeated(100*time.Millisecond, 20)...)
	one, three := histogramOf(repeated(time.Millisecond, 100)...), histogramOf(repeated(3*time.Millisecond, 100)...)
	if d, _ := (LatencyTarget{Ratio: 2}).Slower(one, three); d.Path != "latency.p50" {
		t.Errorf("without slack: %q, want the median", d.Path)
	}
	if d, slower := (LatencyTarget{}).Slower(one, three); slower {
		t.Errorf("by default: %q, want none within 50 ms", d.Path)
	}
	for name, test := range map[string]struct {
		answered, other []int64
		want            string
	}{
		"equal":            {base, base, ""},
		"just within":      {base, histogramOf(repeated(180*time.Millisecond, 20)...), ""},
		"just beyond":      {base, histogramOf(repeated(230*time.Millisecond, 20)...), "latency.p50"},
		"too few":          {base, histogramOf(repeated(time.Second, 19)...), ""},
		"within the slack": {histogramOf(repeated(time.Millisecond, 20)...), histogramOf(repeated(40*time.Millisecond, 20)...), ""},
		"a slow tail":      {tailed(20, 0), tailed(180, 20), "latency.p95"},
		"one by chance":    {tailed(20, 0), tailed(18, 2), ""},
		"both have a tail": {tailed(96, 4), tailed(91, 9), ""},
		"faster":           {histogramOf(repeated(time.Second, 20)...), base, ""},
	} {
		if d, _ := target.Slower(test.answered, test.other); d.Path != test.want {
			t.Errorf("%s: %q (%s to %s), want %q", name, d.Path, d.Want, d.Have, test.want)
		}
	}
}
