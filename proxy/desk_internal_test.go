package proxy

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// Nothing of one request is seen by the next one at the same desk.
func TestDesksAreCleaned(t *testing.T) {
	d := newDesks().Get().(*desk)
	r := d.open([]byte("GET /a?x=y HTTP/1.1\r\nHost: one\r\nX-Bugzilla-Api-Key: secret\r\n\r\n"), "client")
	recordOf(r.Context()).Reason = "login"
	d.Header().Set("Set-Cookie", "secret")
	d.WriteHeader(http.StatusTeapot)
	_, _ = d.Write([]byte("secret"))
	d.declined = true
	d.sealed()
	r = d.open([]byte("GET /b HTTP/1.1\r\nHost: two\r\n\r\n"), "other")
	if len(r.Header) > 0 || r.Host != "two" || r.URL.String() != "/b" || r.RequestURI != "/b" || r.RemoteAddr != "other" || *recordOf(r.Context()) != (Record{}) {
		t.Errorf("got %+v of %+v", r, *recordOf(r.Context()))
	}
	if len(d.Header()) > 0 || d.status != 0 || d.declined {
		t.Errorf("got %+v", d)
	}
	_, _ = d.Write([]byte("fine"))
	if answer := string(d.sealed()); strings.Contains(answer, "secret") || !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("got %s", answer)
	}
}

// One huge answer does not stay in memory.
func TestDesksForgetHugeAnswers(t *testing.T) {
	d := newDesks().Get().(*desk)
	_, _ = d.Write(make([]byte, largestDesk))
	d.sealed()
	d.clean()
	if cap(d.body)+d.out.Cap() > largestDesk {
		t.Errorf("%d and %d bytes are kept", cap(d.body), d.out.Cap())
	}
}

// A field that could end the head is written as net/http writes it.
func TestDesksWriteFieldsAsNetHTTP(t *testing.T) {
	for _, header := range []http.Header{
		{"Etag": {"x"}, "Age": {"1"}},
		{"Etag": {"x\r\nEvil: y"}},
		{"Etag": {"x"}, "Other": {"1", "2"}},
		{"Age": {"1", "2"}},
	} {
		d := newDesks().Get().(*desk)
		d.header = header
		d.writeHeader()
		var want bytes.Buffer
		_ = header.Write(&want) // a buffer takes everything
		if d.out.String() != want.String() {
			t.Errorf("got %q, want %q", d.out.String(), want.String())
		}
	}
}

// A long upload is not kept to look for the end of a request in it.
func TestGivenIsBounded(t *testing.T) {
	var g given
	for range 1000 {
		g.add(make([]byte, 1000))
	}
	if cap(g.text) > 2*mostGiven || g.nothing() {
		t.Errorf("%d bytes are kept", cap(g.text))
	}
	g.over()
	if g.nothing() {
		t.Error("forgot that it does not know")
	}
}
