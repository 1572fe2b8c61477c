package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"portico/proxy/admin"
	"portico/upstream/canary"
	"portico/upstream/switchover"
)

func TestMetricsOfTwoTrackers(t *testing.T) {
	metrics := admin.NewMetrics()
	_, base := open(t, admin.Options{Metrics: metrics})
	for _, outcome := range []canary.Outcome{canary.OutcomeSame, canary.OutcomeSame, canary.OutcomeConfirmed} {
		metrics.Compared("flag_type.get", outcome)
	}
	metrics.Dropped("attachment.list", "queue-full")
	metrics.Routed("flag_type.get", "ci", "new")
	metrics.RefusedWrite("attachment.update")
	metrics.Lookup("bug", "found")
	metrics.Phases(switchover.Status{Version: 3, Rules: []switchover.RuleStatus{{Rule: switchover.Rule{Name: "gone", Reads: "new", Writes: "new"}}}})
	metrics.Phases(switchover.Status{
		Version: 4, Killed: &switchover.Kill{}, Rules: []switchover.RuleStatus{{Rule: switchover.Rule{Name: "ci", Reads: "new-compare", Writes: "old"}}},
	})
	if err := metrics.CanaryQueue(func() int { return 9 }); err != nil {
		t.Fatal(err)
	}
	_, _, body := look(t, "GET", base+"/metrics")
	for _, line := range []string{
		`portico_canary_comparisons_total{operation="flag_type.get",outcome="same"} 2`,
		`portico_canary_comparisons_total{operation="flag_type.get",outcome="confirmed"} 1`,
		`portico_canary_dropped_total{operation="attachment.list",reason="queue-full"} 1`,
		`portico_canary_queue 9`,
		`portico_switchover_calls_total{operation="flag_type.get",rule="ci",tracker="new"} 1`,
		`portico_switchover_refused_total{operation="attachment.update"} 1`,
		`portico_switchover_lookups_total{outcome="found",what="bug"} 1`,
		`portico_switchover_phase{access="reads",phase="new-compare",rule="ci"} 1`,
		`portico_switchover_phase{access="writes",phase="old",rule="ci"} 1`,
		`portico_switchover_version 4`, `portico_switchover_killed 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if strings.Contains(body, `rule="gone"`) {
		t.Error("a rule that counts no more is shown")
	}
}

// However many rules there are, what counts them stays bounded.
func TestRulesInMetricsAreBounded(t *testing.T) {
	metrics := admin.NewMetrics()
	_, base := open(t, admin.Options{Metrics: metrics})
	for i := range 1000 {
		metrics.Routed("flag_type.get", fmt.Sprintf("rule-%d", i), "new")
	}
	_, _, body := look(t, "GET", base+"/metrics")
	if lines := strings.Count(body, "portico_switchover_calls_total{"); lines > 101 {
		t.Errorf("%d lines", lines)
	}
}
