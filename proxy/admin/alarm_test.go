package admin_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"portico/proxy"
	"portico/proxy/admin"
	"portico/upstream/journal"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// codes are those of the reasons, the first one first.
func codes(alarm admin.Alarm) string {
	var all []string
	for _, reason := range alarm.Reasons {
		all = append(all, reason.Code+" "+reason.Subject)
	}
	return strings.Join(all, ", ")
}

func TestAlarm(t *testing.T) {
	m := admin.NewMetrics()
	if alarm := m.Alarm(); alarm.Level != admin.Green || alarm.Since.IsZero() || alarm.Reasons == nil {
		t.Errorf("at first: %+v", alarm)
	}
	m.RedisState(false)
	if alarm := m.Alarm(); alarm.Level != admin.Amber || codes(alarm) != "redis " {
		t.Errorf("without Redis: %+v", alarm)
	}
	m.RedisState(true)
	thrown := time.Now().Add(-time.Hour)
	m.Phases(switchover.Status{Killed: &switchover.Kill{At: thrown, Actor: "ada", Reason: "tests"}})
	m.Reloaded(errors.New("line 2"))
	m.Reloaded(errors.New("line 3"))
	if alarm := m.Alarm(); codes(alarm) != "kill-switch , reload " || !alarm.Since.Equal(thrown) || alarm.Reasons[1].Cause != "line 3" {
		t.Errorf("killed: %+v", alarm)
	}
	before := time.Now()
	m.Phases(switchover.Status{})
	m.Reloaded(nil)
	if alarm := m.Alarm(); alarm.Level != admin.Green || alarm.Since.Before(before) {
		t.Errorf("at last: %+v", alarm)
	}
}

func TestAlarmOfWhatIsWatched(t *testing.T) {
	m := admin.NewMetrics()
	at := func(ends time.Duration) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{NotAfter: time.Now().Add(ends)}}}}
	}
	look := func(w admin.Watched) admin.Alarm {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // after the first look
		m.Watch(ctx, func() admin.Watched { return w })
		return m.Alarm()
	}
	day, closed := 24*time.Hour, []transport.Status{{Breaker: "read", State: transport.Closed}}
	alarm := look(admin.Watched{Status: admin.Status{
		Primary: "main", Trackers: map[string]admin.TrackerStatus{"main": {Serves: true, Problem: "it redirects", Breakers: closed}},
		Switchover: &admin.SwitchoverStatus{Stale: "no connection"},
	}, Certificates: map[string]*tls.Config{
		"a": at(13 * day), "b": at(15 * day), "c": at(-day), "d": nil,
	}, Folders: map[string]string{"files": t.TempDir() + "/gone"}})
	if got := codes(alarm); alarm.Level != admin.Red || got != "certificate-end c, state , tracker , certificate a" {
		t.Errorf("the reasons are %q", got)
	}
	for _, reason := range alarm.Reasons {
		if ago := time.Since(reason.Since); reason.Code == "certificate" && (ago < day || ago > day+time.Hour) {
			t.Errorf("the certificate is near its end since %v", reason.Since)
		}
	}
	renewed := map[string]*tls.Config{"a": at(90 * day), "c": at(90 * day)}
	if alarm := look(admin.Watched{Certificates: renewed}); alarm.Level != admin.Green {
		t.Errorf("all is mended: %+v", alarm)
	}
}

func TestAlarmOfLateCopies(t *testing.T) {
	m := admin.NewMetrics()
	look := func(held *journal.Status) admin.Alarm {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // after the first look
		m.Watch(ctx, func() admin.Watched { return admin.Watched{Status: admin.Status{Journal: held}} })
		return m.Alarm()
	}
	if alarm := look(&journal.Status{Pending: 2, Lag: 200}); alarm.Level != admin.Green {
		t.Errorf("of copies that are under way: %+v", alarm)
	}
	alarm := look(&journal.Status{Pending: 2, Unresolved: 1, Parked: 4, Lag: 301})
	if codes(alarm) != "journal " || alarm.Level != admin.Amber || alarm.Reasons[0].Cause != "7 not copied, 4 of them parked." {
		t.Errorf("of late copies: %+v", alarm)
	}
	for _, lag := range []float64{299, 301, 151} { // the oldest one was copied, and the next one is as old
		if again := look(&journal.Status{Pending: 2, Lag: lag}); codes(again) != "journal " || !again.Since.Equal(alarm.Since) {
			t.Errorf("copies are %v s late: %+v", lag, again)
		}
	}
	for _, held := range []*journal.Status{{Pending: 2, Lag: 149}, nil, {}} {
		if alarm := look(held); alarm.Level != admin.Green {
			t.Errorf("all is copied: %+v", alarm)
		}
	}
}

func TestAlarmOfTrackers(t *testing.T) {
	m := admin.NewMetrics()
	look := func(state transport.State, idle bool) admin.Alarm {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // after the first look
		m.Watch(ctx, func() admin.Watched {
			return admin.Watched{Status: admin.Status{Trackers: map[string]admin.TrackerStatus{"main": {Address: "a:1", Serves: !idle, Breakers: []transport.Status{
				{Breaker: "read", State: transport.Closed}, {Breaker: "write", State: state, Cause: "it is gone"},
			}}}}}
		})
		return m.Alarm()
	}
	alarm := look(transport.Open, false)
	since := alarm.Since
	if again := look(transport.HalfOpen, false); codes(alarm) != "breaker-write main" || codes(again) != "breaker-write main" || !again.Since.Equal(since) ||
		again.Level != admin.Red || alarm.Reasons[0].Cause != "a:1: it is gone" || !strings.Contains(alarm.Reasons[0].Problem, "Tracker main fails") {
		t.Errorf("of a tracker that serves: %+v, then %+v", alarm, again)
	}
	if alarm := look(transport.HalfOpen, true); codes(alarm) != "candidate main" || alarm.Level != admin.Amber {
		t.Errorf("of one that serves no client: %+v", alarm)
	}
	if alarm := look(transport.Closed, true); alarm.Level != admin.Green {
		t.Errorf("all is mended: %+v", alarm)
	}
}

func TestTraffic(t *testing.T) {
	m := admin.NewMetrics()
	for i := range 90 {
		m.Finished(proxy.Record{Operation: "flag_type.get", Status: 200, Duration: 2 * time.Millisecond})
		m.CacheRead([]string{"local", "redis", "stale"}[i%3])
	}
	for range 10 {
		m.Finished(proxy.Record{Operation: "attachment.get", Status: 503, Duration: 3 * time.Second})
		m.CacheRead("expired")
	}
	latest := m.Traffic().Latest
	if latest.Requests != 100 || latest.ErrorRate != .1 || latest.CacheHitRate != .9 || latest.P50Seconds < .001 || latest.P50Seconds > .0025 ||
		latest.P95Seconds < 2.5 || latest.P95Seconds > 5 || latest.Seconds <= 0 {
		t.Errorf("%+v", latest)
	}
	if none := admin.NewMetrics().Traffic(); !none.Thin || none.Latest.P50Seconds != 0 || len(none.Minutes) != 1 {
		t.Errorf("without requests: %+v", none)
	}
}

func TestStatusPageWithAlarmAndTraffic(t *testing.T) {
	m := admin.NewMetrics()
	m.RedisState(false)
	_, base := open(t, admin.Options{Metrics: m})
	_, _, body := look(t, "GET", base+"/")
	contains(t, body, `<div class="alarm amber" role="status" id="alarm">`, "<b>Redis is unreachable.</b> Since <time", "Flag type reads go to the tracker.",
		`id="thin">Fewer than five requests`, `aria-label="Requests: 0 /s.`, "up to 100 %")
	_, _, body = look(t, "GET", base+"/status")
	var status struct {
		Alarm   struct{ Level, Since string }
		Traffic struct{ Minutes []map[string]any }
	}
	if err := json.Unmarshal([]byte(body), &status); err != nil || status.Alarm.Level != "amber" || status.Traffic.Minutes[0]["p95_seconds"] == nil {
		t.Errorf("%v in %s", err, body)
	}
}

func TestProfiles(t *testing.T) {
	_, base := open(t, admin.Options{Token: "secret"})
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=0.1"} {
		if status, _, body := look(t, "GET", base+path, "Authorization", "Bearer secret"); status != 200 || body == "" {
			t.Errorf("%s with the token: %d", path, status)
		}
		if status, _, _ := look(t, "GET", base+path); status != 401 {
			t.Errorf("%s without the token: %d", path, status)
		}
	}
	_, base = open(t, admin.Options{})
	if status, _, _ := look(t, "GET", base+"/debug/pprof/heap"); status != 404 {
		t.Errorf("without a token in the configuration: %d", status)
	}
}
