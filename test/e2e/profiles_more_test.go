package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestClient_Mylyn(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	agent := headers("User-Agent", "Jakarta Commons-HttpClient/3.1", "Accept", "application/json", "Content-Type", "application/json")
	s := session{h, agent, "Bugzilla_api_key=" + h.keys["dev"]}
	for _, path := range []string{"/rest.cgi/version", "/rest.cgi/field/bug", "/rest.cgi/product?type=accessible", "/rest.cgi/parameters", "/rest.cgi/bug/1"} {
		s.do(t, "GET", path, "").ok(t, 200)
	}
	list := s.do(t, "GET", "/rest.cgi/bug/5/attachment?exclude_fields=data", "").ok(t, 200)
	wantTime(t, list.at(t, "bugs", "5", 0, "creation_time"))
	text(t, list.at(t, "bugs", "5", 0, "creator"))
	write := session{h, agent, ""}
	for _, credentials := range []string{
		`"Bugzilla_api_key":"` + h.keys["dev"] + `"`, `"Bugzilla_login":"dev@example.com","Bugzilla_password":"password1"`,
	} {
		body := `{"ids":[7],"data":"` + data + `","file_name":"f","summary":"s","content_type":"text/plain","comment":"c","is_patch":false,"is_private":false,` + credentials + `}`
		if made := write.do(t, "POST", "/rest.cgi/bug/7/attachment", body); made.status != http.StatusCreated {
			t.Errorf("a create is answered with %d: %s", made.status, made.body)
		}
	}
	refused := write.do(t, "POST", "/rest.cgi/bug/7/attachment", `{"ids":[7],"Bugzilla_api_key":"`+h.keys["dev"]+`"}`)
	if refused.status != http.StatusBadRequest || !strings.HasPrefix(string(refused.body), `{"error":`) {
		t.Errorf("a refusal is %d and begins with %.20s", refused.status, refused.body)
	}
}

func TestClient_Perceval(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, query := range []string{"api_key=" + h.keys["dev"], "token=" + h.login(t)} {
		s := session{h, headers("User-Agent", "Perceval/1.0"), query}
		s.do(t, "GET", "/rest/version", "").ok(t, 200)
		s.do(t, "GET", "/rest/bug?order=changeddate&limit=5", "").ok(t, 200)
		got := s.do(t, "GET", "/rest/bug/5/attachment?ids=5&ids=2&ids=10&exclude_fields=data", "").ok(t, 200)
		for _, bug := range []string{"5", "2", "10"} {
			if _, ok := got.at(t, "bugs", bug).([]any); !ok {
				t.Errorf("bug %s has no list", bug)
			}
		}
		s.do(t, "GET", "/rest/bug/5/comment?ids=2", "").ok(t, 200)
		s.do(t, "GET", "/rest/bug/5/history?ids=2", "").ok(t, 200)
	}
}

func TestClient_Bzexport(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, query := range []string{"api_key=" + h.keys["dev"], "token=" + h.login(t)} {
		s := session{h, headers("User-Agent", "bzexport", "Accept", "application/json", "Content-Type", "application/json"), query}
		s.do(t, "GET", "/rest/user?match=granter", "").ok(t, 200)
		made := s.do(t, "POST", "/rest/bug/7/attachment", `{"ids":[7],"data":"`+data+`","encoding":"base64","file_name":"f","summary":"s","content_type":"text/plain",
			"is_patch":true,"flags":[{"name":"review","requestee":"granter@example.com","status":"?","type_id":1,"new":true}]}`).ok(t, 201)
		id := integer(t, made.at(t, "ids", 0))
		h.holds(t, id, "review?(granter@example.com)")
		is(t, s.do(t, "PUT", fmt.Sprint("/rest/bug/attachment/", id), `{"is_obsolete":true,"comment":""}`).ok(t, 200).at(t, "attachments", 0, "changes", "is_obsolete", "added"), `"1"`)
	}
}

func TestClient_DrKonqi(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	s := session{h, headers("User-Agent", "DrKonqi"), ""}
	s.do(t, "GET", "/rest/version", "").ok(t, 200)
	login := url.Values{"login": {"dev@example.com"}, "password": {"password1"}, "restrict_login": {"true"}}.Encode()
	s.query = "token=" + text(t, s.do(t, "GET", "/rest/login?"+login, "").ok(t, 200).at(t, "token"))
	s.do(t, "GET", "/rest/product/TestProduct", "").ok(t, 200)
	s.do(t, "GET", "/rest/field/bug/rep_platform", "").ok(t, 200)
	integer(t, s.do(t, "POST", "/rest/bug/7/attachment", `{"ids":["7"],"data":"`+data+`","file_name":"crash","summary":"s","content_type":"text/plain","comment":"a+b"}`).
		ok(t, 201).at(t, "ids", 0))
	s.do(t, "POST", "/rest/bug/99999/attachment", upload(`"content_type":"text/plain"`)).fails(t, 404, 101)
}

func TestClient_BzDeck(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	asked := h.client.do(t, ask{method: "OPTIONS", path: "/rest/bug/attachment/5", header: headers("Origin", "https://deck.example",
		"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "content-type,x-bugzilla-api-key")})
	if !strings.Contains(asked.header.Get("Access-Control-Allow-Headers"), "x-bugzilla-api-key") || asked.status != 200 {
		t.Errorf("the preflight is answered with %d %v", asked.status, asked.header)
	}
	s := session{h, headers("Origin", "https://deck.example", "X-Bugzilla-API-Key", h.keys["dev"], "Accept", "application/json"), ""}
	s.do(t, "GET", "/rest/bug/attachment/5", "").ok(t, 200)
	if r := s.do(t, "PUT", "/rest/bug/attachment/5", `{"summary":"s"}`).ok(t, 200); r.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Error("the browser may not read the answer")
	}
	s.do(t, "GET", "/rest/field/bug", "").ok(t, 200)
}

func TestClient_CurlScriptsForFlagTypes(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		s := session{h, headers("User-Agent", "curl/8.5.0", "Accept", "*/*", "Content-Type", "application/json"), "api_key=" + h.keys["editor"]}
		s.do(t, "GET", "/rest/flag_type/TestProduct/Component%20A", "").ok(t, 200)
		made := s.do(t, "POST", "/rest/flag_type", `{"name":"qa","description":"checked","target_type":"attachment","cc_list":["qa@example.com"],
			"inclusions":{"TestProduct":["Comp B"]},"sortkey":2}`).ok(t, 201)
		id := integer(t, made.at(t, "flag_id"))
		s.do(t, "PUT", fmt.Sprint("/rest/flag_type/", id), `{"ids":[1],"description":"new"}`).ok(t, 200)
		is(t, s.do(t, "GET", "/rest/flag_type/TestProduct", "").ok(t, 200).field(t, "qa", "description"), `"new"`)
	})
}

// curl sends the type of a form where a script says nothing else; the raw tracker then finds no fields.
func TestClient_CurlWithoutAContentType(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	s := session{h, headers("User-Agent", "curl/8.5.0", "Content-Type", "application/x-www-form-urlencoded"), "api_key=" + h.keys["editor"]}
	s.do(t, "POST", "/rest/flag_type", `{"name":"qa","description":"a+b & c=d; 100%25"}`).ok(t, 201)
	is(t, h.types(t, "", "TestProduct").field(t, "qa", "description"), `"a+b & c=d; 100%25"`)
	s.do(t, "PUT", "/rest/flag_type/qa", ` {"is_active":false,"inclusions":{"TestProduct":["Comp B"]}}`).ok(t, 200)
	h.lists(t, "TestProduct/Component%20A", "qa", false)
	s.do(t, "POST", "/rest/bug/7/attachment", upload(`"content_type":"text/plain"`)).ok(t, 201)
	s.do(t, "PUT", "/rest/bug/attachment/16", `{"summary":"by curl"}`).ok(t, 200)
}

func TestClient_OtherREST(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	// jira-bugzilla-integration, webkitbugspy, bugzilla-mcp: other paths, with a key in a header or in the query.
	session{h, headers("x-bugzilla-api-key", h.keys["dev"]), ""}.do(t, "GET", "/rest/bug/1", "").ok(t, 200)
	session{h, headers("x-bugzilla-api-key", h.keys["dev"]), ""}.do(t, "GET", "/rest/whoami", "").fails(t, 404, 32614)
	session{h, nil, "login=dev%40example.com&password=password1"}.do(t, "GET", "/rest/bug/1/comment", "").ok(t, 200)
	// moz-phab: a header of its own.
	session{h, headers("X-PHABRICATOR-TOKEN", "ph"), ""}.do(t, "GET", "/rest/whoami", "")
	if got := tape.last(t).header.Get("X-Phabricator-Token"); got != "ph" {
		t.Errorf("the header arrived as %q", got)
	}
}
