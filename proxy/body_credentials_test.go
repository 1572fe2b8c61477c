package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"portico/mapping"
	"portico/proxy"
)

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
