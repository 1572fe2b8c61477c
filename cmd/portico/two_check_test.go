package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portico/test/tracker"
)

// TestProbeOfTwoTrackers opens the store and looks for the marker.
func TestProbeOfTwoTrackers(t *testing.T) {
	_, plain := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	_, marked := startTracker(t, tracker.Options{Seed: tracker.SeedDemo, Product: "isolated-here"})
	const isolated = "canary: {isolated: true, marker: isolated-here}\n"
	folder := t.TempDir()
	for name, tt := range map[string]struct {
		old, candidate, state, more string
		code                        int
		want                        string
	}{
		"state":              {plain, marked, "a.db", "", exitOK, "probe      state: will be created\n"},
		"folder for a file":  {plain, marked, ".", "", exitFailed, ":6:8: state: "},
		"no folder":          {plain, marked, "no/b.db", "", exitFailed, "/no is not there"},
		"marker":             {plain, marked, "c.db", isolated, exitOK, "probe      marker: the candidate has it, the primary tracker has not\n"},
		"no marker":          {marked, plain, "d.db", isolated, exitFailed, `marker: FAILED: the candidate has no product "isolated-here"`},
		"marker on both":     {marked, marked, "e.db", isolated, exitFailed, "marker: FAILED: the primary tracker has the product"},
		"nobody to be asked": {"http://127.0.0.1:1/", marked, "f.db", isolated, exitFailed, "marker: FAILED: the primary tracker has the product \"isolated-here\" too, or cannot be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, "c.yaml", pairConfig(tt.old, tt.candidate, filepath.Join(folder, tt.state), tt.more))
			code, stdout, stderr := portico(t, nil, "check", "--probe", "--config", file)
			if _, err := os.Stat(filepath.Join(folder, tt.state)); err == nil && tt.state != "." {
				t.Error("the check makes a store")
			}
			if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
				t.Errorf("exit %d, want %q in\n%s%s", code, tt.want, stdout, stderr)
			}
		})
	}
	file := writeFile(t, "c.yaml", pairConfig(plain, marked, filepath.Join(folder, "unused.db"), ""))
	if code, stdout, stderr := portico(t, nil, "check", "--config", file); code != exitOK || !strings.Contains(stdout, "candidate)") || !strings.Contains(stdout, "rule       default:") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(folder, "unused.db")); err == nil {
		t.Error("a check without a probe makes a store")
	}
}

// TestExplainTellsTheRule shows which rule decides and who answers, and what would
// have to be looked up, without asking anybody.
func TestExplainTellsTheRule(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "c.yaml", withTwo+`
state: sqlite:/does/not/exist/p.db
callers: {robot: {key_env: KEY}}
switchover:
  passthrough: {reads: new, writes: old}
  rules:
    - {name: robots, caller: robot, operation: flag_type.get, reads: new}
    - {name: shop, product: WebShop, reads: new-compare}
    - {name: high, bugs: 500-, reads: new}
    - {name: rest}
`)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"GET", "/rest/flag_type/WebShop"}, []string{
			"rule         shop (reads new-compare, writes old-compare): b answers", "compared     a,", "gets GET http://b.example/rest/flag_type/WebShop",
		}},
		{[]string{"GET", "/rest/flag_type/Else?api_key=SECRET"}, []string{"rule         robots (reads new, writes old-compare): b answers"}},
		{[]string{"GET", "/rest/flag_type/Else"}, []string{"rule         rest (reads old-compare, writes old-compare): a answers"}},
		{[]string{"GET", "/rest/bug/7/attachment"}, []string{"need a lookup, which explain does not send: the product and component of bug 7, asked of", "the tracker  is not asked"}},
		{[]string{"GET", "/rest/bug/attachment/7"}, []string{"the bug of attachment 7, asked of"}},
		{[]string{"GET", "/rest/version"}, []string{"rule         of the passthrough: b answers", "gets GET http://b.example/rest/version"}},
		{[]string{"POST", "/rest/login"}, []string{"rule         of the passthrough: a answers"}},
		{[]string{"POST", "/rest/flag_type", "--data", "{}"}, []string{"the tracker  is not asked", "gets 401 (login-required)"}},
	} {
		code, stdout, stderr := portico(t, []string{"KEY=SECRET"}, append([]string{"explain", "--config", file}, tt.args...)...)
		if code != exitOK || strings.Contains(stdout, "SECRET") {
			t.Errorf("explain %q exits with %d: %s%s", tt.args, code, stdout, stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("explain %q does not say %q:\n%s", tt.args, want, stdout)
			}
		}
	}
}
