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
