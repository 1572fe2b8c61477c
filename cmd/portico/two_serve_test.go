package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/demo"
	"portico/test/process"
	"portico/test/tracker"
)

const webShop = "/rest/flag_type/WebShop"

// TestCandidateIsCompared serves from one tracker, compares another with it and
// finds what was planted there.
func TestCandidateIsCompared(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}}, "canary: {confirm_after: 10ms}\n")
	for range 3 {
		get(t, p.clients+"/rest/bug/1/attachment")
		get(t, p.clients+webShop)
	}
	var output string
	process.Eventually(t, "all is compared", func() bool {
		_, output = p.command(t, "canary", "report")
		return strings.Contains(output, "\n  all") && strings.Contains(output, "$.bugs[*][id].creator") && strings.Contains(output, "$.bug[id].is_multiplicable")
	})
	p.commandWants(t, 1, "FAIL", "canary", "verdict")
	if text := get(t, p.operators+"/canary"); !strings.Contains(text, "FAIL") {
		t.Errorf("the page shows no verdict:\n%s", text)
	}
	if text := get(t, p.operators+"/status"); !strings.Contains(text, `"candidate": "new"`) || !strings.Contains(text, `"reads": "old-compare"`) {
		t.Errorf("the status is\n%s", text)
	}
	metrics := get(t, p.operators+"/metrics")
	for _, want := range []string{
		`portico_canary_comparisons_total{operation="attachment.list",outcome="confirmed"}`,
		`portico_switchover_calls_total{operation="attachment.list",rule="default",tracker="main"} 3`,
		`portico_switchover_phase{access="reads",phase="old-compare",rule="default"} 1`,
		`portico_tracker_calls_total{class="shadow",operation="attachment.list",outcome="ok",status_class="2xx",tracker="shadow:new"}`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if n := p.new.Requests()["attachment.create"]; n != 0 {
		t.Errorf("the candidate was written to %d times", n)
	}
}

// TestFailureOfTheCandidateIsSeen: reads for comparison are not tried again, which would hide it.
func TestFailureOfTheCandidateIsSeen(t *testing.T) {
	t.Parallel()
	_, old := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	candidate, _ := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	var failed atomic.Bool
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/attachment") && !failed.Swap(true) {
			http.Error(w, "once", http.StatusServiceUnavailable)
			return
		}
		candidate.ServeHTTP(w, r)
	}))
	defer failing.Close()
	clients, operators := serveConfig(t, writeFile(t, "c.yaml", pairConfig(old, failing.URL, t.TempDir()+"/p.db", "")))
	process.Eventually(t, "the failure is seen", func() bool {
		get(t, "http://"+clients+"/rest/bug/1/attachment")
		return strings.Contains(get(t, "http://"+operators+"/metrics"), `status_class="5xx",tracker="shadow:new"`)
	})
}

// TestPassthroughFollowsTheRules sends paths outside the interface where the rules
// say, reads and writes apart, and takes cached flag types back when a write passes.
func TestPassthroughFollowsTheRules(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{Product: "OnlyNew"}, `
switchover:
  passthrough: {reads: new, writes: new}
  rules: [{name: all, reads: new, writes: new}]
`)
	names := get(t, p.clients+"/rest/product?names=OnlyNew")
	if !strings.Contains(names, "OnlyNew") || len(p.old.Journal()) > 0 {
		t.Errorf("a passing read goes to the old tracker: %s", names)
	}
	before := get(t, p.clients+webShop)
	call := `{"method":"FlagType.create","id":1,"params":[{"name":"passed-by","description":"d","target_type":"bug",` +
		`"inclusions":["WebShop"],"Bugzilla_api_key":"` + demo.Key("editor") + `"}]}`
	_, answer := send(t, http.MethodPost, p.clients+"/jsonrpc.cgi", call, "Content-Type", "application/json")
	after := get(t, p.clients+webShop)
	if strings.Contains(before, "passed-by") || !strings.Contains(after, "passed-by") {
		t.Errorf("what passed by is not seen: %s\n%s", answer, after)
	}
	if len(p.new.Journal()) != 1 || len(p.old.Journal()) != 0 {
		t.Errorf("written were %v at the new tracker and %v at the old one", p.new.Journal(), p.old.Journal())
	}
	p.commandWants(t, exitOK, "KILLED", "migrate", "kill", "--actor", "tester", "--reason", "a test")
	_, _ = send(t, http.MethodPost, p.clients+"/jsonrpc.cgi", call, "Content-Type", "application/json")
	if len(p.new.Journal()) != 1 || len(p.old.Journal()) != 1 {
		t.Errorf("after the kill switch %v are written at the new tracker and %v at the old one", p.new.Journal(), p.old.Journal())
	}
}

// TestCreatesAreRememberedAcrossStarts carries a create with an Idempotency-Key out
// once, though Portico is started anew in between.
func TestCreatesAreRememberedAcrossStarts(t *testing.T) {
	t.Parallel()
	made, at := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	_, other := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	file := writeFile(t, "c.yaml", pairConfig(at, other, t.TempDir()+"/p.db", ""))
	const body = `{"name":"once","description":"d","target_type":"bug","inclusions":["WebShop"]}`
	var answers []string
	for i := range 2 {
		t.Run("", func(t *testing.T) {
			clients, _ := serveConfig(t, file)
			response, text := send(t, http.MethodPost, "http://"+clients+"/rest/flag_type", body, append(key("editor"), "Idempotency-Key", "k1")...)
			if response.StatusCode != http.StatusCreated || (response.Header.Get("Idempotent-Replayed") == "true") != (i == 1) {
				t.Errorf("start %d: %s %s", i, response.Status, text)
			}
			answers = append(answers, text)
		})
	}
	if len(made.Journal()) != 1 || answers[0] != answers[1] {
		t.Errorf("the tracker carried out %v; the answers are %q", made.Journal(), answers)
	}
}

// TestEveryReadCountsOnce reads over one connection, where a read that has no
// answer at hand is tried twice: neither rules nor comparison see it twice.
func TestEveryReadCountsOnce(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{}, "cache: {ttl: 1s, local_ttl: 0s}\n")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, path := range []string{webShop, webShop, webShop + "/Accounts", webShop, webShop} {
		response, err := client.Get(p.clients + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Error(err)
		}
		_ = response.Body.Close()
	}
	const all = `portico_canary_comparisons_total{operation="flag_type.get",outcome="same"} 5`
	var metrics string
	process.Eventually(t, "all are compared", func() bool {
		metrics = get(t, p.operators+"/metrics")
		return strings.Contains(metrics, all)
	})
	if !strings.Contains(metrics, `portico_switchover_calls_total{operation="flag_type.get",rule="default",tracker="main"} 5`) ||
		strings.Contains(metrics, "portico_canary_dropped_total{") {
		t.Errorf("five reads are counted otherwise:\n%s", metrics[strings.Index(metrics, "portico_canary"):])
	}
}

// TestSickCandidateIsLeftAlone while its breaker is open: no client waits for it to recover, so it gets no probes either. Clients get
// their responses, and what is not compared is counted.
func TestSickCandidateIsLeftAlone(t *testing.T) {
	t.Parallel()
	_, old := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	var probes atomic.Int64
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rest/version" {
			probes.Add(1)
		}
		http.Error(w, "sick", http.StatusInternalServerError)
	}))
	defer sick.Close()
	config := strings.Replace(pairConfig(old, sick.URL, t.TempDir()+"/p.db", ""), sick.URL+`"`, sick.URL+`", dialect: bugzilla-5`, 1)
	clients, operators := serveConfig(t, writeFile(t, "c.yaml", config))
	process.Eventually(t, "the candidate's breaker opens", func() bool {
		get(t, "http://"+clients+"/rest/bug/1/attachment")
		return strings.Contains(get(t, "http://"+operators+"/canary"), "other-breaker-open") // reading metrics would bring probes
	})
	time.Sleep(350 * time.Millisecond) // that of a tracker which clients wait for gets three in this time
	if n := probes.Load(); n > 0 {
		t.Errorf("it was probed %d times", n)
	}
	if metrics := get(t, "http://"+operators+"/metrics"); !strings.Contains(metrics, `portico_canary_dropped_total{operation="attachment.list",reason="other-`) {
		t.Errorf("the drops are not counted:\n%s", metrics)
	}
}
