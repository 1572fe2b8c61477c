package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestFormats: every command that prints JSON does so for --json and for --format json alike, prints something else without them,
// and refuses flags that contradict each other.
func TestFormats(t *testing.T) {
	asked := ""
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked += r.Method + " " + r.URL.String() + "\n"
		_, _ = w.Write([]byte(`{"verdict":"PASS","version":1,"old":"a","new":"b","items":[],"history":[]}` + "\n"))
	}))
	defer listener.Close()
	rules := writeFile(t, "rules.yaml", "rules: [{name: x}]\n")
	signed := " --actor me --reason r"
	for _, command := range []string{
		"cache show K", "cache show --product P", "cache purge",
		"canary report", "canary verdict", "canary accept S" + signed, "canary reopen S" + signed, "canary fixed S" + signed, "canary reset" + signed,
		"migrate status", "migrate history", "migrate plan " + rules, "migrate apply " + rules + " --version 1" + signed,
		"migrate kill" + signed, "migrate revive" + signed,
	} {
		words := append(strings.Fields(command), "--admin", listener.URL)
		outputs := map[string]bool{}
		for _, flags := range []string{"--json", "--format json", "--format=json --json", "-format json"} {
			code, stdout, stderr := portico(t, nil, append(words, strings.Fields(flags)...)...)
			if !json.Valid([]byte(stdout)) || code != exitOK || stderr != "" && !strings.HasPrefix(stderr, "warning: ") {
				t.Errorf("%s %s: exit %d\n%s%s", command, flags, code, stdout, stderr)
			}
			outputs[stdout] = true
		}
		if len(outputs) != 1 {
			t.Errorf("%s: --json and --format json print different things: %v", command, outputs)
		}
		if command != "canary report" { // which the listener renders
			for _, flags := range []string{"", "--format text", "--json=false"} {
				if code, stdout, stderr := portico(t, nil, append(words, strings.Fields(flags)...)...); code != exitOK || json.Valid([]byte(stdout)) {
					t.Errorf("%s %s: exit %d\n%s%s", command, flags, code, stdout, stderr)
				}
			}
		}
	}
	for path, n := range map[string]int{"GET /canary/report.json\n": 7, "GET /canary/report.txt\n": 0, "GET /canary/verdict.json\n": 4, "POST /cache/purge\n": 7} {
		if strings.Count(asked, path) != n {
			t.Errorf("%q was asked %d times, want %d:\n%s", path, strings.Count(asked, path), n, asked)
		}
	}
	asked = ""
	for _, command := range []string{"cache show K", "cache purge", "canary verdict", "canary report", "migrate status", "migrate kill" + signed, "replay f --tracker http://t"} {
		for flags, want := range map[string]string{
			"--json --format text": "contradict", "--format text --json": "contradict", "--format yaml": "unknown format", "--format junit --json": "",
		} {
			words := append(strings.Fields(command), strings.Fields(flags)...)
			if !strings.HasPrefix(command, "replay") {
				words = append(words, "--admin", listener.URL)
			}
			if code, stdout, stderr := portico(t, nil, words...); code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
				t.Errorf("%s %s: exit %d\n%s%s", command, flags, code, stdout, stderr)
			}
		}
	}
	if asked != "" {
		t.Errorf("the listener was called by a wrong command line:\n%s", asked)
	}
}
