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

	"portico/test/tracker"
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
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRequests_LargeResponsesAreCompressed(t *testing.T) {
	t.Parallel()
	f, tape := through(t, tracker.Options{})
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
}

// The first request of a connection never takes the fast path, so that each of these clients sees compressed flag types.
func TestRequests_TagsOfCompressedResponses(t *testing.T) {
	t.Parallel()
	f, _ := through(t, tracker.Options{})
	for i := range 120 {
		f.post(t, "editor", "/rest/flag_type", fmt.Sprintf(`{"name":"n%d","description":"%s"}`, i, strings.Repeat("some words ", 12))).ok(t, 201)
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
