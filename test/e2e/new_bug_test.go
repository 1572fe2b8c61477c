package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"portico/test/process"
)

// printedKey is the API key that the reference tracker prints for a user.
func printedKey(t *testing.T, p *process.Process, login string) string {
	t.Helper()
	line := regexp.MustCompile(regexp.QuoteMeta(login) + ` +(\S{40})\n`).FindStringSubmatch(p.Out.String())
	if line == nil {
		t.Fatalf("no key of %s in %q", login, p.Out.String())
	}
	return line[1]
}

// TestAFiledBugTakesAnAttachment files a bug with a key that the tracker prints, as clients do over REST, XML-RPC and JSON-RPC,
// and attaches a file to it.
func TestAFiledBugTakesAnAttachment(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	p, base := process.Tracker(t, address, "--seed", "demo")
	front := startFacade(t, base)
	key := printedKey(t, p, "developer@demo.example")
	const fields = `"product":"WebShop","component":"Search/Ranking","version":"unspecified","summary":"new","description":"d"`
	text := func(name, value string) string { return xmlMember(name, "<string>"+value+"</string>") }
	calls := map[string]ask{
		"REST": {method: http.MethodPost, path: "/rest/bug?Bugzilla_api_key=" + url.QueryEscape(key), body: "{" + fields + "}",
			header: http.Header{"Content-Type": {"application/json"}}},
		"JSON-RPC": {method: http.MethodPost, path: "/jsonrpc.cgi", body: `{"id":1,"method":"Bug.create","params":[{` + fields + `,"Bugzilla_api_key":"` + key + `"}]}`,
			header: http.Header{"Content-Type": {"application/json"}}},
		"XML-RPC": {method: http.MethodPost, path: "/xmlrpc.cgi", header: http.Header{"Content-Type": {"text/xml"}},
			body: xmlCall("Bug.create", text("Bugzilla_api_key", key)+text("product", "WebShop")+text("component", "Accounts")+
				text("version", "unspecified")+text("summary", "new")+text("description", "d"))},
	}
	for name, call := range calls {
		made := front.do(t, call)
		id := regexp.MustCompile(`("id":|<name>id</name><value><int>)(\d\d+)`).FindSubmatch(made.body)
		if made.status != http.StatusOK || id == nil {
			t.Fatalf("%s: %d %s", name, made.status, made.body)
		}
		path := fmt.Sprintf("/rest/bug/%s/attachment?api_key=%s", id[2], key)
		attached := front.do(t, ask{method: http.MethodPost, path: path, header: http.Header{"Content-Type": {"application/json"}},
			body: `{"data":"aGk=","file_name":"f.txt","summary":"s","content_type":"text/plain"}`})
		if attached.status != http.StatusCreated {
			t.Errorf("%s: attach to bug %s: %d %s", name, id[2], attached.status, attached.body)
		}
		if read := front.do(t, ask{method: http.MethodGet, path: path}); !strings.Contains(string(read.body), `"f.txt"`) {
			t.Errorf("%s: bug %s has no attachment: %s", name, id[2], read.body)
		}
	}
}

// TestTheTrackersOwnAddressAndLimits starts the program with the flags that BMO's configuration stands behind.
func TestTheTrackersOwnAddressAndLimits(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	_, base := startTracker(t, address, "--dialect", "bmo", "--urlbase", "http://bugs.example/", "--rate-limit", "2", "--quirk", "reverse-proxy")
	tracker := &client{base: base, keys: keys(t)}
	if moved := tracker.get(t, "", "/rest/version"); moved.status != http.StatusFound || moved.header.Get("Location") != "http://bugs.example/" {
		t.Errorf("for another host: %d %v", moved.status, moved.header)
	}
	_, base = startTracker(t, process.FreeAddress(t), "--dialect", "bmo", "--rate-limit", "2", "--quirk", "reverse-proxy")
	tracker = &client{base: base, keys: keys(t)}
	from := func(client string) *reply {
		return tracker.do(t, ask{method: http.MethodGet, path: "/rest/bug/attachment/1", header: http.Header{"X-Forwarded-For": {client}}})
	}
	for range 2 {
		from("10.0.0.1").ok(t, http.StatusOK)
	}
	from("10.0.0.1").fails(t, http.StatusBadRequest, 32000)
	if blocked := from("10.0.0.1"); blocked.status != http.StatusTooManyRequests {
		t.Errorf("a blocked address got %d", blocked.status)
	}
	from("10.0.0.2").ok(t, http.StatusOK)
}
