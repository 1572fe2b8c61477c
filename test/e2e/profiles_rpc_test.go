package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Clients that speak XML-RPC, and those that read pages.

// session is a client with the headers that it sends on every request.
type session struct {
	*environment
	header http.Header
}

// headers makes a header of names and values.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// call makes an XML-RPC call; arguments are the members of its struct.
func (s session) call(t testing.TB, method string, members ...string) string {
	t.Helper()
	head := s.header.Clone()
	head.Set("Content-Type", "text/xml")
	r := s.client.do(t, ask{method: "POST", path: "/xmlrpc.cgi", body: xmlCall(method, strings.Join(members, "")), header: head})
	if r.status != 200 || strings.Contains(string(r.body), "<fault>") {
		t.Fatalf("%s: status %d: %.300s", method, r.status, r.body)
	}
	return string(r.body)
}

func xmlText(name, value string) string { return xmlMember(name, "<string>"+value+"</string>") }

func xmlIDs(name string, ids ...int) string {
	list := ""
	for _, id := range ids {
		list += fmt.Sprintf("<value><int>%d</int></value>", id)
	}
	return xmlMember(name, "<array><data>"+list+"</data></array>")
}

// attachmentsByRPC reads, makes and changes attachments with a key or a login in the struct.
func (s session) attachmentsByRPC(t testing.TB, credentials string) {
	t.Helper()
	if got := s.call(t, "Bug.attachments", credentials, xmlIDs("ids", 5)); !strings.Contains(got, "own.txt") {
		t.Errorf("the attachments of bug 5 are %.300s", got)
	}
	if got := s.call(t, "Bug.attachments", credentials, xmlIDs("attachment_ids", 1)); !strings.Contains(got, "<base64>") {
		t.Errorf("attachment 1 is %.300s", got)
	}
	made := s.call(t, "Bug.add_attachment", credentials, xmlIDs("ids", 7), xmlMember("data", "<base64>"+data+"</base64>"),
		xmlText("file_name", "f"), xmlText("summary", "by RPC"), xmlText("content_type", "text/plain"))
	id := regexp.MustCompile(`<int>(\d+)</int>`).FindStringSubmatch(made)
	if id == nil {
		t.Fatalf("no id in %s", made)
	}
	s.call(t, "Bug.update_attachment", credentials, xmlMember("ids", "<array><data><value><int>"+id[1]+"</int></value></data></array>"), xmlText("summary", "changed"))
	is(t, walk(t, s.attachment(t, "", id[1]), "summary"), `"changed"`)
}

func TestClient_PythonBugzillaXMLRPC(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for range 2 { // a bare host name: it probes twice, both times in vain or not at this path
		if probe := h.client.do(t, ask{method: http.MethodHead, path: "/xmlrpc.cgi", header: agent("python-requests/2.31.0")}); probe.status != 200 {
			t.Errorf("the probe is answered with %d", probe.status)
		}
	}
	s := session{h, headers("User-Agent", "python-bugzilla/3.2.0", "Accept-Encoding", "gzip")}
	if got := s.call(t, "Bugzilla.version"); !strings.Contains(got, "5.2") {
		t.Errorf("the version is %s", got)
	}
	s.attachmentsByRPC(t, xmlText("Bugzilla_api_key", h.keys["dev"]))
}

func TestClient_PyBugz(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	s := session{h, headers("User-Agent", "Python-xmlrpc/3.11")}
	s.attachmentsByRPC(t, xmlText("Bugzilla_api_key", h.keys["dev"]))
	s.attachmentsByRPC(t, xmlText("Bugzilla_login", "dev@example.com")+xmlText("Bugzilla_password", "password1"))
	s.call(t, "Bug.get", xmlIDs("ids", 1))
	s.call(t, "Bug.comments", xmlIDs("ids", 1))
}

func TestClient_BZClient(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cached: true})
	s := session{h, headers("User-Agent", "BZ::Client/4.4")}
	s.call(t, "Bugzilla.version")
	token := regexp.MustCompile(`\d+-\w+`).FindString(s.call(t, "User.login", xmlText("login", "editor@example.com"), xmlText("password", "password1")))
	credentials := xmlText("Bugzilla_token", token)
	s.call(t, "FlagType.get", credentials, xmlText("product", "TestProduct"))
	h.types(t, "", "TestProduct")
	made := s.call(t, "FlagType.create", credentials, xmlText("name", "by-rpc"), xmlText("description", "d"), xmlText("target_type", "attachment"))
	id := regexp.MustCompile(`<int>(\d+)</int>`).FindStringSubmatch(made)
	if id == nil {
		t.Fatalf("no id in %s", made)
	}
	h.types(t, "", "TestProduct").field(t, "by-rpc", "id")
	s.call(t, "FlagType.update", credentials, xmlMember("ids", "<array><data><value><int>"+id[1]+"</int></value></data></array>"), xmlText("description", "e"))
	is(t, h.types(t, "", "TestProduct").field(t, "by-rpc", "description"), `"e"`)
	s.attachmentsByRPC(t, xmlText("Bugzilla_api_key", h.keys["dev"]))
}

func TestClient_Libreport(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	s := session{h, headers("User-Agent", "libreport/2.17", "Authorization", "Bearer "+h.keys["dev"])}
	s.call(t, "Bugzilla.version")
	s.call(t, "Bug.add_attachment", xmlText("Bugzilla_api_key", h.keys["dev"]), xmlIDs("ids", 7), xmlMember("data", "<base64>"+data+"</base64>"),
		xmlText("file_name", "backtrace"), xmlText("summary", "File: backtrace"), xmlText("content_type", "text/plain"), xmlMember("minor_update", "<boolean>1</boolean>"))
	if got := tape.last(t); got.header.Get("Authorization") != "Bearer "+h.keys["dev"] || !strings.Contains(string(got.body), "minor_update") {
		t.Errorf("arrived with the header %q and %.300s", got.header.Get("Authorization"), got.body)
	}
}

func TestClient_JavaAndNETByXMLRPC(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	s := session{h, headers("User-Agent", "Apache XML RPC 3.1.3")}
	token := regexp.MustCompile(`\d+-\w+`).FindString(s.call(t, "User.login", xmlText("login", "dev@example.com"), xmlText("password", "password1")))
	s.attachmentsByRPC(t, xmlText("Bugzilla_token", token))
	// Bugzilla.NET comes with the cookies of its login.
	s.header.Set("Cookie", "Bugzilla_login=4; Bugzilla_logincookie=x")
	h.client.do(t, ask{method: "POST", path: "/xmlrpc.cgi", body: xmlCall("Bugzilla.version", ""), header: s.header})
	if got := tape.last(t).header.Get("Cookie"); got != "Bugzilla_login=4; Bugzilla_logincookie=x" {
		t.Errorf("the cookies arrived as %q", got)
	}
}

func TestClient_GitBz(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	head := headers("User-Agent", "git-bz", "Cookie", "Bugzilla_login=4; Bugzilla_logincookie=x")
	page := h.client.do(t, ask{method: "GET", path: "/show_bug.cgi?id=1&ctype=xml", header: head})
	if page.status != 200 || tape.last(t).uri != "/show_bug.cgi?id=1&ctype=xml" {
		t.Errorf("the page is answered with %d and was asked as %s", page.status, tape.last(t).uri)
	}
	body := "--b\r\nContent-Disposition: form-data; name=\"data\"; filename=\"f\"\r\nContent-Type: text/plain\r\n\r\n\x00\xff\r\n--b--\r\n"
	head.Set("Content-Type", "multipart/form-data; boundary=b")
	h.client.do(t, ask{method: "POST", path: "/attachment.cgi", body: body, header: head})
	if got := tape.last(t); string(got.body) != body || got.header.Get("Cookie") != head.Get("Cookie") || got.header.Get("Content-Type") != head.Get("Content-Type") {
		t.Errorf("the form arrived as %q with %v", got.body, got.header)
	}
	if got := h.client.do(t, ask{method: "GET", path: "/attachment.cgi?id=1", header: head}); string(got.body) != "hello public\n" {
		t.Errorf("attachment 1 is %q", got.body)
	}
}

// oneLine writes a call for a step.
func oneLine(call string) string { return strings.ReplaceAll(call, "\n", "") }
