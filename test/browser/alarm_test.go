package browser

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/proxy/admin"
	"portico/test/process"
)

// scene is the program with all that may fail beside it.
type scene struct {
	t *testing.T
	*process.Facade
	tracker, next, redis *process.Process
	trackerAddress       string
	killPostgres         func()
	file                 string
}

func startScene(t *testing.T) scene {
	t.Helper()
	s := scene{t: t, file: filepath.Join(t.TempDir(), "portico.yaml")}
	tracker, next, redis := process.FreeAddress(t), process.FreeAddress(t), process.FreeAddress(t)
	s.tracker, _ = process.Tracker(t, tracker, "--seed", "fixture")
	s.trackerAddress = tracker
	s.next, _ = process.Tracker(t, next, "--seed", "fixture")
	s.redis = process.Redis(t, redis)
	dsn, kill := process.PostgresToKill(t)
	s.killPostgres = kill
	s.write("trackers:", `  main: {url: "http://`+tracker+`/"}`, `  next: {url: "http://`+next+`/"}`, "primary: main", "candidate: next",
		`cache: {redis: "redis://`+redis+`"}`, `state: "`+dsn+`"`)
	s.Facade = process.Serve(t, nil, "serve", "--config", s.file)
	return s
}

func (s scene) write(lines ...string) {
	s.t.Helper()
	if err := os.WriteFile(s.file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// alarm returns the alarm. No client sends anything meanwhile.
func (s scene) alarm() admin.Alarm {
	s.t.Helper()
	response, err := http.Get(s.Operators + "/status")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var status struct{ Alarm admin.Alarm }
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		s.t.Fatal(err)
	}
	return status.Alarm
}

// raises waits until the alarm has a reason, which began now, and returns it.
func (s scene) raises(code string, level admin.Level, do func()) admin.Reason {
	s.t.Helper()
	begun := time.Now()
	do()
	var found admin.Reason
	process.Eventually(s.t, "the alarm says "+code, func() bool {
		alarm := s.alarm()
		for _, reason := range alarm.Reasons {
			if reason.Code == code {
				found = reason
			}
		}
		return found.Code != "" && alarm.Level != admin.Green
	})
	s.t.Logf("%s after %v", code, time.Since(begun))
	if found.Level != level || found.Since.Before(begun.Add(-time.Second)) || found.Since.After(time.Now()) || found.Meaning == "" {
		s.t.Errorf("%+v, begun at %v", found, begun)
	}
	return found
}

func (s scene) ends(code string) {
	s.t.Helper()
	process.Eventually(s.t, "the alarm ends "+code, func() bool {
		for _, reason := range s.alarm().Reasons {
			if reason.Code == code {
				return false
			}
		}
		return true
	})
}

func TestRealAlarm(t *testing.T) {
	s := startScene(t)
	browser := openBrowser(t, s.Operators, look{width: 1400})
	says := func(level string, reason admin.Reason) {
		t.Helper()
		browser.visit("/")
		line := browser.text("#alarm")
		if !strings.HasPrefix(strings.ToLower(line), level) || !strings.Contains(line, reason.Problem) || !strings.Contains(line, reason.Meaning) || !strings.Contains(line, "Since 20") {
			t.Errorf("the line says %q, and not %+v", line, reason)
		}
		browser.picture("alarm-" + reason.Code)
	}
	s.ends("breaker-read")
	if alarm := s.alarm(); alarm.Level != admin.Green || alarm.Since.IsZero() {
		t.Errorf("at first: %+v", alarm)
	}
	says("green", admin.Reason{Problem: "Clients are served as they should be."})

	reason := s.raises("redis", admin.Amber, func() { s.redis.Kill(t) })
	says("amber", reason)
	s.redis.Start(t)
	s.ends("redis")

	reason = s.raises("breaker-read", admin.Red, func() { s.tracker.Kill(t) })
	if reason.Subject != "main" {
		t.Errorf("the subject is %q", reason.Subject)
	}
	process.Eventually(t, "the cause is that nothing listens", func() bool {
		return s.alarm().Reasons[0].Cause == s.trackerAddress+": connection refused"
	})
	says("red", reason)
	s.tracker.Start(t)
	s.ends("breaker-read")

	reason = s.raises("candidate", admin.Amber, func() { s.next.Kill(t) })
	if alarm := s.alarm(); reason.Subject != "next" || alarm.Level != admin.Amber {
		t.Errorf("without the candidate, which serves no client: %+v", alarm)
	}
	says("amber", reason)
	s.next.Start(t)
	s.ends("candidate")

	reason = s.raises("reload", admin.Amber, func() {
		s.write("trackers: 5")
		s.Signal(t, syscall.SIGHUP)
	})
	says("amber", reason)

	reason = s.raises("state", admin.Red, s.killPostgres)
	says("red", reason)
	if alarm := s.alarm(); len(alarm.Reasons) != 2 || alarm.Reasons[0].Code != "state" || !alarm.Since.Equal(reason.Since) {
		t.Errorf("the worst reason is not the first one: %+v", alarm)
	}
}
