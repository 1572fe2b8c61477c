package verdict

import (
	"encoding/json"
	"encoding/xml"
	"reflect"
	"strings"
	"testing"
	"time"

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

func TestTextTellsWhatToDo(t *testing.T) {
	var out strings.Builder
	if err := sampleReport(t).Text(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"FAIL  new against old\n", "12,355 compared, 1,234 differ (9.99 %), at most 10.4 % at 95 % confidence; 0.1 % are allowed",
		"since 2026-11-21 11:00 UTC (mara: version 5.2)", "flag_type.get", "INCONCLUSIVE", "2,985", "$.bug[id].id",
		"accepted until 2026-12-21", "queue-full", "2.9x", "Next", "look at the 1 open finding",
		"old-hosts   expired", "clock-skew  never hit", "flag_type.get: 10 % of comparisons differ (limit 0.1 %)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestTextOfAnEmptyReport(t *testing.T) {
	var out strings.Builder
	if err := Judge(JudgeInput{At: testNow}).Text(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "INCONCLUSIVE  the candidate against") || !strings.Contains(out.String(), "nothing was compared yet") {
		t.Errorf("it says\n%s", out.String())
	}
}

func TestTextShowsSomeOfManyFindings(t *testing.T) {
	report := Judge(judgeInput(nil))
	report.Findings = make([]FindingView, maxShown+7)
	var out strings.Builder
	if err := report.Text(&out); err != nil || strings.Count(out.String(), "0001-01-01 00:00 UTC") != maxShown || !strings.Contains(out.String(), "\n  and 7 more\n") {
		t.Errorf("%v, it says\n%s", err, out.String())
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
	if suites.Tests != 5 || suites.Failures != 3 || suites.Skipped != 2 || len(suites.Suites) != 3 {
		t.Errorf("there are %d tests, %d failures, %d skipped in %d suites", suites.Tests, suites.Failures, suites.Skipped, len(suites.Suites))
	}
	accepted := suites.Suites[2].Cases[1]
	if accepted.Skipped == nil || accepted.Skipped.Message != "mara: known & <harmless>" || accepted.Failure != nil {
		t.Errorf("the accepted finding is %+v", accepted)
	}
	if one := suites.Suites[1].Cases[0]; one.Name != "flag_type.get" || one.Failure == nil {
		t.Errorf("the first operation is %+v", one)
	}
}
