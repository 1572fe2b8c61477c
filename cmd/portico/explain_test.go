package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestExplain shows which rule decides, what the trackers would be sent or why nothing is, and what is not known. What the configuration says of
// replies and proxies counts, what no client can send is a mistake of the command line, and no key is shown.
func TestExplain(t *testing.T) {
	t.Parallel()
	replies := writeFile(t, "c.yaml", withTracker+"api: {documentation: 'http://docs.example/'}\ntrusted_proxies: [127.0.0.1]\n")
	rules := writeFile(t, "c.yaml", withTwo+`
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
	for _, c := range []struct {
		config string
		args   []string
		code   int
		want   []string
	}{
		{"", []string{"GET", "/rest/flag_type/P/a%2Fb?api_key=SECRET"}, exitOK, []string{
			"operation    flag_type.get", "GET http://tracker.example/rest/flag_type/P?Bugzilla_api_key=REDACTED&component=a%2Fb",
		}},
		{"", []string{"POST", "/rest/flag_type", "--header", "X-BUGZILLA-API-KEY: SECRET", "--data",
			`{"name":"n","description":"d","inclusions":{"P":["c"]}}`}, exitOK, []string{`"inclusions":[{"P":["c"]}]`, `"Bugzilla_api_key":"REDACTED"`}},
		{"", []string{"GET", "/rest/flag_type/a%2Fb?Bugzilla_login=SECRET&Bugzilla_password=SECRET"}, exitOK, []string{
			"POST http://tracker.example/jsonrpc.cgi", `"params":[{"product":"a/b",`,
		}},
		{"", []string{"POST", "/rest/flag_type?api_key=SECRET", "--data", `{"name":"n","description":"d","sortkey":0}`}, exitOK, []string{
			"the tracker  is not asked", "gets 400 (invalid-request)", `"code":1104`,
		}},
		{"", []string{"GET", "/rest/version?token=SECRET"}, exitOK, []string{"operation    passthrough", "GET http://tracker.example/rest/version?token=REDACTED"}},
		{"", []string{"GET", "/rest/version?Bugzilla_API_Key=SECRET", "--header", "Cookie: Bugzilla_logincookie=SECRET"}, exitOK, []string{
			"Bugzilla_API_Key=REDACTED", "Cookie: REDACTED",
		}},
		{"", []string{"GET", "http://bugs.example/rest/flag_type/P?api_key=SECRET"}, exitOK, []string{
			"operation    flag_type.get", "GET http://tracker.example/rest/flag_type/P?Bugzilla_api_key=REDACTED",
		}},
		{"", []string{"PUT", "/rest//bug/x/../attachment"}, exitOK, []string{"the tracker  is not asked", `"code":32614`}},
		{replies, []string{"POST", "/rest/flag_type", "--data", "{}"}, exitOK, []string{`"documentation":"http://docs.example/"`}},
		{replies, []string{"GET", "/rest/version", "--header", "X-Forwarded-For: 192.0.2.7"}, exitOK, []string{"X-Forwarded-For: 192.0.2.7"}},
		{replies, []string{"GET", "rest/version"}, exitUsage, []string{"invalid path: must begin with /"}},
		{replies, []string{"GET", ""}, exitUsage, []string{"must begin with /"}},
		{replies, []string{"GET", "/rest/flag_type/%zz?api_key=SECRET"}, exitUsage, []string{`invalid path: invalid URL escape "%zz"`}},
		{replies, []string{"B AD", "/"}, exitUsage, []string{`invalid request: net/http: invalid method "B AD"`}},
		{rules, []string{"GET", "/rest/flag_type/WebShop"}, exitOK, []string{
			"rule         shop (reads new-compare, writes old-compare): b answers", "compared     a,", "gets GET http://b.example/rest/flag_type/WebShop",
		}},
		{rules, []string{"GET", "/rest/flag_type/Else?api_key=SECRET"}, exitOK, []string{"rule         robots (reads new, writes old-compare): b answers"}},
		{rules, []string{"GET", "/rest/flag_type/Else"}, exitOK, []string{"rule         rest (reads old-compare, writes old-compare): a answers"}},
		{rules, []string{"GET", "/rest/bug/7/attachment"}, exitOK, []string{
			"need a lookup, which explain does not send: the product and component of bug 7, asked of", "the tracker  is not asked",
		}},
		{rules, []string{"GET", "/rest/bug/attachment/7"}, exitOK, []string{"the bug of attachment 7, asked of"}},
		{rules, []string{"GET", "/rest/version"}, exitOK, []string{"rule         of the passthrough: b answers", "gets GET http://b.example/rest/version"}},
		{rules, []string{"POST", "/rest/login"}, exitOK, []string{"rule         of the passthrough: a answers"}},
		{rules, []string{"POST", "/rest/flag_type", "--data", "{}"}, exitOK, []string{"the tracker  is not asked", "gets 401 (login-required)"}},
		{idsConfig(t), []string{"GET", "/rest/bug/7/attachment"}, exitOK, []string{"ids          not known here", "GET http://127.0.0.1:1/rest/bug/7/attachment"}},
	} {
		args := append([]string{"explain"}, c.args...)
		if c.config != "" {
			args = append(args, "--config", c.config)
		}
		code, stdout, stderr := portico(t, []string{"KEY=SECRET"}, args...)
		if code != c.code || strings.Contains(stdout+stderr, "SECRET") {
			t.Errorf("explain %q exits with %d: %s%s", c.args, code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("explain %q does not say %q:\n%s%s", c.args, want, stdout, stderr)
			}
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
