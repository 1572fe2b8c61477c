package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// docs/reference/clients.md, section 4: the duties that are about what passes and in which form.

// agent is the header of a client that names itself.
func agent(name string) http.Header { return http.Header{"User-Agent": {name}} }

func TestDuty_01_EveryOtherPathPassesUnchanged(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	for _, a := range []ask{
		{method: "GET", path: "/rest/version", header: agent(versionAsker)},
		{method: "GET", path: "/rest/bug/1?include_fields=id,summary&include_fields=status"},
		{method: "GET", path: "/rest/bug?id=1,2&product=TestProduct&Bugzilla_api_key=" + h.keys["dev"]},
		{method: "GET", path: "/rest/bug/1/comment"},
		{method: "GET", path: "/rest/bug/1/history"},
		{method: "GET", path: "/rest/field/bug/bug_status"},
		{method: "GET", path: "/rest/product_accessible"},
		{method: "GET", path: "/rest/product?type=accessible&names=A%2BB%20%26%20C"},
		{method: "GET", path: "/rest/user?ids=1"},
		{method: "GET", path: "/rest/user?match=dev&api_key=" + h.keys["admin"]},
		{method: "GET", path: "/rest/parameters"},
		{method: "GET", path: "/rest/valid_login?login=dev%40example.com&api_key=" + h.keys["dev"]},
		{method: "GET", path: "/rest/whoami"},
		{method: "POST", path: "/rest/bug/1/comment?api_key=" + h.keys["dev"], body: `{"comment": "as it is",  "is_private": false}`},
		{method: "PUT", path: "/rest/bug/1?Bugzilla_api_key=" + h.keys["dev"], body: `{"ids":[1],"summary":"as it is"}`},
		{method: "DELETE", path: "/rest/bug/1"},
		{method: "PATCH", path: "/rest/bug/1", body: `{}`},
		{method: "GET", path: "/rest/no/such/resource?a=%20+%2B;b&&c=%zz"},
		{method: "GET", path: "/show_bug.cgi?id=1"},
		{method: "GET", path: "/attachment.cgi?id=4"},
		{method: "GET", path: "/no/such/page"},
		{method: "GET", path: "/"},
		{method: "POST", path: "/rest/bug/1/comment", header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, body: "comment=a+b%26c"},
	} {
		got := h.do(t, a)
		passed := tape.last(t)
		_, wanted, _ := strings.Cut(a.path, "?")
		_, query, _ := strings.Cut(passed.uri, "?")
		if passed.method != a.method || query != wanted || string(passed.body) != a.body {
			t.Errorf("%s %s reached the tracker as %s %s with %q", a.method, a.path, passed.method, passed.uri, passed.body)
		}
		if got.status != passed.status || !bytes.Equal(got.body, passed.answer) {
			t.Errorf("%s %s: the tracker answered %d %.100q, the client got %d %.100q",
				a.method, a.path, passed.status, passed.answer, got.status, got.body)
		}
	}
}

func TestDuty_03_XMLRPCPasses(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	probe := h.do(t, ask{method: "HEAD", path: "/xmlrpc.cgi", header: agent("python-requests/2.28.1")})
	if probe.status != 200 {
		t.Errorf("HEAD /xmlrpc.cgi: status %d", probe.status)
	}
	body := xmlCall("Bug.add_attachment", `<member><name>Bugzilla_api_key</name><value><string>`+h.keys["dev"]+`</string></value></member>
		<member><name>ids</name><value><array><data><value><int>7</int></value></data></array></value></member>
		<member><name>data</name><value><base64>c29tZSBi
aW5hcnk=</base64></value></member>
		<member><name>file_name</name><value><string>b</string></value></member>
		<member><name>summary</name><value><string>by XML-RPC</string></value></member>
		<member><name>content_type</name><value><string>text/plain</string></value></member>`)
	made := h.xml(t, body)
	if !strings.Contains(string(made.body), "<int>") || !bytes.Equal(tape.last(t).body, []byte(body)) {
		t.Errorf("the call arrived as %.200s and was answered with %.200s", tape.last(t).body, made.body)
	}
	large := h.xml(t, xmlCall("Bug.attachments", `<member><name>attachment_ids</name><value><array><data><value><int>4</int></value></data></array></value></member>`))
	if len(large.body) < 1_300_000 || !bytes.Equal(large.body, tape.last(t).answer) {
		t.Errorf("an answer of %d bytes arrived with %d", len(tape.last(t).answer), len(large.body))
	}
}

// xmlCall writes an XML-RPC call with one struct.
func xmlCall(method, members string) string {
	return "<?xml version='1.0'?>\n<methodCall>\n<methodName>" + method + "</methodName>\n<params>\n<param>\n<value><struct>\n" +
		members + "\n</struct></value>\n</param>\n</params>\n</methodCall>\n"
}

// xml sends an XML-RPC call as PyBugz does.
func (h *environment) xml(t testing.TB, body string) *reply {
	t.Helper()
	r := h.do(t, ask{method: "POST", path: "/xmlrpc.cgi", body: body, header: http.Header{
		"Content-Type": {"text/xml"}, "User-Agent": {"Python-xmlrpc/3.11"}, "Accept-Encoding": {"gzip"},
	}})
	if r.status != 200 || strings.Contains(string(r.body), "<fault>") {
		t.Fatalf("POST /xmlrpc.cgi: status %d: %.300s", r.status, r.body)
	}
	return r
}

// codeOf gives the code that an operation of seven has for who is not logged in.
func codeOf(op operation) int {
	return map[string]int{"get flag types": 106, "get attachments of a bug": 102, "get one attachment": 304}[op.name] | map[bool]int{true: 410}[op.method != "GET"]
}

func TestDuty_17_NeverARedirect(t *testing.T) {
	bothWays(t, func(t *testing.T, h *environment) {
		for _, path := range []string{
			"/rest/flag_type/TestProduct/", "/rest/flag_type/", "/rest/bug/1/attachment/", "/rest/bug/attachment/1/", "/rest/", "/rest", "/rest.cgi",
			"//rest//bug/1/attachment", "/rest/./bug/2/../1/attachment", "/Rest/bug/1/attachment", "/rest/bug/attachment", "/rest/bug//1//attachment",
			"/xmlrpc.cgi/", "/index.cgi", "/", "",
		} {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE"} {
				if r := h.do(t, ask{method: method, path: path}); r.status >= 300 && r.status < 400 || r.status == 405 {
					t.Errorf("%s %s: status %d", method, path, r.status)
				}
			}
		}
		h.get(t, "", "//rest//bug/5/attachment").ok(t, 200)
		h.get(t, "", "/rest/bug/5/attachment/").refused(t, 404, 32614)
	})
}

func TestDuty_21_JSONRPCPasses(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	for _, body := range []string{
		`{"jsonrpc":"1.0","method":"Bug.get","params":[{"ids":[1]}],"id":"identifier"}`,
		`{"method" : "Bugzilla.version", "params": [], "id": 7 }`,
		`no JSON at all`,
	} {
		got := h.do(t, ask{method: "POST", path: "/jsonrpc.cgi", body: body, header: agent("unset/0")})
		passed := tape.last(t)
		if string(passed.body) != body || passed.length != int64(len(body)) || passed.chunked {
			t.Errorf("%s arrived as %s with the length %d", body, passed.body, passed.length)
		}
		if got.status != passed.status || !bytes.Equal(got.body, passed.answer) {
			t.Errorf("%s: answered %d %s, the client got %d %s", body, passed.status, passed.answer, got.status, got.body)
		}
	}
	h.do(t, ask{method: "GET", path: "/jsonrpc.cgi?method=Bugzilla.version"})
	if uri := tape.last(t).uri; uri != "/jsonrpc.cgi?method=Bugzilla.version" {
		t.Errorf("a GET reached the tracker as %s", uri)
	}
}

func TestDuty_18_NoWriteIsLostOrSentTwice(t *testing.T) {
	t.Parallel()
	h := open(t, plan{tracker: optionsWith("keepalive-drop")})
	const rounds = 25
	for i := range rounds {
		h.get(t, "", "/rest/bug/1/attachment?include_fields=id").ok(t, 200)
		h.post(t, "dev", "/rest/bug/7/attachment", upload(`"content_type":"text/plain"`)).ok(t, 201)
		h.put(t, "dev", "/rest/bug/attachment/1", fmt.Sprintf(`{"ids":[1],"summary":"round %d"}`, i)).ok(t, 200)
		h.post(t, "dev", "/rest/bug/7/comment", `{"comment":"by another path"}`).ok(t, 201)
	}
	done := map[string]int{}
	for _, operation := range h.writes() {
		done[operation]++
	}
	for _, operation := range []string{"attachment.create", "attachment.update", "comment.create"} {
		if done[operation] != rounds {
			t.Errorf("%s was executed %d times, want %d (all: %v)", operation, done[operation], rounds, done)
		}
	}
}
