package migration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// portico runs a command against the admin listener, and returns its exit status and output.
func (s *strangers) portico(t *testing.T, args ...string) (int, string) {
	t.Helper()
	status, _, out := process.Run(t, append(args, "--admin", s.Operators)...)
	return status, out
}

// wants runs a command and checks its exit status and its output.
func (s *strangers) wants(t *testing.T, status int, text string, args ...string) {
	t.Helper()
	if got, out := s.portico(t, args...); got != status || !strings.Contains(out, text) {
		t.Errorf("portico %s exits with %d, want %d, and says, where %q is expected:\n%s", strings.Join(args, " "), got, status, text, out)
	}
}

// signature signs a change on the command line.
func signature(args ...string) []string {
	return append(args, "--actor", "tester", "--reason", "a test")
}

const comparing = "switchover: {rules: [{name: rest, reads: old-compare, writes: old}]}\n"

// twins are two trackers with the same objects and keys, of which one follows the other.
func twins(t *testing.T, settings string) *strangers {
	t.Helper()
	before := tracker.New(tracker.Options{Seed: tracker.SeedFixture})
	return startStrangers(t, before, tracker.New(tracker.Options{Follows: before}), "credentials: mapped", settings, tracker.Keys(tracker.SeedFixture)["editor@example.com"])
}

// TestAStepIsEarned takes a rule ahead when both trackers have responded alike often enough, and back.
func TestAStepIsEarned(t *testing.T) {
	s := twins(t, comparing)
	s.wants(t, 2, "verdict      unknown  INCONCLUSIVE of 0 comparisons", "migrate", "plan")
	s.wants(t, 1, "rest: verdict unknown", signature("migrate", "advance", "rest")...)
	s.wants(t, 2, "cannot tell", signature("migrate", "advance", "rest", "--dry-run")...)
	process.Eventually(t, "the step is earned", func() bool {
		for range 20 {
			s.ask(t, http.MethodGet, "/rest/bug/1/attachment", "", keyHeader, s.oldKey)
		}
		status, _ := s.portico(t, "migrate", "plan", "--rule", "rest")
		return status == 0
	})
	s.wants(t, 0, "ready", signature("migrate", "advance", "rest", "--dry-run")...)
	s.wants(t, 0, "version 1", "migrate", "status")
	s.wants(t, 0, "version 2", signature("migrate", "advance", "rest")...)
	s.wants(t, 1, "says 409", signature("migrate", "advance", "rest", "--version", "1")...)
	before := s.after.Requests()["attachment.list"]
	if status, reason, text := s.ask(t, http.MethodGet, "/rest/bug/1/attachment", "", keyHeader, s.oldKey); status != http.StatusOK || s.after.Requests()["attachment.list"] == before {
		t.Errorf("the read does not go to the new tracker: %d %s %s", status, reason, text)
	}
	s.wants(t, 0, "version 3", signature("migrate", "reverse", "rest")...)
	s.wants(t, 1, `there is no rule "store"`, signature("migrate", "advance", "store")...)
	s.wants(t, 2, `There is no plan: there is no rule "store"`, "migrate", "plan", "--rule", "store")
	s.wants(t, 0, "rest: reads old-compare, writes old → reads new-compare, writes old", "migrate", "plan")
}

// TestAnOverrideIsNamedAndKept moves a rule against what is known, and throws the kill switch, which needs nothing.
func TestAnOverrideIsNamedAndKept(t *testing.T) {
	s := twins(t, comparing)
	override := []string{"migrate", "advance", "rest", "--despite", "verdict", "--despite", "freshness", "--despite", "errors"}
	s.wants(t, 1, "rest: stability unknown", signature(override...)...)
	s.wants(t, 1, `there is no precondition "luck"`, signature(append(override, "--despite", "luck")...)...)
	s.wants(t, 0, "version 2", signature(append(override, "--despite", "stability")...)...)
	s.wants(t, 0, "a test (despite rest verdict, rest freshness, rest errors, rest stability)", "migrate", "history")
	s.wants(t, 0, "KILLED by tester", signature("migrate", "kill")...)
	s.wants(t, 0, "version 4", signature("migrate", "revive")...)
}

// TestTrackersThatDifferHoldAStepBack compares two trackers with other objects.
func TestTrackersThatDifferHoldAStepBack(t *testing.T) {
	s := newStrangers(t, "credentials: mapped", comparing)
	other := tracker.UserKey(1)
	process.Eventually(t, "the verdict is FAIL, and a caller without a key was seen", func() bool {
		for _, key := range []string{s.oldKey, other} {
			s.ask(t, http.MethodGet, "/rest/bug/1/attachment", "", keyHeader, key, "User-Agent", "old-bot")
		}
		_, out := s.portico(t, "migrate", "plan")
		return strings.Contains(out, "FAIL of") && strings.Contains(out, "old-bot")
	})
	s.wants(t, 1, "a key without a name (user agent old-bot)", "migrate", "plan")
	s.wants(t, 1, "rest: verdict fails", signature("migrate", "advance", "rest")...)
	if _, out := s.portico(t, "migrate", "plan"); strings.Contains(out, other) || strings.Contains(out, s.oldKey) {
		t.Errorf("the plan shows a key:\n%s", out)
	}
}

// TestKeysAreTriedAtBothTrackers plans with a key that the new tracker does not know, and with comparisons that use other keys.
func TestKeysAreTriedAtBothTrackers(t *testing.T) {
	s := newStrangers(t, "credentials: forward", comparing)
	s.wants(t, 1, "after refuses the key of robot with code 306", "migrate", "plan")
	own := newStrangers(t, "credentials: mapped", comparing)
	if _, out := own.portico(t, "migrate", "plan"); !strings.Contains(out, "both trackers accept the keys of 1 callers") {
		t.Errorf("the keys of both trackers are refused:\n%s", out)
	}
}

// TestThePlanOnAPage looks at the page with the next step, and takes it by its form.
func TestThePlanOnAPage(t *testing.T) {
	s := twins(t, comparing)
	page := func(method, path, body string, header ...string) (int, string) {
		t.Helper()
		got := send(t, method, s.Operators+path, body, append(header, "Accept", "text/html", "Content-Type", "application/x-www-form-urlencoded")...)
		return got.status, string(got.text)
	}
	if status, text := page("GET", "/switchover/plan?rule=rest", ""); status != 200 || !strings.Contains(text, "despite verdict") {
		t.Errorf("the page: %d %s", status, text)
	}
	form := "rule=rest&version=1&actor=ada&reason=why"
	if status, text := page("POST", "/switchover/advance", form); status != http.StatusPreconditionFailed || !strings.Contains(text, "verdict unknown") {
		t.Errorf("not ready: %d %s", status, text)
	}
	form += "&despite=verdict&despite=freshness&despite=errors&despite=stability"
	if status, _ := page("POST", "/switchover/advance", form, "Sec-Fetch-Site", "cross-site", "Origin", "http://evil.example"); status != http.StatusForbidden {
		t.Errorf("a form of another site: %d", status)
	}
	if status, text := page("POST", "/switchover/advance", "rule=rest&version=1"); status != http.StatusUnprocessableEntity || !strings.Contains(text, "Say why") {
		t.Errorf("unsigned: %d %s", status, text)
	}
	if status, text := page("POST", "/switchover/advance", form); status != 200 || !strings.Contains(text, "one step ahead") {
		t.Errorf("overridden: %d %s", status, text)
	}
	if status, text := page("POST", "/switchover/reverse?back=1", fmt.Sprintf("rule=rest&version=%d&actor=ada&reason=why", 2)); status != 200 || !strings.Contains(text, "one step back") {
		t.Errorf("back: %d %s", status, text)
	}
}
