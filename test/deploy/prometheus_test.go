package deploy

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"portico/proxy/admin"
	"portico/test/process"
)

const (
	rulesFile  = "../../deploy/prometheus/rules.yaml"
	runbooks   = "../../docs/runbooks"
	promtoolIs = "these tests need promtool in the PATH, which Debian's package prometheus has: "
)

// promtool runs Prometheus' own checks.
func promtool(t *testing.T, stdin string, args ...string) (output string, err error) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal(promtoolIs, err)
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Stdin = strings.NewReader(stdin)
	text, err := command.CombinedOutput()
	return string(text), err
}

// alert is a rule of deploy/prometheus/rules.yaml.
type alert struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	must(t, yaml.Unmarshal([]byte(read(t, rulesFile)), &file))
	var all []alert
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// TestAlerts runs the unit tests of the alerts. Each alert has one.
func TestAlerts(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", "../../deploy/prometheus/rules_test.yaml"}} {
		if output, err := promtool(t, "", args...); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, output)
		}
	}
	cases := read(t, "../../deploy/prometheus/rules_test.yaml")
	for _, a := range alerts(t) {
		if !strings.Contains(cases, "\n  - name: "+a.Alert+"\n") {
			t.Errorf("%s has no case in rules_test.yaml", a.Alert)
		}
	}
}

// TestRunbooks: each alert has a page with what an operator needs, and each page has an alert.
func TestRunbooks(t *testing.T) {
	linked := map[string]bool{}
	for _, a := range alerts(t) {
		page := a.Annotations["runbook_url"]
		linked[filepath.Base(page)] = true
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Errorf("%s: %v", a.Alert, err)
			continue
		}
		for _, part := range []string{"`" + a.Alert + "`", "\n## Meaning\n", "\n## Effect on clients\n", "\n## Check\n", "\n## Remedy\n"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s says nothing of %q", page, strings.TrimSpace(part))
			}
		}
		if severity := a.Labels["severity"]; severity != "warning" && severity != "critical" {
			t.Errorf("%s has the severity %q", a.Alert, severity)
		}
	}
	pages, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	must(t, err)
	index := read(t, filepath.Join(runbooks, "README.md"))
	for _, page := range pages {
		name := filepath.Base(page)
		if name != "README.md" && (!linked[name] || !strings.Contains(index, "]("+name+")")) {
			t.Errorf("%s is linked by no alert or not by the index", name)
		}
	}
}

// series finds names of metrics in an expression.
var series = regexp.MustCompile(`\b(portico_\w+)`)

// TestQueriesUseMetricsThatExist: alerts and the dashboard are silent about a metric that is misspelt, so none may be.
func TestQueriesUseMetricsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(portico_\\w+)` \\| (\\w+)").FindAllStringSubmatch(read(t, "../../docs/reference/metrics.md"), -1) {
		known[row[1]] = true
		if row[2] == "histogram" {
			known[row[1]+"_bucket"], known[row[1]+"_count"], known[row[1]+"_sum"] = true, true, true
		}
	}
	checked := 0
	check := func(where, expr string) {
		for _, match := range series.FindAllStringSubmatch(expr, -1) {
			checked++
			if !known[match[1]] {
				t.Errorf("%s: docs/reference/metrics.md has no metric %s", where, match[1])
			}
		}
	}
	conditions := read(t, "../../proxy/admin/alarm.go")
	for _, a := range alerts(t) {
		check(a.Alert, a.Expr)
		for _, match := range regexp.MustCompile(`code="([^"]+)"`).FindAllStringSubmatch(a.Expr, -1) {
			if !strings.Contains(conditions, "\t\""+match[1]+"\":") {
				t.Errorf("%s: there is no condition %q", a.Alert, match[1])
			}
		}
	}
	for title, expr := range dashboard(t) {
		check(title, expr)
	}
	if checked < 30 {
		t.Errorf("only %d names were found", checked)
	}
}

// dashboard returns the expressions of deploy/grafana/portico.json by panel and letter.
func dashboard(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	must(t, json.Unmarshal([]byte(read(t, "../../deploy/grafana/portico.json")), &file))
	all := map[string]string{}
	for _, panel := range file.Panels {
		for _, target := range panel.Targets {
			all[panel.Title+" "+target.RefID] = target.Expr
		}
	}
	for _, variable := range file.Templating.List {
		if variable.Type == "query" {
			all[variable.Name] = strings.TrimSuffix(strings.TrimPrefix(variable.Query, "label_values("), ", instance)")
		}
	}
	return all
}

// TestDashboardQueriesAreValid has promtool parse each expression, with Grafana's variables replaced.
func TestDashboardQueriesAreValid(t *testing.T) {
	rules := []map[string]string{}
	for _, expr := range dashboard(t) {
		expr = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(expr)
		rules = append(rules, map[string]string{"record": "panel:" + strconv.Itoa(len(rules)), "expr": expr})
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	must(t, err)
	if output, err := promtool(t, "", "check", "rules", process.File(t, "rules.yaml", string(text))); err != nil || len(rules) < 20 {
		t.Errorf("%d expressions: %v\n%s", len(rules), err, output)
	}
}

// TestMetricsAreWellFormed has promtool check what a running Portico shows.
func TestMetricsAreWellFormed(t *testing.T) {
	_, base := process.Tracker(t, process.FreeAddress(t))
	facade := process.Serve(t, nil, "serve", "--tracker", base)
	get(t, facade.Clients+"/rest/version")
	metrics := get(t, facade.Operators+"/metrics")
	if !strings.Contains(metrics, "\nportico_requests_total{") {
		t.Errorf("no request is counted:\n%s", metrics)
	}
	if output, err := promtool(t, metrics, "check", "metrics"); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, output)
	}
}

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
	if output, err := promtool(o.t, "", "test", "rules", process.File(o.t, "tests.yaml", string(file))); err != nil {
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
	for range 4 { // one more would be a reason of the alarm
		o.read("/rest/bug/1/attachment")
	}
	failed := o.until(`portico_requests_total{operation="attachment.list",reason="breaker-open",status_class="5xx"} 4`)
	o.fires(true, []string{failed}, "PorticoTrackerDown", "PorticoHighErrorRate")
	o.main.Start(t)
	o.until(condition("breaker-read", "main", 0), condition("breaker-write", "main", 0))
	if closed := regexp.MustCompile(`.*"to":"closed".*`).FindString(o.Err.String()); !strings.Contains(closed, `"level":"INFO","msg":"breaker changed"`) || strings.Contains(closed, "refused") {
		t.Errorf("a tracker that is back is said to fail: %s", closed)
	}

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
	if line := regexp.MustCompile(`"redis unreachable;.*`).FindString(o.Err.String()); !regexp.MustCompile(`"tracker":"(main|next)"`).MatchString(line) {
		t.Errorf("each tracker has a cache of its own, and the log does not say which bypasses Redis: %s", line)
	}
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
