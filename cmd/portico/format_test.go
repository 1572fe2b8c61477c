package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestFormats: every command that prints data does so as JSON for --json, --format json and --output json alike, prints the same as
// YAML, prints something else without them, and refuses flags that contradict each other.
func TestFormats(t *testing.T) {
	t.Parallel()
	asked := ""
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked += r.Method + " " + r.URL.String() + "\n"
		if r.URL.Path == "/rest/version" {
			_, _ = w.Write([]byte(`{"version":"5.2"}`))
			return
		}
		_, _ = w.Write([]byte(`{"verdict":"PASS","version":1,"old":"a","new":"b","items":[],"history":[],"finding":{"note":"yes\/\ud83d\ude00"}}` + "\n"))
	}))
	defer listener.Close()
	rules := writeFile(t, "rules.yaml", "rules: [{name: x}]\n")
	admin, signed, tracker := " --admin "+listener.URL, " --actor me --reason r", " --tracker "+listener.URL
	for command, options := range map[string]string{
		"cache show K": admin, "cache show --product P": admin, "cache purge": admin, "health": admin, "version": "",
		"canary report": admin, "canary findings --class type": admin, "canary verdict": admin, "canary show S": admin, "canary sampling": admin,
		"canary accept S": admin + signed, "canary reopen S": admin + signed, "canary fixed S": admin + signed, "canary reset": admin + signed,
		"migrate status": admin, "migrate history": admin, "migrate plan " + rules: admin, "migrate apply " + rules + " --version 1": admin + signed,
		"migrate kill": admin + signed, "migrate revive": admin + signed, "check": tracker, "check --probe": tracker, "explain GET /rest/version": "",
	} {
		results := map[string]string{}
		for _, flags := range []string{"--json", "--format json", "--format=json --json", "-format json", "--output json --json", "--output yaml", "--output text", "--json=false", ""} {
			code, stdout, stderr := portico(t, nil, strings.Fields(command+options+" "+flags)...)
			if code != exitOK || stderr != "" && !strings.HasPrefix(stderr, "warning: ") {
				t.Errorf("%s %s: exit %d\n%s%s", command, flags, code, stdout, stderr)
			}
			results[flags] = stdout
			var value, same any
			switch {
			case strings.Contains(flags, "json") && flags != "--json=false":
				if !json.Valid([]byte(stdout)) || len(results["--json"]) != len(stdout) { // explain makes up an id
					t.Errorf("%s %s prints %s", command, flags, stdout)
				}
			case flags == "--output yaml":
				if err := yaml.Unmarshal([]byte(stdout), &value); err != nil || strings.HasPrefix(stdout, "{") {
					t.Errorf("%s as YAML: %v\n%s", command, err, stdout)
				}
				_ = json.Unmarshal([]byte(results["--json"]), &same)
				if a, b := fmt.Sprint(value), fmt.Sprint(same); len(a) != len(b) { // explain makes up an id
					t.Errorf("%s as YAML has %s, and as JSON %s", command, a, b)
				}
			case command != "canary report" && command != "canary sampling": // which are as the listener has them
				if json.Valid([]byte(stdout)) {
					t.Errorf("%s %s prints JSON: %s", command, flags, stdout)
				}
			}
		}
	}
	for path, n := range map[string]int{"GET /canary/report.json\n": 9, "GET /canary/report.txt\n": 3, "GET /canary/verdict.json\n": 6, "POST /cache/purge\n": 9} {
		if strings.Count(asked, path) != n {
			t.Errorf("%q was asked %d times, want %d:\n%s", path, strings.Count(asked, path), n, asked)
		}
	}
	asked = ""
	for command, options := range map[string]string{
		"cache show K": admin, "cache purge": admin, "canary verdict": admin, "canary report": admin, "migrate status": admin, "health": admin,
		"migrate kill": admin + signed, "replay f --tracker http://t": "", "check --print": tracker, "version": "",
	} {
		for flags, want := range map[string]string{
			"--json --format text": "contradict", "--format text --json": "contradict", "--output yaml --json": "contradict",
			"--format xml": "unknown format", "--format junit --json": "",
		} {
			if code, stdout, stderr := portico(t, nil, strings.Fields(command+options+" "+flags)...); code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
				t.Errorf("%s %s: exit %d\n%s%s", command, flags, code, stdout, stderr)
			}
		}
	}
	if code, _, stderr := portico(t, nil, strings.Fields("check --print --json"+tracker)...); code != exitUsage || !strings.Contains(stderr, "YAML") {
		t.Errorf("check --print --json: exit %d\n%s", code, stderr)
	}
	if asked != "" {
		t.Errorf("the listener was called by a wrong command line:\n%s", asked)
	}
}
