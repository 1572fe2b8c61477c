package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"portico/test/tracker"
)

// docs/reference/clients.md, section 4: the duties about credentials, and about the tracker's own errors.

// adminPassword is the password of the fixture's administrator (tracker-behaviour.md section 13).
const adminPassword = "adminpass1A!"

// form is a way to send credentials: in the query, in the body, in headers.
type form struct {
	name  string
	query url.Values
	body  map[string]string
	head  http.Header
	// writes says that the tracker takes this form on POST and PUT only.
	writes bool
}

// forms are all ways in which clients send credentials, for the administrator. The token is one of GET /rest/login.
func forms(key, token string) []form {
	login, password := "admin@example.com", adminPassword
	id, secret, _ := strings.Cut(token, "-")
	return []form{
		{name: "Bugzilla_api_key in the query", query: url.Values{"Bugzilla_api_key": {key}}},
		{name: "api_key in the query", query: url.Values{"api_key": {key}}},
		{name: "login and password in the query", query: url.Values{"login": {login}, "password": {password}}},
		{name: "Bugzilla_login and Bugzilla_password in the query", query: url.Values{"Bugzilla_login": {login}, "Bugzilla_password": {password}}},
		{name: "Bugzilla_token in the query", query: url.Values{"Bugzilla_token": {token}}},
		{name: "token in the query", query: url.Values{"token": {token}}},
		{name: "X-BUGZILLA-API-KEY", head: http.Header{"X-Bugzilla-Api-Key": {key}}},
		{name: "Authorization: Bearer", head: http.Header{"Authorization": {"Bearer " + key}}},
		{name: "X-BUGZILLA-LOGIN and X-BUGZILLA-PASSWORD", head: http.Header{"X-Bugzilla-Login": {login}, "X-Bugzilla-Password": {password}}},
		{name: "X-BUGZILLA-TOKEN", head: http.Header{"X-Bugzilla-Token": {token}}},
		{name: "Bugzilla_api_key in the body", body: map[string]string{"Bugzilla_api_key": key}, writes: true},
		{name: "api_key in the body", body: map[string]string{"api_key": key}, writes: true},
		{name: "login and password in the body", body: map[string]string{"login": login, "password": password}, writes: true},
		{
			name: "Bugzilla_login and Bugzilla_password in the body",
			body: map[string]string{"Bugzilla_login": login, "Bugzilla_password": password}, writes: true,
		},
		{name: "Bugzilla_token in the body", body: map[string]string{"Bugzilla_token": token}, writes: true},
		{name: "token in the body", body: map[string]string{"token": token}, writes: true},
		{name: "login cookies", head: http.Header{"Cookie": {"Bugzilla_login=" + id + "; Bugzilla_logincookie=" + secret}}, writes: true},
	}
}

// with gives a request these credentials.
func (f form) with(t testing.TB, a ask) ask {
	t.Helper()
	if len(f.query) > 0 {
		a.path += map[bool]string{true: "&", false: "?"}[strings.Contains(a.path, "?")] + f.query.Encode()
	}
	if len(f.body) > 0 {
		members := map[string]any{}
		must(t, json.Unmarshal([]byte(a.body), &members))
		for name, value := range f.body {
			members[name] = value
		}
		text, err := json.Marshal(members)
		must(t, err)
		a.body = string(text)
	}
	a.header = f.head
	return a
}

// login gets a token through Portico.
func (c *client) login(t testing.TB) string {
	t.Helper()
	query := url.Values{"login": {"admin@example.com"}, "password": {adminPassword}}
	return c.get(t, "", "/rest/login?"+query.Encode()).ok(t, 200).value(t, "token")
}

// TestDuty_02_KeysInQueryAndBody makes the seven operations with each form of credentials and without any. BMO and Harmony have no writes of
// flag types, and read a key in a header, which keeps it out of addresses.
func TestDuty_02_KeysInQueryAndBody(t *testing.T) {
	bmo := tracker.Options{Dialect: tracker.DialectBMO}
	for _, p := range []plan{{cached: true}, {program: true, env: []string{"CACHE_SCOPE=off"}}, {tracker: bmo}} {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			h := open(t, p)
			operations := seven()
			if p.tracker.Dialect != "" {
				operations = slices.DeleteFunc(operations, func(op operation) bool { return strings.HasSuffix(op.name, "e flag type") })
			}
			for _, op := range operations {
				h.do(t, ask{method: op.method, path: "/rest" + op.path, body: op.body}).fails(t, op.anonymous, codeOf(op))
			}
			key, token := h.keys["admin"], h.login(t)
			for _, f := range forms(key, token) {
				for _, op := range operations {
					if f.writes && op.method == http.MethodGet {
						continue
					}
					got := h.do(t, f.with(t, ask{method: op.method, path: "/rest" + op.path, body: op.body}))
					if got.status != op.status {
						t.Errorf("%s with %s: status %d, want %d: %.200s", op.name, f.name, got.status, op.status, got.body)
					}
					if p.tracker.Dialect != "" && strings.Contains(h.tape.last(t).uri, key) {
						t.Errorf("%s with %s: the key is in the address", op.name, f.name)
					}
				}
				// On every other path they stay where they are.
				if len(f.query) > 0 || len(f.head) > 0 && !f.writes {
					h.do(t, f.with(t, ask{method: "GET", path: "/rest/bug/4"})).ok(t, 200)
				}
				if len(f.query)+len(f.body) > 0 && p.tracker.Dialect == "" {
					h.do(t, f.with(t, ask{method: "POST", path: "/rest/bug/4/comment", body: `{"comment":"c"}`})).ok(t, 201)
				}
			}
		})
	}
}
