package deploy

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/proxy/admin"
	"portico/test/process"
)

// outages is the program with all that may fail beside it.
type outages struct {
	t *testing.T
	*process.Facade
	main, next, redis            *process.Process
	mainURL, nextURL, state, dir string
	killState                    func()
	before                       string // the metrics while nothing fails
	cases                        []any  // what promtool is asked
}

func startOutages(t *testing.T) *outages {
	t.Helper()
	o := &outages{t: t, dir: t.TempDir()}
	redis := process.FreeAddress(t)
	o.main, o.mainURL = process.Tracker(t, process.FreeAddress(t), "--seed", "fixture")
	o.next, o.nextURL = process.Tracker(t, process.FreeAddress(t), "--seed", "fixture")
	o.redis = process.Redis(t, redis)
	o.state, o.killState = process.PostgresToKill(t)
	o.configure("cache: {redis: {url: \"redis://" + redis + "\"}}")
	o.Facade = process.Serve(t, []string{"TIMEOUTS_REDIS=5s"}, "serve", "--config", o.file())
	o.read("/rest/flag_type/TestProduct") // the first dialect is known
	o.before = o.until(`portico_breaker_state{breaker="read",state="closed",tracker="main"} 1`, `portico_redis_up 1`)
	return o
}

func (o *outages) file() string { return filepath.Join(o.dir, "portico.yaml") }

func (o *outages) configure(more string) {
	o.t.Helper()
	text := fmt.Sprintf("trackers: {main: {url: %q}, next: {url: %q}}\nprimary: main\ncandidate: next\nstate: %q\ncanary: {confirm_after: 10ms}\n%s\n",
		o.mainURL, o.nextURL, o.state, more)
	if err := os.WriteFile(o.file(), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// until scrapes the metrics until they have these lines.
func (o *outages) until(lines ...string) (metrics string) {
	o.t.Helper()
	process.Eventually(o.t, strings.Join(lines, " and "), func() bool {
		metrics = get(o.t, o.Operators+"/metrics")
		return !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(metrics, "\n"+line) })
	})
	return metrics
}

// send sends a request, whose response may be anything.
func (o *outages) send(method, url, body string) {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	request.Header.Set("X-Bugzilla-API-Key", "AdminKey00000000000000000000000000000000")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		o.t.Fatal(err)
	}
	_ = response.Body.Close()
}

func (o *outages) read(path string) { o.send(http.MethodGet, o.Clients+path, "") }

// condition is the line of a reason of the alarm.
func condition(code, subject string, holds int) string {
	return fmt.Sprintf("portico_condition{code=%q,subject=%q} %d", code, subject, holds)
}

// alarms waits until the worst reason of the alarm, which no client has to bring about, is this one, and wants the page to say the same.
func (o *outages) alarms(level admin.Level, code, subject, cause string) {
	o.t.Helper()
	var status struct{ Alarm admin.Alarm }
	process.Eventually(o.t, "the alarm says "+code, func() bool {
		status.Alarm = admin.Alarm{}
		if err := json.Unmarshal([]byte(get(o.t, o.Operators+"/status")), &status); err != nil {
			o.t.Fatal(err)
		}
		reasons := status.Alarm.Reasons
		return len(reasons) > 0 && reasons[0].Code == code && strings.Contains(reasons[0].Cause, cause)
	})
	reason := status.Alarm.Reasons[0]
	if status.Alarm.Level != level || reason.Level != level || reason.Subject != subject || reason.Since.After(time.Now()) || !status.Alarm.Since.Equal(reason.Since) {
		o.t.Errorf("%+v", status.Alarm)
	}
	page := html.UnescapeString(get(o.t, o.Operators+"/"))
	if !strings.Contains(page, `<div class="alarm `+string(level)+`"`) || !strings.Contains(page, reason.Problem) || !strings.Contains(page, reason.Meaning) {
		o.t.Errorf("the page does not say %+v", reason)
	}
}

// fires wants these alerts to fire, and no others, when the metrics stay as they are. Of several scrapes every one counts in turn.
// Counters that grow do so with each scrape. check asks promtool.
func (o *outages) fires(grow bool, scrapes []string, names ...string) {
	o.t.Helper()
	expected := []any{}
	for _, name := range names {
		expected = append(expected, map[string]any{"labels": `{alertname="` + name + `"}`, "value": 1})
	}
	o.cases = append(o.cases, map[string]any{
		"name": fmt.Sprint(len(o.cases), " ", names), "interval": "1m", "input_series": inputs(o.t, o.before, scrapes, grow), "promql_expr_test": []any{map[string]any{
			"expr": `group by (alertname) (max_over_time(ALERTS{alertstate="firing"}[3h]))`, "eval_time": "100m", "exp_samples": expected,
		}},
	})
}

// check has promtool evaluate the alerts for everything that was wanted.
func (o *outages) check() {
	o.t.Helper()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		o.t.Fatal(err)
	}
	file, err := json.Marshal(map[string]any{"rule_files": []string{rules}, "evaluation_interval": "30s", "tests": o.cases})
	if err != nil {
		o.t.Fatal(err)
	}
	if output, err := promtool(o.t, "", "test", "rules", write(o.t, string(file))); err != nil {
		o.t.Errorf("%v\n%s", err, output)
	}
}

// sample is one line of metrics.
var sample = regexp.MustCompile(`(?m)^(portico_\w+?)(?:\{(.*)\})? (\S+)$`)

// inputs are the series of the alerts for promtool: two scrapes without an outage, and those of one.
func inputs(t *testing.T, before string, scrapes []string, grow bool) []any {
	t.Helper()
	used := ""
	for _, a := range alerts(t) {
		used += a.Expr + "\n"
	}
	const minutes = 100
	values := map[string][]string{}
	for i, scrape := range append([]string{before, before}, scrapes...) {
		for _, line := range sample.FindAllStringSubmatch(scrape, -1) {
			if name := line[1]; regexp.MustCompile(`\b` + name + `\b`).MatchString(used) {
				key := name + "{" + strings.TrimPrefix(line[2]+`,instance="a",job="portico"`, ",") + "}"
				if values[key] == nil {
					values[key] = slices.Repeat([]string{"_"}, 2+len(scrapes))
				}
				values[key][i] = line[3]
			}
		}
	}
	series := []any{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all, text := values[key], ""
		last := all[len(all)-1]
		begun, _ := strconv.ParseFloat(strings.Trim(all[1], "_"), 64)
		ended, _ := strconv.ParseFloat(strings.Trim(last, "_"), 64)
		if name, _, _ := strings.Cut(key, "{"); grow && (strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_bucket")) {
			text = fmt.Sprintf("%s %s %v+%vx%d", all[0], all[1], ended, ended-begun, minutes)
		} else {
			text = all[0] + " " + all[1] + strings.Repeat(" "+strings.Join(all[2:], " "), minutes/len(scrapes))
		}
		series = append(series, map[string]any{"series": key, "values": text})
	}
	return append(series, map[string]any{"series": `up{instance="a",job="portico"}`, "values": fmt.Sprintf("1x%d", minutes)})
}

// TestAlertsOfRealOutages: with the metrics of a Portico that goes through an outage, the alert for it fires, and no other one does.
func TestAlertsOfRealOutages(t *testing.T) {
	t.Parallel()
	o := startOutages(t)
	o.fires(false, []string{o.before})

	o.main.Kill(t)
	half := `portico_breaker_state{breaker="read",state="half-open",tracker="main"} 1` // the state of most of the time
	o.fires(false, []string{o.until(condition("breaker-read", "main", 1), half)}, "PorticoTrackerDown")
	o.alarms(admin.Red, "breaker-read", "main", strings.TrimPrefix(o.mainURL, "http://")+": connection refused")
	for range 20 {
		o.read("/rest/bug/1/attachment")
	}
	failed := o.until(`portico_requests_total{operation="attachment.list",reason="breaker-open",status_class="5xx"} 20`)
	o.fires(true, []string{failed}, "PorticoTrackerDown", "PorticoHighErrorRate")
	o.main.Start(t)
	o.until(condition("breaker-read", "main", 0), condition("breaker-write", "main", 0))

	o.next.Kill(t)
	o.fires(false, []string{o.until(condition("candidate", "next", 1), condition("breaker-read", "next", 0))}, "PorticoCandidateAway")
	o.alarms(admin.Amber, "candidate", "next", "")
	o.next.Start(t)
	o.until(condition("candidate", "next", 0))

	o.send(http.MethodPost, o.mainURL+"/_tracker/faults", "op=attachment.create,kind=close-after-commit")
	o.send(http.MethodPost, o.Clients+"/rest/bug/1/attachment", `{"ids":[1],"data":"YQ==","file_name":"a","summary":"a","content_type":"text/plain"}`)
	o.fires(false, []string{get(t, o.Operators+"/metrics")}, "PorticoUnknownOutcomes")
	o.send(http.MethodPost, o.mainURL+"/_tracker/faults", "")
	o.before = get(t, o.Operators+"/metrics")

	o.send(http.MethodPost, o.nextURL+"/_tracker/quirks", "missing-field")
	o.read("/rest/flag_type/TestProduct")
	o.fires(false, []string{o.until(`portico_canary_comparisons_total{operation="flag_type.get",outcome="confirmed"} 1`)}, "PorticoCandidateMismatch")
	o.before = get(t, o.Operators+"/metrics")

	o.redis.Kill(t)
	away := o.until("portico_redis_up 0")
	o.fires(false, []string{away}, "PorticoRedisAway")
	o.alarms(admin.Amber, "redis", "", "")
	o.send(http.MethodPut, o.Clients+"/rest/flag_type/1", `{"description":"changed"}`)
	o.fires(false, []string{o.until(`portico_cache_changes_total{delivered="no"} `)}, "PorticoRedisAway", "PorticoCacheChangesUndelivered")
	o.redis.Start(t)
	o.until("portico_redis_up 1")
	o.before = get(t, o.Operators+"/metrics")

	migrate(t, o.Facade, "kill", "--actor", "ada", "--reason", "a test")
	o.fires(false, []string{o.until("portico_switchover_killed 1")}, "PorticoKillSwitch")
	migrate(t, o.Facade, "revive", "--actor", "ada", "--reason", "a test")

	o.configure("cache: 5")
	o.Signal(t, syscall.SIGHUP)
	o.fires(false, []string{o.until("portico_reload_success 0")}, "PorticoReloadFailed")
	o.alarms(admin.Amber, "reload", "", "")

	o.killState()
	o.fires(false, []string{o.until(condition("state", "", 1))}, "PorticoReloadFailed", "PorticoStateAway")
	o.alarms(admin.Red, "state", "", "")
	o.check()
}

// TestAlertsOfWrongSettings: what is wrong from the start fires as well.
func TestAlertsOfWrongSettings(t *testing.T) {
	t.Parallel()
	_, base := process.Tracker(t, process.FreeAddress(t))
	certificate, key := process.KeyPair(t)
	o := &outages{t: t, Facade: process.Serve(t, []string{"TLS_CERT_FILE=" + certificate, "TLS_KEY_FILE=" + key}, "serve", "--tracker", base+"/bugzila/")}
	o.before = o.until(condition("certificate", "the listener of clients", 1), condition("tracker", "", 1))
	o.fires(false, []string{o.before}, "PorticoCertificateEnds", "PorticoTrackerMisconfigured")
	o.check()
	if log := o.Err.String(); !strings.Contains(log, `"level":"WARN","msg":"no tracker responds at this address`) {
		t.Errorf("the log says nothing of the wrong address: %s", log)
	}
	response, err := http.Get(o.Operators + "/readyz")
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if problem := "no tracker responds at " + base + "/bugzila/: GET /rest/version has status 404 and no JSON; check trackers.main.url"; err != nil ||
		response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), problem) {
		t.Errorf("/readyz: %d %s, %v", response.StatusCode, text, err)
	}
}
