package admin_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream/canary"
	"portico/upstream/journal"
	"portico/upstream/state"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

func TestMetrics(t *testing.T) {
	metrics := admin.NewMetrics()
	_, base := open(t, admin.Options{Metrics: metrics})
	metrics.Finished(proxy.Record{Operation: mapping.OpFlagTypes, Status: 200, Duration: time.Millisecond, Bytes: 10})
	metrics.Finished(proxy.Record{Operation: mapping.OpCreateAttachment, Status: 503, Reason: mapping.ReasonBreakerOpen, Conflict: true})
	metrics.Finished(proxy.Record{Operation: proxy.OpPassthrough, Status: proxy.StatusClientGone})
	metrics.Finished(proxy.Record{Operation: proxy.OpPassthrough})
	calls := admin.Calls{Metrics: metrics, Tracker: "main"}
	calls.Observe(transport.Sample{Operation: "flag_type.get", Class: transport.Read, Status: 200, Tries: 3, Total: time.Second, BytesIn: 5, BytesOut: -1})
	calls.Observe(transport.Sample{Operation: "flag_type.update", Class: transport.Write, Reason: transport.Reset, Unknown: true})
	metrics.Breaker("main", "read", "closed")
	metrics.Breaker("main", "read", "open")
	metrics.Limiter("main", func() transport.Load { return transport.Load{InUse: 1, Slots: 2, Waiting: 3, Shed: 4} })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a second limiter of the same tracker was taken")
			}
		}()
		metrics.Limiter("main", nil)
	}()
	metrics.CacheRead("hit")
	metrics.CacheFill(time.Millisecond, nil)
	metrics.Redis("get", time.Millisecond, errors.New("away"))
	metrics.RedisState(false)
	metrics.CacheChange(false)
	for _, outcome := range []canary.Outcome{canary.OutcomeSame, canary.OutcomeSame, canary.OutcomeConfirmed} {
		metrics.Compared("flag_type.get", outcome)
	}
	metrics.Dropped("attachment.list", "queue-full")
	metrics.Routed("flag_type.get", "ci", "new")
	metrics.RefusedWrite("attachment.update")
	metrics.Lookup("bug", "found")
	metrics.Phases(switchover.Status{Version: 3, Rules: []switchover.RuleStatus{{Rule: switchover.Rule{Name: "gone", Reads: "new", Writes: "new"}}}})
	metrics.Phases(switchover.Status{
		Version: 4, Killed: &switchover.Kill{}, Rules: []switchover.RuleStatus{{
			Rule: switchover.Rule{Name: "ci", Reads: "new-compare", Writes: "old"}, GoingBack: journal.Outlook{State: journal.OutlookDrain},
		}}, Old: "main", Table: switchover.Table{Rules: []switchover.Rule{{Name: "copied", Writes: "new", Replicate: true}}},
	})
	metrics.Journal(journal.Status{Read: time.Now(), Pending: 3, Unresolved: 1, Parked: 5, ParkedLanes: 4, Lag: 8, Missed: 2, Stopped: []state.JournalEntry{
		{Rule: "copied", Receiver: "main", Status: state.JournalParked},
	}})
	metrics.Build("1.2")
	metrics.Reloaded(errors.New("line 3"))
	metrics.CanaryQueue(func() int { return 9 })
	metrics.Connections(func() (open, busy int) { return 7, 2 })
	status, _, body := look(t, "GET", base+"/metrics")
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for _, line := range []string{
		`portico_requests_total{operation="flag_type.get",reason="",status_class="2xx"} 1`,
		`portico_requests_total{operation="attachment.create",reason="breaker-open",status_class="5xx"} 1`,
		`portico_requests_total{operation="passthrough",reason="",status_class="client_gone"} 1`,
		`portico_requests_total{operation="passthrough",reason="",status_class="none"} 1`,
		`portico_request_seconds_count{operation="flag_type.get"} 1`, `portico_response_bytes_total{operation="flag_type.get"} 10`,
		`portico_ids_conflicts_total 1`,
		`portico_tracker_calls_total{class="read",operation="flag_type.get",outcome="ok",status_class="2xx",tracker="main"} 1`,
		`portico_tracker_retries_total{operation="flag_type.get",tracker="main"} 2`,
		`portico_tracker_bytes_total{direction="in",tracker="main"} 5`, `portico_tracker_bytes_total{direction="out",tracker="main"} 0`,
		`portico_tracker_unknown_outcomes_total{operation="flag_type.update",tracker="main"} 1`,
		`portico_breaker_state{breaker="read",state="open",tracker="main"} 1`, `portico_breaker_state{breaker="read",state="closed",tracker="main"} 0`,
		`portico_tracker_calls_in_use{tracker="main"} 1`, `portico_tracker_calls_waiting{tracker="main"} 3`, `portico_tracker_calls_shed_total{tracker="main"} 4`,
		`portico_cache_total{outcome="hit"} 1`, `portico_redis_up 0`, `portico_cache_changes_total{delivered="no"} 1`,
		`portico_redis_seconds_count{operation="get",result="error"} 1`, `portico_cache_fill_seconds_count{result="ok"} 1`,
		`portico_canary_comparisons_total{operation="flag_type.get",outcome="same"} 2`,
		`portico_canary_comparisons_total{operation="flag_type.get",outcome="confirmed"} 1`,
		`portico_canary_dropped_total{operation="attachment.list",reason="queue-full"} 1`, `portico_canary_queue 9`,
		`portico_switchover_calls_total{operation="flag_type.get",rule="ci",tracker="new"} 1`,
		`portico_switchover_refused_total{operation="attachment.update"} 1`, `portico_switchover_lookups_total{outcome="found",what="bug"} 1`,
		`portico_switchover_phase{access="reads",phase="new-compare",rule="ci"} 1`, `portico_switchover_phase{access="writes",phase="old",rule="ci"} 1`,
		`portico_switchover_going_back{rule="ci",state="drain"} 1`, `portico_switchover_going_back{rule="ci",state="safe"} 0`,
		`portico_switchover_going_back{rule="copied",state="unsafe"} 1`, `portico_switchover_going_back{rule="copied",state="safe"} 0`,
		`portico_journal_entries{status="pending"} 3`, `portico_journal_entries{status="unresolved"} 1`, `portico_journal_entries{status="parked"} 5`,
		`portico_journal_parked_lanes 4`, `portico_journal_lag_seconds 8`, `portico_journal_missed 2`,
		`portico_switchover_version 4`, `portico_switchover_killed 1`,
		`portico_client_connections 7`, `portico_requests_in_flight 2`, `portico_reload_success 0`,
		`portico_condition{code="redis",subject=""} 1`, `portico_condition{code="reload",subject=""} 1`,
		`portico_build_info{go_version="` + runtime.Version() + `",version="1.2"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if !strings.Contains(body, "go_goroutines") || !strings.Contains(body, "portico_reload_timestamp_seconds 1.") || strings.Contains(body, `rule="gone"`) {
		t.Error("the figures of the process are missing, or a rule is shown that counts no more")
	}
}
