package migration

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
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
	bases := listenBoth(t, s.before, s.after)
	dir := t.TempDir()
	file := filepath.Join(dir, "portico.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, configuration, bases[0], bases[1], filepath.Join(dir, "state.db")), 0o600))
	s.Facade = process.Serve(t, nil, "serve", "--config", file)
	return s
}

// status gives what Portico says of its rules.
func (s *scene) status(t testing.TB) (status switchover.Status) {
	t.Helper()
	got := send(t, "GET", s.Operators+"/switchover/status.json", nil)
	must(t, json.Unmarshal(got.text, &status))
	return status
}

// change puts other rules in place, before the last one, which stays old.
func (s *scene) change(t testing.TB, reason string, rules ...switchover.Rule) {
	t.Helper()
	table := switchover.Table{Rules: append(rules, switchover.Rule{Name: "rest", Reads: switchover.PhaseOld, Writes: switchover.PhaseOld})}
	if got, err := changeRules(t, s.Operators, s.status(t).Version, reason, table); err != nil || got.status != http.StatusOK {
		t.Fatalf("%s: the change was refused with %d: %s (%v)", reason, got.status, got.text, err)
	}
}

// changeRules makes a change whatever is not known of the trackers.
func changeRules(t testing.TB, operators string, version int64, reason string, table switchover.Table) (response, error) {
	return request(t.Context(), http.DefaultClient, "POST", operators+"/switchover/rules", map[string]any{
		"version": version, "actor": "a test", "reason": reason, "table": table,
		"despite": []string{"one-phase", "verdict", "freshness", "errors", "stability", "credentials", "trackers", "keys", "callers"},
	})
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
