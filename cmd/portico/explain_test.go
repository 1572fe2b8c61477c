package main

import (
	"net/http"
	"net/http/httptest"
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
		{"credentials of a browser", []string{"GET", "/rest/version?Bugzilla_API_Key=SECRET", "--header", "Cookie: Bugzilla_logincookie=SECRET"}, []string{
			"Bugzilla_API_Key=REDACTED", "Cookie: REDACTED",
		}},
		{"a path as proxies are asked", []string{"GET", "http://bugs.example/rest/flag_type/P?api_key=SECRET"}, []string{
			"operation    flag_type.get", "GET http://tracker.example/rest/flag_type/P?Bugzilla_api_key=REDACTED",
		}},
		{"a dangerous path", []string{"PUT", "/rest//bug/x/../attachment"}, []string{"the tracker  is not asked", `"code":32614`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := portico(t, nil, append([]string{"explain"}, c.args...)...)
			if code != exitOK || strings.Contains(stdout, "SECRET") {
				t.Fatalf("exits with %d: %s%s", code, stdout, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("does not say %q:\n%s", want, stdout)
				}
			}
		})
	}
}

// TestExplainKnowsWhatServeKnows: what the configuration says of replies and proxies counts here too, and what no client can
// ask for is a mistake of the command line, in which a key is not shown.
func TestExplainKnowsWhatServeKnows(t *testing.T) {
	file := writeFile(t, "c.yaml", withTracker+"api: {documentation: 'http://docs.example/'}\ntrusted_proxies: [127.0.0.1]\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"POST", "/rest/flag_type", "--data", "{}"}, exitOK, `"documentation":"http://docs.example/"`},
		{[]string{"GET", "/rest/version", "--header", "X-Forwarded-For: 192.0.2.7"}, exitOK, "X-Forwarded-For: 192.0.2.7"},
		{[]string{"GET", "rest/version"}, exitUsage, "invalid path: must begin with /"},
		{[]string{"GET", ""}, exitUsage, "must begin with /"},
		{[]string{"GET", "/rest/flag_type/%zz?api_key=hunter2"}, exitUsage, `invalid path: invalid URL escape "%zz"`},
		{[]string{"B AD", "/"}, exitUsage, `invalid request: net/http: invalid method "B AD"`},
	} {
		code, stdout, stderr := portico(t, nil, append([]string{"explain", "--config", file}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) || strings.Contains(stderr, "hunter2") {
			t.Errorf("%q: exit %d, want %q in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
}

// TestExplainAsksTheRunningPortico: what the running Portico says of itself counts, unless it is before other trackers.
func TestExplainAsksTheRunningPortico(t *testing.T) {
	file := writeFile(t, "c.yaml", withTwo+"switchover: {rules: [{name: configured, reads: new}]}\n")
	const trackers = `{"primary":"a","switchover":{},"trackers":{"a":{"url":"http://a.example/"},"b":{"url":"http://b.example/","dialect":"bmo","dialect_pinned":true}}}`
	const rules = `"version":7,"source":"admin","actor":"ada","reason":"moved","table":{"rules":[{"name":"applied","reads":"new","writes":"new"}]}`
	for name, c := range map[string]struct {
		status, moves string
		wants, lacks  []string
	}{
		"rules": {trackers, "{" + rules + "}", []string{
			"rules        version 7 of the Portico at ", "source admin, by ada: moved\n", "rule         applied ", "dialect      bmo\n",
			"cache        fresh for the scope x: it is new\n",
		}, []string{"configured", "not known"}},
		"killed":         {trackers, "{" + rules + `,"killed":{"actor":"ada"}}`, []string{"rule         kill switch ", "http://a.example/"}, []string{"rule         applied"}},
		"other trackers": {strings.Replace(trackers, "b.example", "c.example", 1), "{" + rules + "}", []string{"has other trackers", "rule         configured "}, []string{"rule         applied", "bmo", "fresh"}},
		"other primary":  {strings.Replace(trackers, `"primary":"a"`, `"primary":"b"`, 1), "{" + rules + "}", []string{"has other trackers"}, []string{"rule         applied"}},
	} {
		listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text := map[string]string{
				"/status": c.status, "/switchover/status.json": c.moves,
				"/cache?component=a%2Fb&product=P": `{"items":[{"state":"fresh","scope":"x","why":"it is new"}]}`,
			}[r.URL.String()]
			if text == "" {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = w.Write([]byte(text))
		}))
		code, stdout, stderr := portico(t, nil, "explain", "GET", "/rest/flag_type/P/a%2Fb", "--config", file, "--admin", listener.URL)
		listener.Close()
		if code != exitOK {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
		for _, want := range c.wants {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: explain does not say %q:\n%s", name, want, stdout)
			}
		}
		for _, lack := range c.lacks {
			if strings.Contains(stdout, lack) {
				t.Errorf("%s: explain says %q:\n%s", name, lack, stdout)
			}
		}
	}
}
