package main

import (
	"database/sql" //nolint:depguard // only to be in the way of the store, as another process may be
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portico/test/demo"
	"portico/test/process"
	"portico/test/tracker"
)

// pair is two reference trackers with Portico before them, all in this process.
type pair struct {
	old, new           *tracker.Server
	clients, operators string
	// file is the configuration, state where its store is.
	file, state string
}

// startTracker serves a reference tracker until the test ends.
func startTracker(t *testing.T, options tracker.Options) (*tracker.Server, string) {
	t.Helper()
	made := process.Reference(t, options)
	return made, process.Listen(t, made).String() + "/"
}

// pairConfig is the least that a configuration of two trackers says.
func pairConfig(old, candidate, state, more string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntrackers: {main: {url: %q}, new: {url: %q}}\n"+
		"primary: main\ncandidate: new\nstate: sqlite:%s\ntimeouts: {drain: 5s}\n%s", old, candidate, state, more)
}

// startPair serves two trackers by a configuration.
func startPair(t *testing.T, candidate tracker.Options, more string, environ ...string) *pair {
	t.Helper()
	p := &pair{state: filepath.Join(t.TempDir(), "portico.db")}
	var oldURL, newURL string
	p.old, oldURL = startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	candidate.Seed = tracker.SeedDemo
	p.new, newURL = startTracker(t, candidate)
	p.file = writeFile(t, "c.yaml", pairConfig(oldURL, newURL, p.state, more))
	p.clients, p.operators = serveConfig(t, p.file, environ...)
	p.clients, p.operators = "http://"+p.clients, "http://"+p.operators
	return p
}

// command runs a command that asks the admin listener.
func (p *pair) command(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	code, stdout, stderr := portico(t, nil, append(args, "--admin", p.operators)...)
	return code, stdout + stderr
}

// commandWants runs a command that asks the admin listener, and looks at its exit code and output.
func (p *pair) commandWants(t *testing.T, want int, text string, args ...string) {
	t.Helper()
	wants(t, nil, want, text, append(args, "--admin", p.operators)...)
}

// sendBy makes a request with headers; the answer's body is the caller's.
func sendBy(t *testing.T, client *http.Client, method, address, body string, header ...string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	must(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return client.Do(request)
}

// send makes a request with headers and gives the answer, its body read.
func send(t *testing.T, method, address, body string, header ...string) (*http.Response, string) {
	t.Helper()
	response, err := sendBy(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, method, address, body, header...)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response, string(text)
}

// key is the header that shows the key of a user of the demo.
func key(user string) []string { return []string{"X-BUGZILLA-API-KEY", demo.Key(user)} }

// TestAWriteCountsForTheOtherCache has a candidate that is a copy of the primary: what
// is written to the one is read at the other, by everybody and after a way there and
// back.
func TestAWriteCountsForTheOtherCache(t *testing.T) {
	t.Parallel()
	_, address := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	file := writeFile(t, "c.yaml", pairConfig(address, address, t.TempDir()+"/p.db",
		"switchover: {follow: 0s, rules: [{name: rest, reads: new, writes: new}]}\ncache: {local_ttl: 1m}\n"))
	clients, operators := serveConfig(t, file)
	p := &pair{clients: "http://" + clients, operators: "http://" + operators}
	write := func(text string) {
		t.Helper()
		response, said := send(t, http.MethodPut, p.clients+"/rest/flag_type/1", `{"description":"`+text+`"}`, key("admin")...)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", response.Status, said)
		}
	}
	read := func(want string) {
		t.Helper()
		for _, user := range []string{"admin", "dev"} {
			if _, said := send(t, http.MethodGet, p.clients+webShop, "", key(user)...); !strings.Contains(said, want) {
				t.Errorf("%s does not see %q: %s", user, want, said)
			}
		}
	}
	read("")
	p.commandWants(t, exitOK, "KILLED", signed("migrate", "kill")...)
	read("")
	p.commandWants(t, exitOK, "version", signed("migrate", "revive", "--despite", "verdict", "--despite", "freshness", "--despite", "errors", "--despite", "stability", "--despite", "one-phase")...)
	write("the first text")
	read("the first text")
	p.commandWants(t, exitOK, "KILLED", signed("migrate", "kill")...)
	read("the first text")
	write("the second text")
	p.commandWants(t, exitOK, "version", signed("migrate", "revive")...)
	read("the second text")
}

// TestProbeOfTwoTrackers opens the store, and writes into the spool of the journal.
func TestProbeOfTwoTrackers(t *testing.T) {
	_, plain := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	_, other := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	folder, secret := t.TempDir(), writeFile(t, "key", strings.Repeat("k", 16))
	spool := func(dir string) string {
		return "switchover: {journal: {key_file: '" + secret + "', spool: '" + dir + "'}}\n"
	}
	for name, tt := range map[string]struct {
		state, more string
		code        int
		want        string
	}{
		"state":             {"a.db", "", exitOK, "probe       state: will be created\n"},
		"folder for a file": {".", "", exitFailed, ":6:8: state: "},
		"no folder":         {"no/b.db", "", exitFailed, "/no is not there"},
		"spool":             {"g.db", spool(folder), exitOK, "probe       journal: can be stored\n"},
		"spool of serve":    {"h.db", spool(folder + "/spool"), exitOK, "probe       journal: will be created\n"},
		"read-only":         {"j.db", spool("/sys/no/spool"), exitFailed, "; check switchover.journal.spool\n"},
		"no spool":          {"i.db", spool(secret + "/spool"), exitFailed, "not a directory; check switchover.journal.spool\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, "c.yaml", pairConfig(plain, other, filepath.Join(folder, tt.state), tt.more))
			code, stdout, stderr := portico(t, nil, "check", "--probe", "--config", file)
			if _, err := os.Stat(filepath.Join(folder, tt.state)); err == nil && tt.state != "." {
				t.Error("the check makes a store")
			}
			if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
				t.Errorf("exit %d, want %q in\n%s%s", code, tt.want, stdout, stderr)
			}
		})
	}
	file := writeFile(t, "c.yaml", pairConfig(plain, other, filepath.Join(folder, "unused.db"), ""))
	if code, stdout, stderr := portico(t, nil, "check", "--config", file); code != exitOK || !strings.Contains(stdout, "candidate)") || !strings.Contains(stdout, "rule        default:") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(folder, "unused.db")); err == nil {
		t.Error("a check without a probe makes a store")
	}
	file = writeFile(t, "c.yaml", "trackers: {main: {url: '"+plain+"'}}\nstate: 'sqlite:"+filepath.Join(folder, "last.db")+"'\nswitchover: {ids: {bug: {mode: table}}}\n")
	wants(t, nil, exitOK, "probe       state: will be created\n", "check", "--probe", "--config", file)
	t.Setenv("TMPDIR", filepath.Join(folder, "none"))
	wants(t, nil, exitFailed, "no such file or directory; check blobs.dir\n", "check", "--probe", "--config", file)
}

// TestAKillThatTheStoreDoesNotKnow throws the kill switch while another process
// holds the store's lock.
func TestAKillThatTheStoreDoesNotKnow(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{}, "switchover: {rules: [{name: rest, reads: new}]}\n")
	other, err := sql.Open("sqlite", p.state)
	must(t, err)
	defer other.Close()
	holder, err := other.Conn(t.Context())
	must(t, err)
	lock := func(statement string) {
		if _, err := holder.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	lock("BEGIN IMMEDIATE")
	p.commandWants(t, exitFailed, "The kill switch is thrown: everything goes to the old tracker, but only in this process",
		signed("migrate", "kill")...)
	p.commandWants(t, exitOK, "Only this process knows of the kill yet", "migrate", "status")
	if text := get(t, p.operators+"/switchover"); !strings.Contains(text, "Only this process knows yet") {
		t.Errorf("the page does not say that only this process knows:\n%s", text)
	}
	if text := get(t, p.operators+"/status"); !strings.Contains(text, `"undelivered": "`) {
		t.Errorf("/status does not say that only this process knows:\n%s", text)
	}
	if get(t, p.clients+"/rest/bug/1/attachment"); p.new.Requests()["attachment.list"] > 0 {
		t.Error("after the kill switch the read went to the new tracker")
	}
	lock("ROLLBACK")
	process.Eventually(t, "the store knows", func() bool {
		_, output := p.command(t, "migrate", "status")
		return strings.Contains(output, "KILLED by tester") && !strings.Contains(output, "Only this process")
	})
}

// TestReloadMovesCallers moves reads to the other tracker and back by SIGHUP, under
// load: no request fails, and rules with a mistake change nothing.
func TestReloadMovesCallers(t *testing.T) {
	t.Parallel()
	_, oldURL := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	candidate, newURL := startTracker(t, tracker.Options{Seed: tracker.SeedDemo, Product: "OnlyNew"})
	dir := t.TempDir()
	file := filepath.Join(dir, "portico.yaml")
	configure := func(state, rules string) {
		t.Helper()
		text := pairConfig(oldURL, newURL, filepath.Join(dir, state), "switchover: {rules: ["+rules+"]}\n")
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	configure("one.db", "{name: rest, reads: old}")
	program, at := startServe(t, file)
	clients, p := "http://"+at[0], &pair{operators: "http://" + at[1]}
	answers := func() bool {
		t.Helper()
		response, _ := send(t, http.MethodGet, clients+"/rest/flag_type/OnlyNew", "")
		return response.StatusCode == http.StatusOK
	}
	if answers() {
		t.Fatal("the old tracker has the product of the new one")
	}
	stop := keepAsking(t, clients)
	configure("one.db", "{name: rest, reads: new}")
	program.Signal(t, syscall.SIGHUP)
	process.Eventually(t, "the new tracker answers", answers)
	configure("one.db", "{name: rest, reads: old, writes: new}")
	program.Signal(t, syscall.SIGHUP)
	for range 20 {
		if !answers() {
			t.Fatal("rules with a mistake took effect")
		}
	}
	configure("two.db", "{name: rest, reads: old}") // another store needs a restart; the rules take effect at once
	program.Signal(t, syscall.SIGHUP)
	process.Eventually(t, "the old tracker answers again", func() bool { return !answers() })
	p.commandWants(t, exitOK, "version 3, from the configuration", "migrate", "status")
	stop()
	if candidate.Requests()["attachment.list"] == 0 {
		t.Error("the new tracker was never asked")
	}
}

// keepAsking reads attachments until it is stopped; every read must succeed.
func keepAsking(t *testing.T, clients string) (stop func()) {
	t.Helper()
	var load sync.WaitGroup
	ended := make(chan struct{})
	for i := range 4 {
		load.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					if text := get(t, clients+fmt.Sprintf("/rest/bug/%d/attachment", i%2+1)); !strings.Contains(text, `"bugs"`) {
						t.Errorf("a read gives %s", text)
					}
				}
			}
		})
	}
	return func() {
		close(ended)
		load.Wait()
	}
}

const webShop = "/rest/flag_type/WebShop"

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

// TestEveryReadCountsOnce reads over one connection, where a read without
// a cached response is tried twice: rules and comparison count it once.
func TestEveryReadCountsOnce(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{}, "cache: {ttl: 1s, local_ttl: 0s}\n")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, path := range []string{webShop, webShop, webShop + "/Accounts", webShop, webShop} {
		response, err := client.Get(p.clients + path)
		must(t, err)
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
	for _, want := range []string{
		`portico_switchover_calls_total{operation="flag_type.get",rule="default",tracker="main"} 5`,
		`portico_switchover_phase{access="reads",phase="old-compare",rule="default"} 1`,
		`portico_tracker_calls_total{class="shadow",operation="flag_type.get",outcome="ok",status_class="2xx",tracker="shadow:new"} 5`,
	} {
		if !strings.Contains(metrics, want) || strings.Contains(metrics, "portico_canary_dropped_total{") {
			t.Errorf("five reads are counted otherwise, without %s:\n%s", want, metrics)
		}
	}
}

// TestSickCandidateIsLeftAlone while its breaker is open: no client waits for it to recover, so it gets no probes either. Clients get
// their responses, and what is not compared is counted.
func TestSickCandidateIsLeftAlone(t *testing.T) {
	t.Parallel()
	_, old := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	var calls, probes atomic.Int64
	sick := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1); r.URL.Path == "/rest/version" {
			probes.Add(1)
		}
		http.Error(w, "sick", http.StatusInternalServerError)
	})
	config := strings.Replace(pairConfig(old, sick, t.TempDir()+"/p.db", ""), sick+`"`, sick+`", dialect: bugzilla-5`, 1)
	clients, operators := serveConfig(t, writeFile(t, "c.yaml", config))
	seen, alone := int64(0), 0
	process.Eventually(t, "the candidate gets no more calls", func() bool { // its breaker has opened; asking an operator's page would bring probes
		get(t, "http://"+clients+"/rest/bug/1/attachment")
		before := seen
		if seen = calls.Load(); seen == 0 || seen > before {
			alone = 0
		}
		alone++
		return alone > 20
	})
	time.Sleep(350 * time.Millisecond) // that of a tracker which clients wait for gets three in this time
	if n := probes.Load(); n > 0 {
		t.Errorf("it was probed %d times", n)
	}
	process.Eventually(t, "the drops are counted", func() bool {
		get(t, "http://"+clients+"/rest/bug/1/attachment")
		return strings.Contains(get(t, "http://"+operators+"/metrics"), `portico_canary_dropped_total{operation="attachment.list",reason="other-`)
	})
}
