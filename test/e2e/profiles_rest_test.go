package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// Each test makes the requests of one legacy client, as docs/reference/clients.md, sections 1 and 2, describes them, and looks at the answers
// as that client does. Behind Portico stands a stock tracker.

// session is a client with the headers and parameters that it sends on every request.
type session struct {
	*environment
	header http.Header
	query  string
}

func (s session) do(t testing.TB, method, path, body string) *reply {
	t.Helper()
	if s.query != "" {
		path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + s.query
	}
	return s.client.do(t, ask{method: method, path: path, body: body, header: s.header.Clone()})
}

// headers makes a header of names and values.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// data is content in base64.
const data = "c29tZSBjb250ZW50Cg=="

func TestClient_PythonBugzillaREST(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		s := session{h, headers("User-Agent", "python-bugzilla/3.2.0", "Content-Type", "application/json", "Accept", "*/*", "Accept-Encoding", "identity"),
			"Bugzilla_api_key=" + h.keys["dev"]}
		if version := text(t, s.do(t, "GET", "/rest/version", "").ok(t, 200).at(t, "version")); !strings.HasPrefix(version, "5.") {
			t.Errorf("the version is %q", version)
		}
		s.do(t, "GET", "/rest/user?ids=1", "").ok(t, 200)
		s.do(t, "GET", "/rest/bug/1?include_fields=id,summary", "").ok(t, 200)
		list := s.do(t, "GET", "/rest/bug/5/attachment?exclude_fields=data", "").ok(t, 200)
		list.at(t, "attachments")
		is(t, list.at(t, "bugs", "5", 0, "is_obsolete"), `0`)
		is(t, s.do(t, "GET", "/rest/bug/attachment/11", "").ok(t, 200).at(t, "attachments", "11", "id"), `11`)
		made := s.do(t, "POST", "/rest/bug/7/attachment",
			`{"summary":"s","file_name":"f","data":"`+data+`","ids":["7"],"content_type":"text/plain","is_private":false}`).ok(t, 201)
		id := integer(t, made.at(t, "ids", 0)) // the command line formats it as a number
		s.do(t, "PUT", fmt.Sprint("/rest/bug/attachment/", id), fmt.Sprintf(`{"ids":[%d],"flags":[{"name":"review","status":"?"}]}`, id)).ok(t, 200)
		failed := s.do(t, "GET", "/rest/bug/99999/attachment", "").fails(t, 404, 101)
		if strings.Contains(string(failed.body), h.keys["dev"]) {
			t.Error("the error shows the key")
		}
	})
}

func TestClient_BugzillaCLI(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	s := session{h, headers("User-Agent", "python-bugzilla/3.2.0", "Content-Type", "application/json"), "Bugzilla_api_key=" + h.keys["dev"]}
	for _, command := range []func(){
		func() {
			s.do(t, "POST", "/rest/bug/7/attachment", `{"ids":["7"],"summary":"s","file_name":"f","data":"`+data+`","content_type":"text/plain","is_patch":true}`).ok(t, 201)
		},
		func() {
			list, _ := s.do(t, "GET", "/rest/bug/7/attachment", "").ok(t, 200).at(t, "bugs", "7").([]any)
			if len(list) != 1 || integer(t, walk(t, list[0], "is_obsolete")) != 0 {
				t.Errorf("bug 7 has %v", list)
			}
		},
		func() {
			is(t, s.do(t, "GET", "/rest/bug/attachment/5", "").ok(t, 200).at(t, "attachments", "5", "data"), `"eA=="`)
		},
	} {
		s.do(t, "GET", "/rest/version", "").ok(t, 200) // before every command
		command()
	}
}

// typed demands every field of an attachment with its type, as the npm package bugzilla does.
func typed(t testing.TB, one any) {
	t.Helper()
	for _, name := range []string{"id", "bug_id", "size", "is_private", "is_obsolete", "is_patch"} {
		integer(t, walk(t, one, name))
	}
	for _, name := range []string{"data", "file_name", "summary", "content_type", "creator"} {
		text(t, walk(t, one, name))
	}
	wantTime(t, walk(t, one, "creation_time"))
	wantTime(t, walk(t, one, "last_change_time"))
	flags, ok := walk(t, one, "flags").([]any)
	if !ok {
		t.Error("flags is no array")
	}
	for _, flag := range flags {
		integer(t, walk(t, flag, "id"))
		integer(t, walk(t, flag, "type_id"))
		for _, name := range []string{"name", "status", "setter", "creation_date", "modification_date"} {
			text(t, walk(t, flag, name))
		}
	}
}

func TestClient_NpmBugzilla(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		key := h.keys["dev"]
		byKey := headers("X-BUGZILLA-API-KEY", key, "Authorization", "Bearer "+key, "User-Agent", "axios/1.10.0", "Accept", "application/json")
		byToken := headers("X-BUGZILLA-TOKEN", h.login(t), "User-Agent", "axios/1.10.0")
		for _, head := range []http.Header{byKey, byToken} {
			s := session{h, head, ""}
			s.do(t, "GET", "/rest/version", "").ok(t, 200)
			for _, path := range []string{"/rest/bug/5/attachment", "/rest/bug/attachment/6"} {
				answer, _ := s.do(t, "GET", path, "").ok(t, 200).tree(t).(map[string]any)
				for _, kind := range []string{"bugs", "attachments"} {
					byID, ok := answer[kind].(map[string]any)
					if !ok {
						t.Fatalf("%s: %s is no object", path, kind)
					}
					for id, one := range byID {
						if n, err := strconv.Atoi(id); err != nil || strconv.Itoa(n) != id {
							t.Errorf("%q is no canonical integer", id)
						}
						list, isList := one.([]any)
						if !isList {
							list = []any{one}
						}
						for _, one := range list {
							typed(t, one)
						}
					}
				}
			}
			made := s.do(t, "POST", "/rest/bug/7/attachment", `{"ids":[7],"data":"`+data+`","file_name":"f","summary":"s","content_type":"text/plain"}`).ok(t, 201)
			id := integer(t, made.at(t, "ids", 0))
			change := s.do(t, "PUT", fmt.Sprint("/rest/bug/attachment/", id), `{"summary":"t","is_obsolete":true}`).ok(t, 200).at(t, "attachments", 0)
			for _, field := range []string{"summary", "is_obsolete"} {
				text(t, walk(t, change, "changes", field, "added"))
				text(t, walk(t, change, "changes", field, "removed"))
			}
		}
	})
}

func TestClient_NpmBz(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	login := url.Values{"login": {"dev@example.com"}, "password": {"password1"}}.Encode()
	for _, query := range []string{"api_key=" + h.keys["dev"], login, "token=" + h.login(t)} {
		s := session{h, headers("User-Agent", "node-XMLHttpRequest", "Accept", "application/json", "Content-Type", "application/json"), query}
		s.do(t, "GET", "/rest/bug/1", "").ok(t, 200)
		s.do(t, "GET", "/rest/bug/5/attachment", "").ok(t, 200).at(t, "bugs", "5", 0)
		made := s.do(t, "POST", "/rest/bug/7/attachment", `{"bug_id":7,"data":"`+data+`","file_name":"f","summary":"s","content_type":"text/plain"}`).ok(t, 201)
		id := integer(t, made.at(t, "ids", 0))
		s.do(t, "PUT", fmt.Sprint("/rest/bug/attachment/", id), `{"summary":"t"}`).ok(t, 200)
	}
	// An error that is no JSON ends this client's process.
	for _, path := range []string{"/rest/bug/99999/attachment", "/rest/bug/attachment/x", "/rest/no/such", "/rest/bug/4"} {
		if r := h.get(t, "", path); r.status < 400 {
			t.Errorf("%s: status %d", path, r.status)
		} else {
			r.at(t, "message")
		}
	}
}

func TestClient_Prow(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	key := h.keys["dev"]
	for name, s := range map[string]session{
		"bearer":             {h, headers("Authorization", "Bearer "+key, "User-Agent", "unset/0"), ""},
		"query":              {h, headers("User-Agent", "unset/0"), "api_key=" + key},
		"x-bugzilla-api-key": {h, headers("X-BUGZILLA-API-KEY", key, "User-Agent", "unset/0"), ""},
		"default":            {h, headers("X-BUGZILLA-API-KEY", key, "User-Agent", "component/v1"), "api_key=" + key},
	} {
		s.do(t, "GET", "/rest/bug/1", "").ok(t, 200)
		s.do(t, "GET", "/rest/bug?id=1", "").ok(t, 200)
		s.do(t, "GET", "/rest/bug/1/comment", "").ok(t, 200)
		s.do(t, "PUT", "/rest/bug/1", fmt.Sprintf(`{"summary":"by %s"}`, name)).ok(t, 200)
		s.do(t, "GET", "/rest/bug/99999", "").fails(t, 404, 101)
		if r := s.do(t, "POST", "/jsonrpc.cgi", `{"jsonrpc":"1.0","method":"Bug.get","params":[{"ids":[1]}],"id":"identifier"}`); r.status != 200 {
			t.Errorf("%s: /jsonrpc.cgi: status %d", name, r.status)
		}
	}
	session{h, nil, ""}.do(t, "GET", "/rest/bug/4", "").fails(t, 401, 102)
}

func TestClient_Libmozdata(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		agent := []string{"User-Agent", "bugbot", "Connection", "close", "X-Bugzilla-API-Key"}
		for _, key := range []string{"", h.keys["dev"]} {
			s := session{h, headers(append(agent, key)...), ""}
			s.do(t, "GET", "/rest/bug?id=5,10&include_fields=id", "").ok(t, 200)
			is(t, s.do(t, "GET", "/rest/bug/5/attachment?ids=10&ids=2&include_fields=id&include_fields=bug_id", "").ok(t, 200).tree(t),
				`{"bugs":{"5":[{"id":11,"bug_id":5}],"10":[{"id":13,"bug_id":10},{"id":14,"bug_id":10}],"2":[]},"attachments":{}}`)
			is(t, s.do(t, "GET", "/rest/bug/attachment/1?attachment_ids=5&include_fields=id", "").ok(t, 200).tree(t), `{"bugs":{},"attachments":{"1":{"id":1},"5":{"id":5}}}`)
			s.do(t, "GET", "/rest/bug/1/history", "").ok(t, 200)
		}
		s := session{h, headers(append(agent, h.keys["dev"])...), ""}
		is(t, s.do(t, "PUT", "/rest/bug/attachment/1", `{"is_obsolete":true}`).ok(t, 200).at(t, "attachments", 0, "id"), `1`)
	})
}

func TestClient_Bugsy(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	entered := h.client.do(t, ask{method: "GET", path: "/rest/login", header: headers("User-Agent", "Bugsy", "X-Bugzilla-Login", "dev@example.com", "X-Bugzilla-Password", "password1")})
	token := text(t, entered.ok(t, 200).at(t, "token"))
	for _, s := range []session{
		{h, headers("User-Agent", "Bugsy", "X-Bugzilla-API-Key", h.keys["dev"]), "Bugzilla_api_key=" + h.keys["dev"]},
		{h, headers("User-Agent", "Bugsy", "X-Bugzilla-Token", token), ""},
	} {
		s.do(t, "GET", "/rest/valid_login?login=dev@example.com", "").ok(t, 200)
		one, _ := s.do(t, "GET", "/rest/bug/attachment/5", "").ok(t, 200).at(t, "attachments", "5").(map[string]any)
		wantTime(t, one["creation_time"])
		body, err := json.Marshal(map[string]any{
			"file_name": one["file_name"], "summary": "by Bugsy", "content_type": one["content_type"], "comment": "",
			"is_patch": one["is_patch"], "is_private": one["is_private"], "is_obsolete": one["is_obsolete"], "flags": []any{},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.do(t, "PUT", "/rest/bug/attachment/5", string(body)).ok(t, 200)
		s.do(t, "POST", "/rest/bug/7/attachment", `{"ids":[7],"data":"`+data+`","file_name":"f","summary":"s","content_type":"text/plain","is_patch":false,"flags":[]}`).ok(t, 201)
		text(t, s.do(t, "GET", "/rest/bug/99999/attachment", "").fails(t, 404, 101).at(t, "message"))
	}
}

func TestClient_Bugbite(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, query := range []string{"Bugzilla_api_key=" + h.keys["dev"], "Bugzilla_login=dev%40example.com&Bugzilla_password=password1"} {
		s := session{h, headers("User-Agent", "bugbite/0.0.18"), query}
		s.do(t, "GET", "/rest/version", "").ok(t, 200)
		s.do(t, "GET", "/rest/field/bug", "").ok(t, 200)
		got := s.do(t, "GET", "/rest/bug/attachment/5?attachment_ids=10&attachment_ids=1", "").ok(t, 200)
		is(t, got.at(t, "attachments", "10", "data"), `null`) // a deleted one
		for _, id := range []string{"1", "5"} {
			typed(t, got.at(t, "attachments", id))
		}
		both := s.do(t, "GET", "/rest/bug/2/attachment?ids=10", "").ok(t, 200)
		is(t, both.at(t, "bugs", "2"), `[]`)
		is(t, both.at(t, "bugs", "10", 1, "id"), `14`)
		made := s.do(t, "POST", "/rest/bug/7/attachment",
			`{"ids":["7","8"],"data":"`+data+`","file_name":"f","summary":"s","content_type":"text/plain","comment":"","is_patch":false,"is_private":false}`).ok(t, 201)
		integer(t, made.at(t, "ids", 1))
		s.do(t, "PUT", "/rest/bug/attachment/1", `{"ids":["1"],"is_obsolete":false,"flags":[{"name":"review","status":"?"}]}`).ok(t, 200)
		s.do(t, "PUT", "/rest/bug/attachment/1", `{"ids":["1"],"flags":[{"name":"review","status":"X"}]}`).ok(t, 200)
	}
}

func TestClient_Bzr(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	key := h.keys["dev"]
	byHeader, byQuery := session{h, headers("X-BUGZILLA-API-KEY", key), ""}, session{h, nil, "Bugzilla_api_key=" + key}
	byHeader.do(t, "GET", "/rest/version", "").ok(t, 200)
	byHeader.do(t, "GET", "/rest/whoami", "").fails(t, 404, 32614) // a stock tracker has none
	for _, s := range []session{byHeader, byQuery} {
		is(t, s.do(t, "GET", "/rest/valid_login?login=dev%40example.com", "").ok(t, 200).at(t, "result"), `true`)
		s.do(t, "GET", "/rest/bug/5/attachment", "").ok(t, 200)
		s.do(t, "PUT", "/rest/bug/attachment/1", `{"ids":[1],"summary":"s"}`).ok(t, 200)
	}
}
