package migration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// withKeys is a configuration of two trackers that share no key. Both keys of one caller are in files.
const withKeys = `trackers:
  before: {url: "%[1]s/", dialect: bugzilla-5}
  after: {url: "%[2]s/", dialect: bugzilla-5, %[3]s}
primary: before
candidate: after
callers:
  robot: {keys: {before: {file: "%[4]s/old.key"}, after: {file: "%[4]s/new.key"}}}
state: "sqlite:%[4]s/state.db"
cache: {ttl: 1s, local_ttl: 100ms}
canary: {confirm_after: 10ms, target: 20, latency: {slack: 10s}}
log: {level: warn}
`

// strangers are Portico before two trackers with other users, keys and bugs.
type strangers struct {
	*process.Facade
	before, after  *tracker.Server
	oldKey, newKey string
}

func newStrangers(t *testing.T, after, rules string) *strangers {
	t.Helper()
	return startStrangers(t, tracker.New(tracker.Options{Seed: tracker.SeedFixture}), tracker.New(tracker.Options{Seed: tracker.SeedDemo}), after, rules, admin())
}

// startStrangers starts Portico before two trackers. after are settings of the new one.
func startStrangers(t *testing.T, old, fresh *tracker.Server, after, rules, newKey string) *strangers {
	t.Helper()
	s := &strangers{before: old, after: fresh, oldKey: tracker.Keys(tracker.SeedFixture)["editor@example.com"], newKey: newKey}
	bases := listenBoth(t, s.before, s.after)
	dir := t.TempDir()
	file := filepath.Join(dir, "portico.yaml")
	for name, text := range map[string]string{
		"portico.yaml": fmt.Sprintf(withKeys, bases[0], bases[1], strings.ReplaceAll(after, "NEW_KEY", filepath.Join(dir, "new.key")), dir) + rules,
		"old.key":      s.oldKey, "new.key": s.newKey,
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s.Facade = process.Serve(t, nil, "serve", "--config", file)
	return s
}

// ask makes one request with headers given as name and value.
func (s *strangers) ask(t *testing.T, method, path, body string, header ...string) (status int, reason, text string) {
	t.Helper()
	got := send(t, method, s.Clients+path, body, header...)
	return got.status, got.header.Get("Portico-Error"), string(got.text)
}

const (
	allNew = "switchover: {rules: [{name: all, reads: new, writes: new}]}\n"
	newBug = `{"data": "aGVsbG8K", "file_name": "a.txt", "summary": "by its other key", "content_type": "text/plain"}`
)

// TestEachTrackerGetsItsOwnKey sends live requests of a caller that shows the key of the old tracker to the new one.
func TestEachTrackerGetsItsOwnKey(t *testing.T) {
	s := newStrangers(t, "credentials: mapped", allNew)
	for _, c := range []struct {
		what, method, path, body string
		header                   []string
	}{
		{"a read", "GET", "/rest/bug/1/attachment", "", []string{keyHeader, s.oldKey}},
		{"a read with the new key", "GET", "/rest/bug/1/attachment", "", []string{keyHeader, s.newKey}},
		{"a read with a bearer token", "GET", "/rest/bug/1/attachment", "", []string{"Authorization", "Bearer " + s.oldKey}},
		{"a write", "POST", "/rest/bug/1/attachment", newBug, []string{keyHeader, s.oldKey}},
		{"a flag type read", "GET", "/rest/flag_type/WebShop", "", []string{keyHeader, s.oldKey}},
		{"what passes through", "GET", "/rest/bug/1", "", []string{keyHeader, s.oldKey}},
		{"what passes through with the key in the query", "GET", "/rest/bug/1?api_key=" + s.oldKey, "", nil},
		{"a comment that passes through", "POST", "/rest/bug/1/comment", `{"comment": "hello"}`, []string{keyHeader, s.oldKey}},
	} {
		if status, reason, text := s.ask(t, c.method, c.path, c.body, c.header...); status >= 300 {
			t.Errorf("%s: %d %s %s", c.what, status, reason, text)
		}
	}
	for _, entry := range s.after.Journal() {
		if strings.Contains(fmt.Sprintf("%+v", entry), s.oldKey) {
			t.Errorf("the new tracker was shown the key of the old one: %+v", entry)
		}
	}
	if n := len(s.before.Journal()); n > 0 {
		t.Errorf("the old tracker has %d writes", n)
	}
	if n := len(s.after.Journal()); n != 2 {
		t.Errorf("the new tracker has %d writes, want the attachment and the comment", n)
	}
}

// TestWithoutAKeyNothingIsSent refuses live requests of callers that have no key at the tracker that the rules choose.
func TestWithoutAKeyNothingIsSent(t *testing.T) {
	s := newStrangers(t, "credentials: mapped", allNew)
	other := tracker.UserKey(1)
	for _, c := range []struct {
		what, method, path, body string
		header                   []string
	}{
		{"a read", "GET", "/rest/bug/1/attachment", "", []string{keyHeader, other}},
		{"a flag type read", "GET", "/rest/flag_type/WebShop", "", []string{keyHeader, other}},
		{"a write", "POST", "/rest/bug/1/attachment", newBug, []string{keyHeader, other}},
		{"what passes through", "GET", "/rest/bug/1", "", []string{keyHeader, other}},
		{"a key in a body that passes through", "POST", "/rest/bug/1/comment", `{"comment": "hello", "api_key": "` + s.oldKey + `"}`, nil},
		{"a key in a call of JSON-RPC", "POST", "/jsonrpc.cgi", `{"method": "Bug.get", "id": 1, "params": [{"ids": [1], "Bugzilla_api_key": "` + s.oldKey + `"}]}`, nil},
	} {
		before := s.after.Requests()
		status, reason, text := s.ask(t, c.method, c.path, c.body, c.header...)
		if status != http.StatusUnauthorized || reason != "no-mapped-key" || !strings.Contains(text, `"code":410`) {
			t.Errorf("%s: %d %q %s, want 401 no-mapped-key with code 410", c.what, status, reason, text)
		}
		if strings.Contains(text, other) || strings.Contains(text, s.oldKey) {
			t.Errorf("%s: the error shows a key: %s", c.what, text)
		}
		if after := s.after.Requests(); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%s: the new tracker was asked: %v, then %v", c.what, before, after)
		}
	}
	if status, reason, text := s.ask(t, "GET", "/rest/bug/1/attachment", ""); status != http.StatusOK {
		t.Errorf("an anonymous caller gets %d %s %s", status, reason, text)
	}
}

// TestLoginsAreForwardedOrRefused sends a login to a tracker that takes keys only, and to one that takes logins.
func TestLoginsAreForwardedOrRefused(t *testing.T) {
	logins := [][]string{
		{"X-BUGZILLA-LOGIN", "a@example.com", "X-BUGZILLA-PASSWORD", "p"},
		{"X-BUGZILLA-TOKEN", "1-abc"},
		{"Cookie", "Bugzilla_login=1; Bugzilla_logincookie=abc"},
	}
	refusing, taking := newStrangers(t, "credentials: mapped, logins: refuse", allNew), newStrangers(t, "credentials: mapped", allNew)
	for _, header := range logins {
		for _, path := range []string{"/rest/bug/1/attachment", "/rest/bug/1"} {
			if status, reason, text := refusing.ask(t, "GET", path, "", header...); status != http.StatusUnauthorized || reason != "login-refused" {
				t.Errorf("GET %s with %s: %d %q %s, want 401 login-refused", path, header[0], status, reason, text)
			}
			if _, reason, text := taking.ask(t, "GET", path, "", header...); reason != "" {
				t.Errorf("GET %s with %s: %q %s, want the response of the tracker", path, header[0], reason, text)
			}
		}
	}
}

// TestTheKeyOfTheServiceIsForNamedCallers does not let any text be the service.
func TestTheKeyOfTheServiceIsForNamedCallers(t *testing.T) {
	s := newStrangers(t, "credentials: service, service_key_file: NEW_KEY", allNew)
	if status, reason, text := s.ask(t, "POST", "/rest/bug/1/attachment", newBug, keyHeader, s.oldKey); status >= 300 {
		t.Errorf("the caller with a name gets %d %s %s", status, reason, text)
	}
	if status, reason, _ := s.ask(t, "POST", "/rest/bug/1/attachment", newBug, keyHeader, "made-up"); status != http.StatusUnauthorized || reason != "no-mapped-key" {
		t.Errorf("a made-up key gets %d %q, want 401 no-mapped-key", status, reason)
	}
	if n := len(s.after.Journal()); n != 1 {
		t.Errorf("the new tracker has %d writes, want one", n)
	}
}
