package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"a name with a slash", []string{"GET", "/rest/flag_type/P/a%2Fb?api_key=SECRET"}, []string{
			"operation    flag_type.get", "GET http://tracker.example/rest/flag_type/P?Bugzilla_api_key=REDACTED&component=a%2Fb",
		}},
		{"a translation", []string{"POST", "/rest/flag_type", "--header", "X-BUGZILLA-API-KEY: SECRET", "--data",
			`{"name":"n","description":"d","inclusions":{"P":["c"]}}`}, []string{`"inclusions":[{"P":["c"]}]`, `"Bugzilla_api_key":"REDACTED"`}},
		{"a procedure call", []string{"GET", "/rest/flag_type/a%2Fb?Bugzilla_login=SECRET&Bugzilla_password=SECRET"}, []string{
			"POST http://tracker.example/jsonrpc.cgi", `"params":[{"product":"a/b",`,
		}},
		{"a refusal", []string{"POST", "/rest/flag_type?api_key=SECRET", "--data", `{"name":"n","description":"d","sortkey":0}`}, []string{
			"the tracker  is not asked", "gets 400 (invalid-request)", `"code":1104`,
		}},
		{"a passthrough", []string{"GET", "/rest/version?token=SECRET"}, []string{
			"operation    passthrough", "GET http://tracker.example/rest/version?token=REDACTED",
		}},
		{"a path as proxies are asked", []string{"GET", "http://bugs.example/rest/flag_type/P?api_key=SECRET"}, []string{
			"operation    flag_type.get", "GET http://tracker.example/rest/flag_type/P?Bugzilla_api_key=REDACTED",
		}},
		{"a dangerous path", []string{"PUT", "/rest//bug/x/../attachment"}, []string{"the tracker  is not asked", `"code":32614`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, append([]string{"explain"}, c.args...))
			if code != exitOK {
				t.Fatalf("exits with %d: %s", code, stderr.String())
			}
			for _, want := range c.want {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("does not say %q:\n%s", want, stdout.String())
				}
			}
			if strings.Contains(stdout.String(), "SECRET") {
				t.Errorf("shows a credential:\n%s", stdout.String())
			}
		})
	}
}

// TestExplainKnowsWhatServeKnows: what the configuration says of replies and proxies counts here too, and what no client can
// ask for is a mistake of the command line.
func TestExplainKnowsWhatServeKnows(t *testing.T) {
	file := writeFile(t, "c.yaml", withTracker+"api: {documentation: 'http://docs.example/'}\ntrusted_proxies: [127.0.0.1]\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"POST", "/rest/flag_type", "--data", "{}"}, exitOK, `"documentation":"http://docs.example/"`},
		{[]string{"GET", "/rest/version", "--header", "X-Forwarded-For: 192.0.2.7"}, exitOK, "X-Forwarded-For: 192.0.2.7, 127.0.0.1"},
		{[]string{"GET", "rest/version"}, exitUsage, "must begin with /"},
		{[]string{"GET", ""}, exitUsage, "must begin with /"},
	} {
		code, stdout, stderr := portico(t, nil, append([]string{"explain", "--config", file}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%q: exit %d, want %q in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
}

// TestExplainWhatIsNoRequest: what is wrong is named, and a key in the query is not.
func TestExplainWhatIsNoRequest(t *testing.T) {
	for _, c := range []struct{ method, path, want string }{
		{"GET", "rest/flag_type", "the path is none: it must begin with /"},
		{"GET", "/rest/flag_type/%zz?api_key=hunter2", `the path is none: invalid URL escape "%zz"`},
		{"B AD", "/", `the request is none: net/http: invalid method "B AD"`},
	} {
		code, _, stderr := portico(t, nil, "explain", c.method, c.path)
		if code != exitUsage || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "hunter2") {
			t.Errorf("%s %s: exit %d, %s", c.method, c.path, code, stderr)
		}
	}
}
