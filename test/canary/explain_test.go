package canary

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// TestExplainKnowsWhatTheRunningPorticoGoesBy: rules that an operator has applied and a dialect that was found out count. Without
// a running Portico, explain says what it does not know.
func TestExplainKnowsWhatTheRunningPorticoGoesBy(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{canary: quick, fresh: tracker.Options{Dialect: tracker.DialectBMO}})
	p.read(t, "/rest/flag_type/TestProduct")
	p.report(t, 1) // the candidate's dialect is known now
	var status struct {
		Version int64 `json:"version"`
	}
	fetch(t, p.Operators+"/switchover/status.json", &status)
	text, err := json.Marshal(map[string]any{
		"version": status.Version, "actor": "ada", "reason": "first product",
		"despite": []string{"verdict", "freshness", "errors", "stability", "one-phase"},
		"table":   map[string]any{"rules": []map[string]any{{"name": "moved-now", "reads": "new", "writes": "old"}}},
	})
	process.Must(t, err)
	must(t, http.MethodPost, p.Operators+"/switchover/rules", string(text))
	explain := func(admin string) string {
		asked := process.Launch(t, process.Spec{Program: process.Portico(t), Fails: true, Args: []string{
			"explain", "--config", p.file, "--admin", admin, "GET", "/rest/flag_type/TestProduct",
		}})
		if code := asked.Wait(t, longest); code != 0 {
			t.Errorf("explain ends with %d: %s", code, &asked.Err)
		}
		return asked.Out.String()
	}
	printed := explain(p.Operators)
	for _, want := range []string{"moved-now", "ada: first product", "dialect      bmo", "/rest/flag_types/TestProduct"} {
		if !strings.Contains(printed, want) {
			t.Errorf("explain does not say %q:\n%s", want, printed)
		}
	}
	printed = explain("http://" + process.FreeAddress(t))
	if strings.Contains(printed, "moved-now") || !strings.Contains(printed, "not known    rules that operators have applied") {
		t.Errorf("explain without a running Portico:\n%s", printed)
	}
}
