package migration

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/switchover"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(durableEnv); dir != "" {
		log.Fatal(serveDurable(dir, os.Getenv(durableAddressEnv)))
	}
	os.Exit(process.Main(m))
}

// scene is Portico before two trackers. What is written to the old one is seen late at the new one.
type scene struct {
	*process.Facade
	before, after *tracker.Server
}

// configuration is what Portico starts with: everything at the old tracker.
const configuration = `trackers:
  before: {url: "%s/", dialect: bugzilla-5}
  after: {url: "%s/", dialect: bugzilla-5}
primary: before
candidate: after
state: "sqlite:%s"
cache: {ttl: 1s, local_ttl: 100ms}
switchover:
  follow: 30s
  rules:
    - {name: rest, reads: old, writes: old}
log: {level: warn}
`

func set(t *testing.T) *scene {
	t.Helper()
	s := &scene{before: tracker.New(tracker.Options{Seed: tracker.SeedFixture, Users: numbered})}
	s.after = tracker.New(tracker.Options{Follows: s.before, Quirks: []tracker.Quirk{tracker.QuirkLag}})
	var bases []any
	for _, server := range []*tracker.Server{s.before, s.after} {
		listener := httptest.NewServer(server)
		t.Cleanup(func() { listener.Close(); _ = server.Close() })
		bases = append(bases, listener.URL)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "portico.yaml")
	text := fmt.Sprintf(configuration, append(bases, filepath.Join(dir, "state.db"))...)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Facade = process.Serve(t, nil, "serve", "--config", file)
	return s
}

// status gives what Portico says of its rules.
func (s *scene) status(t testing.TB) switchover.Status {
	t.Helper()
	response, err := http.Get(s.Operators + "/switchover/status.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var status switchover.Status
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		t.Fatalf("read the status (%d): %v", response.StatusCode, err)
	}
	return status
}

// change puts other rules in place, before the last one, which stays old.
func (s *scene) change(t testing.TB, reason string, rules ...switchover.Rule) {
	t.Helper()
	table := switchover.Table{Rules: append(rules, switchover.Rule{Name: "rest", Reads: switchover.PhaseOld, Writes: switchover.PhaseOld})}
	text, err := json.Marshal(map[string]any{"version": s.status(t).Version, "actor": "a test", "reason": reason, "table": table, "despite": []string{
		"one-phase", "verdict", "freshness", "errors", "stability", "credentials", "trackers", "keys", "callers",
	}})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(s.Operators+"/switchover/rules", "application/json", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var said any
		_ = json.NewDecoder(response.Body).Decode(&said)
		t.Fatalf("%s: the change was refused with %d: %v", reason, response.StatusCode, said)
	}
}

// journals gives the writes of both trackers beyond logins, by the id of the request that a client made.
func (s *scene) journals() map[string][]string {
	found := map[string][]string{}
	for name, server := range map[string]*tracker.Server{"before": s.before, "after": s.after} {
		for _, entry := range server.Journal() {
			if !strings.Contains(strings.ToLower(entry.Operation), "log") {
				found[entry.RequestID] = append(found[entry.RequestID], name)
			}
		}
	}
	return found
}

// numbered are the callers besides the editor of flag types, each with a credential of its own.
const numbered = 100

// settle is how many rounds of clients load a step of the move.
const settle = 400
