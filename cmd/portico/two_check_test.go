package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
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
		"state":              {plain, marked, "a.db", "", exitOK, "probe      state: opens, and is empty\n"},
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
		var stdout, stderr bytes.Buffer
		env := environment{stdout: &stdout, stderr: &stderr, environ: []string{"KEY=SECRET"}}
		if code := run(t.Context(), env, append([]string{"explain", "--config", file}, tt.args...)); code != exitOK {
			t.Errorf("explain %q exits with %d: %s", tt.args, code, &stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("explain %q does not say %q:\n%s", tt.args, want, &stdout)
			}
		}
		if strings.Contains(stdout.String(), "SECRET") {
			t.Errorf("explain %q shows a credential:\n%s", tt.args, &stdout)
		}
	}
}

// TestHouseOfTwoLeavesNothingBehind builds and closes all components, and looks for what
// still runs.
func TestHouseOfTwoLeavesNothingBehind(t *testing.T) {
	_, oldURL := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	_, newURL := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	file := writeFile(t, "c.yaml", pairConfig(oldURL, newURL, filepath.Join(t.TempDir(), "p.db"), "canary: {isolated: true, marker: x}\n"))
	before := goleak.IgnoreCurrent()
	cfg, problems := config.Load(nil, nil, file)
	if config.Fatal(problems) {
		t.Fatal(texts(problems))
	}
	var log bytes.Buffer
	kept, logger := app.NewResources(), app.NewLogger(&log, cfg.Log)
	none := func(string) (string, bool) { return "", false }
	rt, err := app.Build(t.Context(), cfg, none, logger, kept)
	if err != nil {
		t.Fatal(err)
	}
	again, err := app.Build(t.Context(), cfg, none, logger, kept)
	if err != nil {
		t.Fatal(err)
	}
	rt.Close()
	again.Close()
	if err := kept.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
	cfg.State = "sqlite:" + filepath.Join(t.TempDir(), "no", "folder.db")
	fresh := app.NewResources()
	if _, err := app.Build(t.Context(), cfg, none, logger, fresh); err == nil {
		t.Error("a runtime without its store was built")
	}
	if err := fresh.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}
