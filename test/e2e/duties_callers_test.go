package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
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
		if err := json.Unmarshal([]byte(a.body), &members); err != nil {
			t.Fatal(err)
		}
		for name, value := range f.body {
			members[name] = value
		}
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		a.body = string(text)
	}
	a.header = f.head
	return a
}

// login gets a token through Portico.
func (c *client) login(t testing.TB) string {
	t.Helper()
	query := url.Values{"login": {"admin@example.com"}, "password": {adminPassword}}
	return text(t, c.get(t, "", "/rest/login?"+query.Encode()).ok(t, 200).at(t, "token"))
}

// everyForm runs the seven operations with each form of credentials, and without any.
func everyForm(t *testing.T, c *client) {
	t.Helper()
	for _, op := range seven() {
		c.do(t, ask{method: op.method, path: "/rest" + op.path, body: op.body}).fails(t, op.anonymous, codeOf(op))
	}
	for _, f := range forms(c.keys["admin"], c.login(t)) {
		for _, op := range seven() {
			if f.writes && op.method == http.MethodGet {
				continue
			}
			got := c.do(t, f.with(t, ask{method: op.method, path: "/rest" + op.path, body: op.body}))
			if got.status != op.status {
				t.Errorf("%s with %s: status %d, want %d: %.200s", op.name, f.name, got.status, op.status, got.body)
			}
		}
	}
}

func TestDuty_02_KeysInQueryAndBody(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		everyForm(t, h.client)
		// On every other path they stay where they are.
		for _, f := range forms(h.keys["admin"], h.login(t)) {
			if len(f.query) > 0 || len(f.head) > 0 && !f.writes {
				h.do(t, f.with(t, ask{method: "GET", path: "/rest/bug/4"})).ok(t, 200)
			}
			if len(f.query)+len(f.body) > 0 {
				h.do(t, f.with(t, ask{method: "POST", path: "/rest/bug/4/comment", body: `{"comment":"c"}`})).ok(t, 201)
			}
		}
	})
}

func TestDuty_05_HeaderCredentialsAreTurned(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	key, token := h.keys["admin"], h.login(t)
	for name, head := range map[string]http.Header{
		"Bugzilla_api_key": {"X-Bugzilla-Api-Key": {key}, "Authorization": {"Bearer " + key}}, // npm bugzilla sends both
		"Bugzilla_token":   {"X-Bugzilla-Token": {token}},
	} {
		want := map[string]string{"Bugzilla_api_key": key, "Bugzilla_token": token}[name]
		h.do(t, ask{method: "GET", path: "/rest/bug/4/attachment", header: head}).ok(t, 200)
		if got := tape.last(t).query(t)[name]; len(got) != 1 || got[0] != want {
			t.Errorf("a read has %s %q", name, got)
		}
		h.do(t, ask{method: "PUT", path: "/rest/bug/attachment/1", header: head, body: `{"summary":"s"}`}).ok(t, 200)
		write := tape.last(t)
		var body map[string]any
		if err := json.Unmarshal(write.body, &body); err != nil || body[name] != want {
			t.Errorf("a write has %s %v in its body (%v)", name, body[name], err)
		}
		if strings.Contains(write.uri, want) {
			t.Errorf("a write has the credential in its address, where the tracker's log shows it: %s", write.uri)
		}
		h.do(t, ask{method: "GET", path: "/rest/bug/4?include_fields=id", header: head}).ok(t, 200)
		if got := tape.last(t).query(t)[name]; len(got) != 1 || got[0] != want {
			t.Errorf("a read that passes has %s %q", name, got)
		}
	}
}

func TestDuty_05_AnEmptyHeaderIsNoKey(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	head := http.Header{"X-Bugzilla-Api-Key": {""}, "User-Agent": {"bugbot"}}
	for _, path := range []string{"/rest/bug/5/attachment", "/rest/bug/attachment/1", "/rest/flag_type/TestProduct", "/rest/bug/1"} {
		h.do(t, ask{method: "GET", path: path, header: head}).ok(t, 200)
		if query := tape.last(t).query(t); len(query) != 0 {
			t.Errorf("%s reached the tracker with %v", path, query)
		}
	}
	h.do(t, ask{method: "PUT", path: "/rest/bug/attachment/1", header: head, body: `{"summary":"s"}`}).fails(t, 401, 410)
}
