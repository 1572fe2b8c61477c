package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

// bearerKey is a bearer token that could be an API key.
const bearerKey = "K000000000000000000000000000000000000000"

func TestCredentialsOfReads(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker}) + "/rest/flag_type/P"
	cases := []struct {
		query  string
		header []string
		want   upstream.Credentials
	}{
		{"", nil, upstream.Credentials{}},
		{"?api_key=K", nil, upstream.Credentials{APIKey: "K"}},
		{"?Bugzilla_api_key=K", nil, upstream.Credentials{APIKey: "K"}},
		{"?Bugzilla_api_key=L&api_key=K", nil, upstream.Credentials{APIKey: "K"}},
		{"?api_key=+K%20", nil, upstream.Credentials{APIKey: "K"}},
		{"?api_key=", nil, upstream.Credentials{}},
		{"?API_KEY=K", nil, upstream.Credentials{}},
		{"?login=a@b&password=p", nil, upstream.Credentials{Login: "a@b", Password: "p"}},
		{"?Bugzilla_login=a&Bugzilla_password=p", nil, upstream.Credentials{Login: "a", Password: "p"}},
		{"?login=+a&password=+p%20", nil, upstream.Credentials{Login: "a", Password: " p "}},
		{"?login=a&password=+", nil, upstream.Credentials{Login: "a", Password: " "}},
		{"?token=8-x", nil, upstream.Credentials{Token: "8-x"}},
		{"?Bugzilla_token=8-x", nil, upstream.Credentials{Token: "8-x"}},
		{"", []string{"X-BUGZILLA-API-KEY", "K"}, upstream.Credentials{APIKey: "K"}},
		{"", []string{"X-BUGZILLA-API-KEY", ""}, upstream.Credentials{}},
		{"", []string{"X-API-KEY", "K"}, upstream.Credentials{}},
		{"", []string{"X-BUGZILLA-LOGIN", "a", "X-BUGZILLA-PASSWORD", "p"}, upstream.Credentials{Login: "a", Password: "p"}},
		{"", []string{"X-BUGZILLA-TOKEN", "8-x"}, upstream.Credentials{Token: "8-x"}},
		{"", []string{"Authorization", "Bearer " + bearerKey}, upstream.Credentials{APIKey: bearerKey, Authorization: "Bearer " + bearerKey}},
		{"", []string{"Authorization", "Bearer K"}, upstream.Credentials{Authorization: "Bearer K"}},
		{"", []string{"X-BUGZILLA-API-KEY", "K", "Authorization", "Bearer K"},
			upstream.Credentials{APIKey: "K", KeyTwice: true, Authorization: "Bearer K"}},
		{"?api_key=K", []string{"Authorization", "Bearer K"}, upstream.Credentials{APIKey: "K"}},
		{"?token=8-x", []string{"X-BUGZILLA-API-KEY", "K"}, upstream.Credentials{Token: "8-x"}},
		{"?login=a", []string{"X-BUGZILLA-API-KEY", "K"}, upstream.Credentials{Login: "a", APIKey: "K"}},
		{"", []string{"Authorization", "Basic eDp5"}, upstream.Credentials{Authorization: "Basic eDp5"}},
		{"", []string{"Cookie", "Bugzilla_login=8; Bugzilla_logincookie=x"}, upstream.Credentials{Cookies: "Bugzilla_login=8; Bugzilla_logincookie=x"}},
		{"?Bugzilla_api_token=t", []string{"Cookie", "Bugzilla_logincookie=x"}, upstream.Credentials{Cookies: "Bugzilla_logincookie=x", PageToken: "t"}},
		{"?Bugzilla_api_token=t", []string{"Cookie", "theme=dark"}, upstream.Credentials{Cookies: "theme=dark"}},
		{"?Bugzilla_api_token=t", nil, upstream.Credentials{}},
		{"?api_key=Q", []string{"X-BUGZILLA-API-KEY", "K", "Authorization", "Bearer B"}, upstream.Credentials{APIKey: "Q"}},
		{"?api_key=", []string{"X-BUGZILLA-API-KEY", "K"}, upstream.Credentials{APIKey: "K"}},
		{"?login=a&password=p", []string{"X-BUGZILLA-LOGIN", "h", "X-BUGZILLA-PASSWORD", "h"}, upstream.Credentials{Login: "a", Password: "p"}},
	}
	for _, c := range cases {
		ask(t, "GET", base+c.query, "", c.header...).wantStatus(t, 200)
		if tracker.caller.Credentials != c.want {
			t.Errorf("%s %q: another caller than expected", c.query, c.header)
		}
	}
	ask(t, "GET", base+"?api_key=a&api_key=b", "").wantError(t, 400, "306")
}

func TestCredentialsOfWrites(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker}) + "/rest/bug/attachment/5"
	cases := []struct {
		query, body string
		header      []string
		want        upstream.Credentials
	}{
		{"", `{"api_key":"K"}`, nil, upstream.Credentials{APIKey: "K"}},
		{"", `{"Bugzilla_api_key":"L","api_key":" K "}`, nil, upstream.Credentials{APIKey: "K"}},
		{"", `{"login":"a","password":"p"}`, nil, upstream.Credentials{Login: "a", Password: "p"}},
		{"", `{"login":" a","password":" p\t"}`, nil, upstream.Credentials{Login: "a", Password: " p\t"}},
		{"", "login=a&password=+p", []string{"Content-Type", "application/x-www-form-urlencoded"}, upstream.Credentials{Login: "a", Password: " p"}},
		{"", `{"Bugzilla_token":"8-x"}`, nil, upstream.Credentials{Token: "8-x"}},
		{"?Bugzilla_api_token=t", `{}`, []string{"Cookie", "Bugzilla_login=1"}, upstream.Credentials{Cookies: "Bugzilla_login=1", PageToken: "t"}},
		{"?api_key=Q", `{"api_key":"K"}`, nil, upstream.Credentials{APIKey: "Q"}},
		{"?api_key=Q&api_key=R", `{}`, nil, upstream.Credentials{APIKey: "Q"}},
		{"", `{"api_key":"K"}`, []string{"X-BUGZILLA-API-KEY", "H"}, upstream.Credentials{APIKey: "K"}},
		{"", `{"api_key":null}`, []string{"X-BUGZILLA-API-KEY", "H"}, upstream.Credentials{APIKey: "H"}},
		{"", `{"api_key":12}`, nil, upstream.Credentials{APIKey: "12"}},
		{"", `api_key=K&summary=s`, []string{"Content-Type", "application/x-www-form-urlencoded"}, upstream.Credentials{APIKey: "K"}},
	}
	for _, c := range cases {
		ask(t, "PUT", base+c.query, c.body, c.header...).wantStatus(t, 200)
		if extra := tracker.last.UpdateAttachments.Extra; tracker.caller.Credentials != c.want || len(extra) > 0 {
			t.Errorf("%s %s %q: another caller than expected, or it is sent on in %s", c.query, c.body, c.header, extra.AppendJSON(nil))
		}
	}
	ask(t, "PUT", base, `{"api_key":["K"]}`).wantError(t, 400, "306")
	ask(t, "PUT", base+"?api_key=Q", `{"token":{}}`).wantError(t, 400, "306")
}

// With an empty password a caller is not anonymous, whatever else the request has: a tracker checks the login first.
func TestEmptyPassword(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker})
	read, write := base+"/rest/flag_type/P", base+"/rest/bug/attachment/5"
	for _, query := range []string{"?login=a&password=", "?password&login=a", "?Bugzilla_login=a&Bugzilla_password=", "?login=a&password=&api_key=K"} {
		ask(t, "GET", read+query, "").wantError(t, 401, "300")
		ask(t, "PUT", write+query, "{}").wantError(t, 401, "300")
	}
	for _, body := range []string{`{"login":"a","password":""}`, `{"Bugzilla_login":"a","Bugzilla_password":"","api_key":"K"}`} {
		ask(t, "PUT", write, body).wantError(t, 401, "300")
	}
	ask(t, "PUT", write+"?login=a", "password=", "Content-Type", "application/x-www-form-urlencoded").wantError(t, 401, "300")
	if asked := tracker.asked(); len(asked) > 0 {
		t.Errorf("the tracker was asked: %v", asked)
	}
	for _, query := range []string{"?login=a", "?login=&password=", "?password="} {
		ask(t, "GET", read+query, "").wantStatus(t, 200)
	}
	ask(t, "PUT", write+"?login=a", `{"password":null}`).wantError(t, 401, "410")
	ask(t, "PUT", write+"?login=a&password=", `{"password":"p"}`).wantStatus(t, 200)
}

// The order is JSON, credentials, login, fields (tracker-behaviour.md section 1).
func TestOrderOfChecks(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker})
	ask(t, "POST", base+"/rest/flag_type", `{`).wantError(t, 400, "32000")
	ask(t, "POST", base+"/rest/flag_type", `{"api_key":[]}`).wantError(t, 400, "306")
	anonymous := ask(t, "POST", base+"/rest/flag_type", `{"sortkey":"x"}`)
	anonymous.wantError(t, 401, "410")
	if got := anonymous.header.Get("Portico-Error"); got != "login-required" {
		t.Errorf("Portico-Error %q", got)
	}
	ask(t, "POST", base+"/rest/flag_type?login=a", `{}`).wantError(t, 401, "410")
	ask(t, "PUT", base+"/rest/flag_type/1", ``).wantError(t, 401, "410")
	ask(t, "POST", base+"/rest/bug/1/attachment", `{}`).wantError(t, 401, "410")
	ask(t, "PUT", base+"/rest/bug/attachment/1", `{}`).wantError(t, 401, "410")
	ask(t, "POST", base+"/rest/flag_type"+key, `{"sortkey":"x"}`).wantError(t, 400, "50")
	if calls := tracker.asked(); len(calls) != 0 {
		t.Errorf("the tracker was asked: %v", calls)
	}
}

// unreading is a tracker that reads no credentials in headers.
func unreading(o *proxy.Options) {
	o.Passthrough.Dialect = func(context.Context) mapping.Dialect { return mapping.Dialect{} }
}

// What beats what is the same as for the seven operations: the query, the body, the headers (tracker-behaviour.md section 1).
func TestPassthroughPrecedenceOfCredentials(t *testing.T) {
	tracker, base := behind(t, "", unreading)
	const form, json = "application/x-www-form-urlencoded", "application/json"
	parts := "--b\r\nContent-Disposition: form-data; name=\"Bugzilla_api_key\"\r\n\r\nB\r\n--b--\r\n"
	for _, c := range []struct{ query, kind, body, want string }{
		{"", json, `{"comment":"c"}`, "Bugzilla_api_key=H"},
		{"", json, `{"comment":"c","Bugzilla_api_key":"B"}`, ""},
		{"", json, `{"api_key":"B"}`, ""},
		{"", "text/plain", `{"api_key":"B"}`, ""},
		{"", json, `{"api_key":"","api_key":"B"}`, ""},
		{"", json, `{"comment":"` + "\xff" + `","api_key":"B"}`, ""},
		{"", json, `{"api_key":["B"]}`, ""},
		{"", json, `{"api_key":"B","comment":"` + strings.Repeat("x", 2<<20) + `"}`, ""},
		{"", json, `{"api_key":null,"Bugzilla_api_key":"B"}`, ""},
		{"", json, `{"x":{"api_key":"B"}}`, "Bugzilla_api_key=H"},
		{"", json, `["api_key","B"]`, "Bugzilla_api_key=H"},
		{"", json, ``, "Bugzilla_api_key=H"},
		{"", form, "comment=c&api_key=B", ""},
		{"", form, "comment=c", "Bugzilla_api_key=H"},
		{"", "", "Bugzilla_api_key=B", ""},
		{"", "multipart/form-data; boundary=b", parts, ""},
		{"", json, `{"token":"8-B"}`, ""},
		{"api_key=Q", json, `{"Bugzilla_api_key":"B"}`, "api_key=Q"},
		{"api_key=", json, `{}`, "Bugzilla_api_key=H"},
		{"a=%20b;Bugzilla_api_key=+&c", json, `{}`, "a=%20b&c&Bugzilla_api_key=H"},
		{"api_key=;a=b", json, `{"Bugzilla_api_key":"B"}`, "a=b"},
		{"api_key=&Bugzilla_api_key=Q", json, `{}`, "Bugzilla_api_key=Q"},
	} {
		header := []string{"X-BUGZILLA-API-KEY", "H", "Content-Type", c.kind}
		if c.kind == "" {
			header = header[:2]
		}
		passes(t, tracker, base+"/rest/bug/4/comment?"+c.query, c.body, c.want, header...)
	}
	// Without a header what is empty goes only where something else counts.
	for query, want := range map[string]string{"api_key=&x=1": "x=1", "token=": "token="} {
		passes(t, tracker, base+"/rest/bug/4?"+query, `{"Bugzilla_api_key":"B"}`, want, "Content-Type", json)
	}
	// A password without a login is a field of users.
	for _, c := range []struct{ body, want string }{
		{`{"email":"e","password":"new"}`, "Bugzilla_login=l&Bugzilla_password=p"},
		{`{"login":"b"}`, "Bugzilla_login=l&Bugzilla_password=p"},
		{`{"login":"b","password":"q"}`, ""},
		{`{"Bugzilla_login":"b","Bugzilla_password":"q"}`, ""},
	} {
		passes(t, tracker, base+"/rest/user", c.body, c.want, "Content-Type", json, "X-BUGZILLA-LOGIN", "l", "X-BUGZILLA-PASSWORD", "p")
	}
}

// passes sends a request that passes, and wants the tracker to get its body with a certain query.
func passes(t *testing.T, tracker *backend, address, body, query string, header ...string) {
	t.Helper()
	ask(t, "POST", address, body, header...).wantStatus(t, 200)
	if _, got, _ := strings.Cut(tracker.target, "?"); got != query || tracker.body != body {
		t.Errorf("%s with %.80q: the tracker got %q and %d of %d bytes, want %q", address, body, got, len(tracker.body), len(body), query)
	}
}

// A bearer token in the form of a key that the tracker does not know may be that of a gateway, so a read is sent again without it. Any other refusal
// is the response.
func TestARefusedBearerTokenIsNoKey(t *testing.T) {
	tracker, base := behind(t, "", unreading)
	for code, calls := range map[int]int{mapping.CodeBadKey: 2, mapping.CodeNotFound: 1} {
		asked, refusal := 0, fmt.Sprintf(`{"error":true,"code":%d}`, code)
		tracker.response = func(w http.ResponseWriter, r *http.Request) {
			if asked++; r.URL.Query().Has("Bugzilla_api_key") {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, refusal)
			}
		}
		want := reply{status: http.StatusOK}
		if calls == 1 {
			want = reply{status: http.StatusBadRequest, body: refusal}
		}
		got := ask(t, "GET", base+"/rest/bug/1", "", "Authorization", "Bearer "+bearerKey)
		if got.status != want.status || got.body != want.body || asked != calls {
			t.Errorf("code %d: got %d %s after %d calls", code, got.status, got.body, asked)
		}
	}
}

// Every kind of request is counted, whichever way its credential comes, and a refused one does not reach the tracker.
func TestRateLimit(t *testing.T) {
	const body = `{"name":"n","description":"d"`
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
	}{
		"anonymous read":       {"GET", "/rest/flag_type/P", "", nil},
		"keyed read":           {"GET", "/rest/flag_type/P?api_key=k", "", nil},
		"key in a header":      {"POST", "/rest/flag_type", body + "}", []string{"X-Bugzilla-Api-Key", "k"}},
		"key in the body":      {"POST", "/rest/flag_type", body + `,"api_key":"k"}`, nil},
		"what passes through":  {"GET", "/show_bug.cgi", "", nil},
		"remote call":          {"POST", "/jsonrpc.cgi", "{}", nil},
		"write without a key":  {"POST", "/rest/flag_type", body + "}", nil},
		"unreadable parameter": {"GET", "/rest/version?api_key=k&api_key=k", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			tracker, passed := &fakeTracker{}, make(chan struct{}, 100)
			pass := passTo(t, func(http.ResponseWriter, *http.Request) { passed <- struct{}{} })
			few := proxy.Rate{PerSecond: 1, Burst: 3}
			base := serve(t, proxy.Options{Tracker: tracker, Passthrough: pass, Rates: proxy.RateLimits{Anonymous: few, Keyed: few}})
			start, through, refused := time.Now(), 0, 0
			for range 12 {
				got := ask(t, c.method, base+c.path, c.body, c.header...)
				if got.status != http.StatusTooManyRequests {
					through++
					continue
				}
				refused++
				got.wantError(t, 429, "200429")
				if got.header.Get("Portico-Error") != "rate-limited" || got.header.Get("Retry-After") != "1" {
					t.Errorf("headers %v", got.header)
				}
			}
			if limit := 4 + int(time.Since(start)/time.Second); through < 3 || through > limit {
				t.Errorf("%d came through, at most %d should", through, limit)
			}
			if reached := len(tracker.asked()) + len(passed); reached > through {
				t.Errorf("%d calls reached the tracker and %d came through", reached, through)
			}
		})
	}
}

// Neither kind of caller uses up what belongs to another.
func TestRateLimitKeepsCallersApart(t *testing.T) {
	base := serve(t, proxy.Options{Rates: proxy.RateLimits{Anonymous: proxy.Rate{PerSecond: 1, Burst: 20}, Keyed: proxy.Rate{PerSecond: 1, Burst: 2}}})
	path := base + "/rest/flag_type/P"
	refused := false
	for range 50 {
		refused = refused || ask(t, "GET", path, "", "Authorization", "Bearer one").status == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("50 calls at once came through")
	}
	ask(t, "GET", path, "").wantStatus(t, 200)
	ask(t, "GET", path, "", "Authorization", "Bearer two").wantStatus(t, 200)
	ask(t, "OPTIONS", path, "").wantStatus(t, 200)
	refused = false
	for i := range 50 {
		refused = refused || ask(t, "GET", path, "", "Authorization", fmt.Sprint("Bearer made up ", i)).status == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("50 credentials of one address came through at once")
	}
}

// A credential has calls of its own only once the tracker has accepted it; until then it counts against its address.
func TestCredentialsAreProvedByTheTracker(t *testing.T) {
	const create = `{"name":"n","description":"d"}`
	for name, c := range map[string]struct {
		method, path, body, name, value string
		proved                          bool
	}{
		"accepted read":            {"GET", "/rest/flag_type/P", "", "X-Bugzilla-Api-Key", "good", true},
		"refused read":             {"GET", "/rest/flag_type/P", "", "X-Bugzilla-Api-Key", "bad", false},
		"ignored cookies":          {"GET", "/rest/flag_type/P", "", "Cookie", "Bugzilla_login=1; Bugzilla_logincookie=good", false},
		"accepted write":           {"POST", "/rest/flag_type", create, "X-Bugzilla-Api-Key", "good", true},
		"refused write":            {"POST", "/rest/flag_type", create, "X-Bugzilla-Api-Key", "bad", false},
		"key in the body":          {"POST", "/rest/flag_type", `{"api_key":"good",` + create[1:], "X-Bugzilla-Api-Key", "bad", true},
		"accepted passing":         {"GET", "/rest/bug/1", "", "X-Bugzilla-Api-Key", "good", true},
		"refused passing":          {"GET", "/rest/bug/1", "", "X-Bugzilla-Api-Key", "bad", false},
		"passing for every caller": {"GET", "/rest/version", "", "X-Bugzilla-Api-Key", "good", false},
		"page":                     {"GET", "/show_bug.cgi", "", "X-Bugzilla-Api-Key", "good", false},
	} {
		t.Run(name, func(t *testing.T) {
			pass := passTo(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Bugzilla-Api-Key") == "bad" {
					w.WriteHeader(http.StatusBadRequest)
				}
			})
			base := serve(t, proxy.Options{Tracker: pickyTracker(), Passthrough: pass, Rates: proxy.RateLimits{Anonymous: proxy.Rate{PerSecond: 1, Burst: 1}}})
			start, through := time.Now(), 0
			for range 20 {
				if ask(t, c.method, base+c.path, c.body, c.name, c.value).status != http.StatusTooManyRequests {
					through++
				}
			}
			if limit := 1 + int(time.Since(start)/time.Second); c.proved && through != 20 || !c.proved && through > limit {
				t.Errorf("%d of 20 came through", through)
			}
		})
	}
}

// pickyTracker refuses the key "bad".
func pickyTracker() *fakeTracker {
	tracker := &fakeTracker{}
	tracker.do = func(_ context.Context, call upstream.Call) (mapping.Reply, error) {
		if tracker.caller.Credentials.APIKey == "bad" {
			return mapping.Reply{}, mapping.Refuse(mapping.CodeBadKey, "no such key")
		}
		return success(call.Operation)
	}
	return tracker
}
