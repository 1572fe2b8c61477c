package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

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

// commandWord finds commands of the program in pages.
var commandWord = regexp.MustCompile("`portico ([a-z]+(?: [a-z]+)?)")

// TestRunbooksNameCommandsOfTheProgram: an operator in trouble types what the page says.
func TestRunbooksNameCommandsOfTheProgram(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	must(t, err)
	named := map[string]bool{}
	for _, page := range pages {
		for _, match := range commandWord.FindAllStringSubmatch(read(t, page), -1) {
			named[match[1]] = true
		}
	}
	if len(named) < 5 {
		t.Errorf("only %d commands were found", len(named))
	}
	for _, command := range slices.Sorted(maps.Keys(named)) {
		output, err := exec.CommandContext(t.Context(), process.Portico(t), append([]string{"help"}, strings.Fields(command)...)...).CombinedOutput()
		if err != nil {
			t.Errorf("portico %s: %s", command, output)
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
	if output, err := promtool(t, "", "check", "rules", write(t, string(text))); err != nil || len(rules) < 20 {
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
