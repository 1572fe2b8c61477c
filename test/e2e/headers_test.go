package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// plain asks without any compression that net/http would ask for and undo by itself.
func (c *client) plain(t testing.TB, a ask, codings string) *reply {
	t.Helper()
	head := http.Header{"Accept-Encoding": {codings}}
	maps.Copy(head, a.header)
	a.header = head
	return c.do(t, a)
}

// unzipped gives the content of a compressed response.
func (r *reply) unzipped(t testing.TB) []byte {
	t.Helper()
	if got := r.header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("%s: Content-Encoding %q", r.ask.path, got)
	}
	reader, err := gzip.NewReader(bytes.NewReader(r.body))
	must(t, err)
	text, err := io.ReadAll(reader)
	must(t, err)
	return text
}

// TestCompression: large responses are compressed where the client takes that, and their entity tags work. The first request of a connection
// never takes the fast path, so that each client that closes its connection sees compressed flag types.
func TestCompression(t *testing.T) {
	t.Parallel()
	f := open(t, plan{program: true})
	tape := f.tape
	for i := range 120 { // so that the list of flag types is large, too
		f.post(t, "editor", "/rest/flag_type", fmt.Sprintf(`{"name":"n%d","description":"%s"}`, i, strings.Repeat("some words ", 12))).ok(t, 201)
	}
	for _, path := range []string{"/rest/bug/attachment/4", "/rest/flag_type/TestProduct"} {
		read := ask{method: "GET", path: path, user: "admin"}
		whole := f.plain(t, read, "identity").ok(t, 200)
		if length := whole.header.Get("Content-Length"); whole.header.Get("Content-Encoding") != "" || length != "" && length != fmt.Sprint(len(whole.body)) {
			t.Errorf("%s uncompressed: headers %v", path, whole.header)
		}
		short := f.plain(t, read, "br;q=1.0, gzip;q=0.8")
		if path == "/rest/bug/attachment/4" {
			if text := short.unzipped(t); len(text) != len(whole.body) || len(short.body) > len(text)*9/10 {
				t.Errorf("%s: %d bytes, compressed %d, uncompressed %d", path, len(text), len(short.body), len(whole.body))
			}
		}
		for _, got := range []*reply{whole, short} {
			if !strings.Contains(got.header.Get("Vary"), "Accept-Encoding") {
				t.Errorf("%s: Vary is %q", path, got.header["Vary"])
			}
			if compressed := got.header.Get("Content-Encoding") != ""; compressed != strings.HasPrefix(got.header.Get("Etag"), "W/") {
				t.Errorf("%s: compressed %v and the tag %s", path, compressed, got.header.Get("Etag"))
			}
		}
		for _, codings := range []string{"", "identity", "gzip;q=0", "br, deflate", "gzip;q=0, *"} {
			if got := f.plain(t, read, codings).ok(t, 200); got.header.Get("Content-Encoding") != "" {
				t.Errorf("%s: Accept-Encoding %q gives %q", path, codings, got.header.Get("Content-Encoding"))
			}
		}
	}
	if last := tape.last(t); last.header.Get("Accept-Encoding") == "gzip" {
		t.Error("the tracker is asked for gzip")
	}
	small := f.plain(t, ask{method: "GET", path: "/rest/bug/attachment/5"}, "gzip").ok(t, 200)
	if small.header.Get("Content-Encoding") != "" || strings.HasPrefix(small.header.Get("Etag"), "W/") {
		t.Errorf("a small response: headers %v", small.header)
	}
	for _, path := range []string{"/rest/bug/attachment/4", "/rest/flag_type/TestProduct"} {
		read := ask{method: "GET", path: path, header: http.Header{"Connection": {"close"}}}
		short := f.plain(t, read, "gzip")
		text, tag := short.unzipped(t), short.header.Get("Etag")
		whole := f.plain(t, read, "identity").ok(t, 200)
		if !strings.HasPrefix(tag, `W/"`) || len(text) != len(whole.body) {
			t.Errorf("%s: the tag is %s, %d bytes of %d", path, tag, len(text), len(whole.body))
		}
		for _, c := range []struct{ shown, codings string }{
			{tag, "gzip"}, {strings.TrimPrefix(tag, "W/"), "gzip"}, {strings.TrimPrefix(tag, "W/"), "identity"}, {`"other", ` + tag, "gzip"}, {"*", "gzip"},
		} {
			again := read
			again.header = http.Header{"Connection": {"close"}, "If-None-Match": {c.shown}}
			got := f.plain(t, again, c.codings)
			if got.status != http.StatusNotModified || len(got.body) > 0 || got.header.Get("Content-Encoding") != "" ||
				c.codings == "gzip" && !strings.Contains(got.header.Get("Vary"), "Accept-Encoding") || got.header.Get("Etag") == "" {
				t.Errorf("%s: If-None-Match %s with %s: status %d, headers %v", path, c.shown, c.codings, got.status, got.header)
			}
		}
		again := read
		again.header = http.Header{"Connection": {"close"}, "If-None-Match": {`W/"other"`}}
		if got := f.plain(t, again, "gzip"); got.status != 200 {
			t.Errorf("%s: another tag: status %d", path, got.status)
		}
	}
}

// With hide_keys no read of an operation has a credential in its request line.
func TestHiddenKeys(t *testing.T) {
	t.Parallel()
	f := open(t, plan{program: true, env: []string{"TRACKERS_MAIN_HIDE_KEYS=true", "CACHE_SCOPE=group"}})
	tape := f.tape
	token := f.login(t)
	before := len(tape.all())
	for _, one := range forms(f.keys["admin"], token) {
		if one.writes {
			continue
		}
		for _, path := range []string{
			"/rest/flag_type/SecretProduct", "/rest/flag_type/TestProduct/Comp%20B", "/rest/bug/4/attachment", "/rest/bug/attachment/2?exclude_fields=data",
		} {
			f.do(t, one.with(t, ask{method: "GET", path: path})).ok(t, 200)
		}
	}
	plain := open(t, plan{})
	for _, path := range []string{"/rest/bug/attachment/4", "/rest/flag_type/TestProduct"} {
		hidden, shown := f.get(t, "admin", path).ok(t, 200), plain.get(t, "admin", path).ok(t, 200)
		if path == "/rest/flag_type/TestProduct" && string(hidden.body) != string(shown.body) || len(hidden.body) != len(shown.body) {
			t.Errorf("%s: %d bytes with hidden keys and %d without", path, len(hidden.body), len(shown.body))
		}
	}
	seen := tape.all()[before:]
	if len(seen) == 0 {
		t.Fatal("nothing reached the tracker")
	}
	for _, one := range seen {
		if strings.Contains(one.uri, "Bugzilla_") || strings.Contains(one.uri, f.keys["admin"]) {
			t.Errorf("%s %s reached the tracker", one.method, one.uri)
		}
	}
	// Anonymous reads stay as they are.
	f.get(t, "", "/rest/bug/5/attachment").ok(t, 200)
	if last := tape.last(t); last.method != "GET" {
		t.Errorf("an anonymous read reached the tracker as %s %s", last.method, last.uri)
	}
}

// Which headers of the tracker reach the client (docs/divergences.md).
func TestTagsAndCookiesOfTheTracker(t *testing.T) {
	t.Parallel()
	f := open(t, plan{program: true})
	tape := f.tape
	const cookie = "Bugzilla_login_request_cookie"
	for _, op := range seven() {
		got := f.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).ok(t, op.status)
		tag, given := got.header.Get("Etag"), tape.last(t).given.Get("Etag")
		isFlagTypes := op.method == http.MethodGet && strings.HasPrefix(op.path, "/flag_type")
		switch {
		case isFlagTypes && (tag == given || !strings.HasPrefix(tag, `"`)), !isFlagTypes && tag != given:
			t.Errorf("%s: the tracker's tag is %q and the client's %q", op.name, given, tag)
		}
		refused := f.do(t, ask{method: op.method, path: "/rest" + op.path, body: op.body}).fails(t, op.anonymous, codeOf(op))
		if refused.header.Get("Etag") != "" || refused.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: an error has the headers %v", op.name, refused.header)
		}
	}
	if got := f.get(t, "", "/rest/bug/5/attachment").ok(t, 200).header.Get("Set-Cookie"); !strings.HasPrefix(got, cookie) {
		t.Errorf("an anonymous read of attachments sets the cookie %q", got)
	}
	if got := f.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200).header.Get("Set-Cookie"); got != "" {
		t.Errorf("an anonymous read of flag types sets the cookie %q", got)
	}
}
