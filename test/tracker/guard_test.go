package tracker_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portico/test/tracker"
)

// TestURLBase checks the redirect of a wrong host and the demand for X-Forwarded-Proto.
func TestURLBase(t *testing.T) {
	f := start(t, tracker.Options{Dialect: tracker.DialectBMO, URLBase: "http://bugs.example/"})
	for _, path := range []string{"/rest/version", "/nothing"} {
		a := f.must("GET", path, "")
		if a.status != 302 || a.header.Get("Location") != "http://bugs.example/" {
			t.Errorf("%s: %d %q", path, a.status, a.header.Get("Location"))
		}
	}
	if a := f.must("GET", "/rest/version", "", "Host: bugs.example"); a.status != 200 {
		t.Errorf("with the right host: %d", a.status)
	}
	f = start(t, tracker.Options{Dialect: tracker.DialectHarmony, URLBase: "https://bugs.example/"})
	if a := f.must("GET", "/rest/version", "", "Host: bugs.example"); a.status != 500 {
		t.Errorf("https without X-Forwarded-Proto: %d", a.status)
	}
	if a := f.must("GET", "/rest/version", "", "Host: bugs.example", "X-Forwarded-Proto: https"); a.status != 200 {
		t.Errorf("https with X-Forwarded-Proto: %d", a.status)
	}
}

// TestRateLimit checks that the limit counts per address, blocks every path, and ends an hour after the last attempt.
func TestRateLimit(t *testing.T) {
	f := start(t, tracker.Options{Dialect: tracker.DialectBMO, RateLimit: 2, Quirks: []tracker.Quirk{tracker.QuirkReverseProxy}})
	const from, other = "X-Forwarded-For: 10.0.0.9, 10.0.0.1", "X-Forwarded-For: 10.0.0.2"
	for range 2 {
		f.must("GET", "/rest/bug/attachment/1", "", from).want(t, "1", "attachments", "1", "id")
	}
	f.must("GET", "/rest/bug/attachment/1", "", from).fails(t, 400, "32000")
	for _, path := range []string{"/rest/version", "/rest/bug/1?" + devKey, "/"} {
		if a := f.must("GET", path, "", from); a.status != 429 || a.body != nil || a.header.Get("Retry-After") != "" {
			t.Errorf("%s of a blocked address: %d %s", path, a.status, a.raw)
		}
	}
	for range 4 {
		f.must("GET", "/rest/bug/attachment/1?"+devKey, "", other).want(t, "1", "attachments", "1", "id")
	}
	for range 5 {
		f.must("GET", "/rest/bug/1?api_key=wrong", "", other).fails(t, 400, "306")
	}
	f.must("GET", "/rest/bug/1?api_key=wrong", "", other).fails(t, 400, "32000")
	if a := f.must("GET", "/rest/version", "", other); a.status != 429 {
		t.Errorf("after six bad keys: %d", a.status)
	}
}

func TestBlockEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tracker.New(tracker.Options{Dialect: tracker.DialectBMO, RateLimit: 1})
		defer s.Close()
		read := func() string {
			w := &recorder{header: http.Header{}}
			r := request(t, "GET", "/rest/bug/1", "")
			r.RemoteAddr = "10.0.0.1:99"
			s.ServeHTTP(w, r)
			return w.body.String()
		}
		for _, want := range []string{`"bugs"`, `"error"`, "Too Many Requests"} {
			if got := read(); !strings.Contains(got, want) {
				t.Errorf("%q is missing in %s", want, got)
			}
			time.Sleep(59 * time.Second)
		}
		time.Sleep(time.Hour - time.Minute)
		if got := read(); !strings.Contains(got, "Too Many Requests") {
			t.Errorf("the block ended early: %s", got)
		}
		time.Sleep(time.Hour)
		if got := read(); !strings.Contains(got, `"bugs"`) {
			t.Errorf("an hour after the last attempt: %s", got)
		}
	})
}

// TestLargeBody checks the errors for more than 16 MiB and that nothing is stored.
func TestLargeBody(t *testing.T) {
	big := `{"data":"` + strings.Repeat("YWFh", 1<<22) + `","file_name":"f","summary":"s","content_type":"text/plain"}`
	f := start(t, tracker.Options{Dialect: tracker.DialectBMO, Params: tracker.Params{MaxAttachmentSize: 1 << 20}})
	a := f.must("POST", "/rest/bug/7/attachment?"+devKey, big)
	a.want(t, "1", "error")
	a.want(t, "58", "code")
	if read := f.must("GET", "/rest/bug/7/attachment", ""); strings.Contains(read.raw, `"file_name":"f"`) {
		t.Errorf("the attachment was stored: %s", read.raw)
	}
	if a.status != 413 {
		t.Errorf("bmo: %d", a.status)
	}
	f = start(t, tracker.Options{Dialect: tracker.DialectHarmony, Params: tracker.Params{MaxAttachmentSize: 1 << 20}})
	f.must("POST", "/rest/bug/7/attachment?"+devKey, big).fails(t, 400, "32000")
}
