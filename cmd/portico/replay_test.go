package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portico/test/tracker"
	"portico/upstream/canary/verdict"
)

// TestReplayCommandLine: what cannot be played is said, and no verdict is given.
func TestReplayCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, broken, keys := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl"), filepath.Join(dir, "keys.json")
	for name, text := range map[string]string{
		file:   `{"name":"one","request":{"method":"GET","path":"/rest/flag_type/TestProduct?api_key={{caller-1}}","headers":{}},"callers":["caller-1"],"response":null}`,
		broken: "{\n",
		keys:   `["secret-in-a-list"]`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none := writeFile(t, "null.json", "null")
	server, other := httptest.NewServer(tracker.New(tracker.Options{})), httptest.NewServer(tracker.New(tracker.Options{}))
	defer server.Close()
	defer other.Close()
	half := writeFile(t, "half.jsonl", `{"name":"v","request":{"method":"GET","path":"/rest/bug/1/attachment","headers":{}},"response":null}`+"\n{\n")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--tracker", server.URL}, exitUsage, "needs FILE"},
		{[]string{file}, exitUsage, "needs --tracker"},
		{[]string{file, "--tracker", "tracker.example"}, exitUsage, "must begin with http"},
		{[]string{file, "--tracker", "http://me:pass@tracker.example"}, exitUsage, "without a password"},
		{[]string{file, "--tracker", server.URL, "--format", "xml"}, exitUsage, "unknown format"},
		{[]string{file, "--tracker", server.URL, "--target", "0"}, exitUsage, "percentage"},
		{[]string{file, "--tracker", server.URL, "--target", "NaN"}, exitUsage, "percentage"},
		{[]string{file, "--tracker", server.URL, "--target", "100.1"}, exitUsage, "percentage"},
		{[]string{file, "--tracker", server.URL, "--key", "caller-1"}, exitUsage, "NAME=VARIABLE"},
		{[]string{file, "--tracker", server.URL, "--key", "caller-1=NONE"}, exitNoVerdict, "NONE"},
		{[]string{file, "--tracker", server.URL, "--keys", keys}, exitNoVerdict, "no JSON object"},
		{[]string{file, "--tracker", server.URL, "--keys", none, "--key", "caller-1=KEY"}, exitNoVerdict, "no JSON object"},
		{[]string{file, "--tracker", server.URL, "--only", "["}, exitUsage, "syntax error in pattern"},
		{[]string{file, "--tracker", server.URL, "--config", keys}, exitNoVerdict, "the configuration is not good"},
		{[]string{broken, "--tracker", server.URL}, exitNoVerdict, "line 1 of the recording is no exchange"},
		{[]string{file, "--tracker", server.URL}, 2, "its response is not recorded"},
		{[]string{file, "--tracker", server.URL, "--against", "HTTP" + strings.TrimPrefix(server.URL, "http") + "/"}, exitUsage, "one tracker"},
		{[]string{half, "--tracker", server.URL, "--against", other.URL, "--format", "junit"}, exitNoVerdict, "not played to its end"},
		{[]string{file, "--tracker", server.URL, "--against", other.URL}, 2, "there is no value for caller-1; use --key or --keys"},
	} {
		code, stdout, stderr := portico(t, []string{"KEY=key"}, append([]string{"replay"}, c.args...)...)
		if said := stdout + stderr; code != c.code || !strings.Contains(said, c.says) || strings.Contains(said, "secret-in") || strings.Contains(said, "me:pass") {
			t.Errorf("replay %q: %d, want %d with %q in\n%s", c.args, code, c.code, c.says, said)
		}
	}
}

// TestReplayGoesByEquivalences of a configuration.
func TestReplayGoesByEquivalences(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		fmt.Fprint(w, `{"bug":[{"id":1,"name":"1.3"}],"attachment":[]}`)
	}))
	defer server.Close()
	file := writeFile(t, "a.jsonl", `{"name":"v","request":{"method":"GET","path":"/rest/flag_type/P","headers":{}},`+
		`"response":{"status":200,"headers":{"content-type":"application/json; charset=UTF-8"},"body":"{\"bug\":[{\"id\":1,\"name\":\"1.2\"}],\"attachment\":[]}"}}`)
	config := writeFile(t, "c.yaml", withTwo+
		"canary: {equivalences: [{name: releases, type: regex, path: '$.bug[id].name', pattern: '^[0-9.]+$', owner: me, reason: r, expires: 2999-01-01}]}\n")
	code, stdout, _ := portico(t, nil, "replay", file, "--tracker", server.URL, "--format", "json")
	if code != verdict.Fail.ExitCode() || !strings.Contains(stdout, `"$.bug[id].name"`) {
		t.Errorf("exit code %d without a rule:\n%s", code, stdout)
	}
	code, stdout, stderr := portico(t, nil, "replay", file, "--tracker", server.URL, "--format", "json", "--config", config)
	if code != verdict.Inconclusive.ExitCode() || strings.Contains(stdout, `"class"`) || !strings.Contains(stdout, `"hits": 1`) {
		t.Errorf("exit code %d with one:\n%s%s", code, stdout, stderr)
	}
}

// TestReplayFormats: each format is what it says, and nothing else is on standard output.
func TestReplayFormats(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(tracker.New(tracker.Options{}))
	defer server.Close()
	all, err := os.ReadFile("../../test/wire/testdata/bugzilla-5.2.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	recordings := writeFile(t, "few.jsonl", strings.Join(strings.SplitAfter(string(all), "\n")[:20], ""))
	for format, begin := range map[string]string{"json": "{", "junit": "<?xml"} {
		code, stdout, stderr := portico(t, nil, "replay", recordings, "--tracker", server.URL, "--only", "ft.get.*", "--format", format)
		if code != 2 || !strings.HasPrefix(stdout, begin) || !strings.Contains(stderr, "Requests made: ") {
			t.Errorf("%s: %d\n%s\n%s", format, code, stdout, stderr)
		}
	}
}

// TestRecordNeedsANewFile: placeholders of another run would mean somebody else.
func TestRecordNeedsANewFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--tracker", "http://tracker.example/"}, exitUsage, "needs --out"},
		{[]string{"--out", file}, exitFailed, "tracker"},
		{[]string{"--out", file, "--tracker", "http://tracker.example/"}, exitFailed, "exists"},
	} {
		if code, stdout, stderr := portico(t, nil, append([]string{"record"}, c.args...)...); code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("record %q: %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}
