package tracker_test

import (
	"strings"
	"testing"

	"portico/test/tracker"
)

// TestJSONRPCReachesWhatRESTCannot: a product with slashes, and one with a non-ASCII name (tracker-behaviour.md section 1, Encoded characters).
func TestJSONRPCReachesWhatRESTCannot(t *testing.T) {
	f := start(t, tracker.Options{})
	for _, product := range []string{"Product/With/Slash", "Ünïcode 日本"} {
		a := f.must("POST", "/jsonrpc.cgi", `{"method":"FlagType.get","params":[{"product":"`+product+`"}],"id":7}`)
		a.want(t, "7", "id")
		a.want(t, nil, "error")
		a.want(t, "bug", "result", "bug", 0, "type")
	}
	a := f.must("POST", "/jsonrpc.cgi", `{"method":"FlagType.get","params":[{"product":"Nope"}],"id":"x"}`)
	a.want(t, "106", "error", "code")
	a.want(t, nil, "result")
	f.must("POST", "/jsonrpc.cgi", `{"method":"No.such","params":[{}],"id":1}`).want(t, "32601", "error", "code")
}

const xmlKey = `<member><name>Bugzilla_api_key</name><value><string>DevKey0000000000000000000000000000000000</string></value></member>`

func xmlCall(method, members string) string {
	return `<?xml version="1.0"?><methodCall><methodName>` + method + `</methodName><params><param><value><struct>` + members +
		`</struct></value></param></params></methodCall>`
}

// TestXMLRPC goes through what PyBugz and python-bugzilla do (docs/reference/clients.md).
func TestXMLRPC(t *testing.T) {
	f := start(t, tracker.Options{})
	call := func(method, members string) string {
		a := f.must("POST", "/xmlrpc.cgi", xmlCall(method, members), "Content-Type: text/xml")
		if a.status != 200 || a.header.Get("Content-Type") != "text/xml" {
			t.Fatalf("%s: %d %s", method, a.status, a.header)
		}
		return a.raw
	}
	contains := func(got string, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(got, p) {
				t.Errorf("no %s in %s", p, got)
			}
		}
	}
	if a := f.must("HEAD", "/xmlrpc.cgi", ""); a.status != 200 {
		t.Errorf("the probe got %d", a.status)
	}
	contains(call("Bugzilla.version", ""), "<name>version</name><value><string>5.2+</string>")
	contains(call("Bug.add_attachment", xmlKey+`<member><name>ids</name><value><array><data><value><int>7</int></value></data></array></value></member>
		<member><name>data</name><value><base64>aGVsbG8=
		</base64></value></member><member><name>file_name</name><value>f.txt</value></member>
		<member><name>summary</name><value><string>a &lt; b</string></value></member><member><name>is_private</name><value><boolean>0</boolean></value></member>
		<member><name>content_type</name><value><string>text/plain</string></value></member>`),
		"<name>ids</name><value><array><data><value><int>16</int></value></data></array>")
	contains(call("Bug.attachments", `<member><name>attachment_ids</name><value><array><data><value><int>16</int></value></data></array></value></member>`),
		"<base64>aGVsbG8=</base64>", "<string>a &lt; b</string>", "<name>is_private</name><value><int>0</int>", "<dateTime.iso8601>20")
	contains(call("Bug.update_attachment", xmlKey+`<member><name>ids</name><value><int>16</int></value></member>
		<member><name>is_obsolete</name><value><boolean>1</boolean></value></member>`), "<name>is_obsolete</name>", "<string>1</string>")
	contains(call("FlagType.get", `<member><name>product</name><value><string>Nope</string></value></member>`), "<fault>", "<int>106</int>")
	contains(f.must("POST", "/xmlrpc.cgi", "no XML").raw, "<fault>")
}

// TestPathsOfClients: everything that docs/reference/clients.md says they call besides the seven operations.
func TestPathsOfClients(t *testing.T) {
	f := start(t, tracker.Options{})
	get := func(path string) answer {
		t.Helper()
		a := f.must("GET", path, "")
		if a.status != 200 || a.body == nil {
			t.Errorf("GET %s: %d %s", path, a.status, a.raw)
		}
		return a
	}
	get("/rest/version").want(t, "5.2+", "version")
	token := get("/rest/login?login=dev@example.com&password=password1").at(t, "token").(string)
	get("/rest/user?ids=1&token="+token).want(t, "admin@example.com", "users", 0, "name")
	get("/rest/user/dev@example.com").want(t, "4", "users", 0, "id")
	get("/rest/valid_login?login=dev@example.com&"+devKey).want(t, true, "result")
	get("/rest/valid_login?login=plain@example.com&"+devKey).want(t, false, "result")
	get("/rest/bug/1").want(t, "Component A", "bugs", 0, "component")
	get("/rest/bug/alias-one?include_fields=id").want(t, "1", "bugs", 0, "id")
	if bugs := get("/rest/bug?id=1,4,5&include_fields=id").at(t, "bugs").([]any); len(bugs) != 2 {
		t.Errorf("a search sees %d bugs, want 2: bug 4 is secret", len(bugs))
	}
	get("/rest/product/TestProduct").want(t, "TestComponent", "products", 0, "components", 0, "name")
	get("/rest/product?type=accessible").want(t, "TestProduct", "products", 0, "name")
	get("/rest/product_accessible").want(t, "1", "ids", 0)
	get("/rest/extensions")
	get("/rest/parameters").want(t, "0", "parameters", "requirelogin")
	get("/rest/field/bug").want(t, "bug_severity", "fields", 0, "name")
	get("/rest/field/bug/bug_status").want(t, "CONFIRMED", "fields", 0, "values", 1, "name")
	get("/rest/bug/1/history").want(t, "1", "bugs", 0, "id")
	get("/rest/time")
	made := f.must("POST", "/rest/bug/7/comment?"+devKey, `{"comment":"said"}`)
	made.want(t, "26", "id")
	get("/rest/bug/7/comment").want(t, "said", "bugs", "7", "comments", 1, "text")
	f.must("GET", "/rest/whoami", "").fails(t, 404, "32614")
	f.must("GET", "/rest/bug/4", "").fails(t, 401, "102")
}

func TestPages(t *testing.T) {
	f := start(t, tracker.Options{})
	if a := f.must("GET", "/", ""); a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("the start page: %d %v", a.status, a.header)
	}
	a := f.must("GET", "/attachment.cgi?id=9", "")
	if a.raw != "\xff\x00\xfe\x80" || !strings.HasPrefix(a.header.Get("Content-Type"), "application/x-foo") {
		t.Errorf("the download: %q %v", a.raw, a.header)
	}
	if a := f.must("GET", "/attachment.cgi?id=2", ""); strings.Contains(a.raw, "hello") {
		t.Error("a private attachment was given away")
	}
	if a := f.must("GET", "/show_bug.cgi?id=7", ""); !strings.Contains(a.raw, "bug seven") {
		t.Errorf("the bug's page: %s", a.raw)
	}
}

// TestCollectionTrap: PUT on the attachments' collection edits bugs (tracker-behaviour.md section 1, Paths and methods).
func TestCollectionTrap(t *testing.T) {
	f := start(t, tracker.Options{})
	f.must("PUT", "/rest/bug/attachment?"+devKey, `{"ids":[7],"summary":"taken"}`).want(t, "taken", "bugs", 0, "changes", "summary", "added")
	f.must("GET", "/rest/bug/7", "").want(t, "taken", "bugs", 0, "summary")
}

// TestChangesOfBugs: fields, flags and comments of bugs, and the refusals that clients meet.
func TestChangesOfBugs(t *testing.T) {
	f := start(t, tracker.Options{})
	const plainKey = "api_key=PlainKey00000000000000000000000000000000"
	put := func(body string) answer { return f.must("PUT", "/rest/bug/7?"+devKey, body) }
	put(`{"status":"CLOSED"}`).fails(t, 404, "51")
	put(`{"status":"RESOLVED"}`).fails(t, 400, "121")
	put(`{"resolution":"FIXED"}`).fails(t, 400, "122")
	put(`{"flags":[{"name":"review","status":"?"}]}`).fails(t, 404, "51") // a type for attachments
	put(`{"comment":{"body":"secret","is_private":true}}`).fails(t, 401, "113")
	put(`{"status":"RESOLVED","resolution":"INVALID","flags":[{"name":"needinfo","status":"?"}],"comment":{"comment":"said"}}`).
		want(t, "needinfo?", "bugs", 0, "changes", "flagtypes.name", "added")
	bug := func(field string) any { return f.must("GET", "/rest/bug/7", "").at(t, "bugs", 0, field) }
	if bug("resolution") != "INVALID" || bug("is_open") != false || len(bug("flags").([]any)) != 1 {
		t.Errorf("the bug is %v, open %v, with the flags %v", bug("resolution"), bug("is_open"), bug("flags"))
	}
	put(`{"status":"CONFIRMED"}`).want(t, "INVALID", "bugs", 0, "changes", "resolution", "removed")
	put(`{"product":"4242","component":"7"}`).want(t, "4242", "bugs", 0, "changes", "product", "added")
	f.must("PUT", "/rest/flag_type/2?api_key=EditorKey0000000000000000000000000000000", `{"inclusions":["TestProduct"]}`).want(t, "2", "flagtypes", 0, "id")
	if flags := bug("flags").([]any); len(flags) != 0 {
		t.Errorf("flags of a type that is not for the product any more: %v", flags)
	}
	f.must("PUT", "/rest/bug/7?"+plainKey, `{"summary":"taken"}`).fails(t, 401, "115")
	f.must("PUT", "/rest/bug/7?"+plainKey, `{"comment":{"body":"all may comment"}}`).want(t, "7", "bugs", 0, "id")
	f.must("GET", "/rest/bug/7/comment", "").want(t, "said", "bugs", "7", "comments", 1, "text")
}
