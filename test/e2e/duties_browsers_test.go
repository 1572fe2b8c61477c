package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// docs/reference/clients.md duty 19: cookies, addresses and browsers.

func TestDuty_19_CookiesPassPerClient(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	for _, path := range []string{"/rest/bug/5/attachment", "/rest/bug/attachment/1", "/rest/bug/1"} {
		for _, cookie := range []string{"jar=one; Bugzilla_login_request_cookie=x", "jar=two", ""} {
			head := http.Header{}
			if cookie != "" {
				head.Set("Cookie", cookie)
			}
			got := h.do(t, ask{method: "GET", path: path, header: head})
			if sent := tape.last(t).header.Get("Cookie"); sent != cookie {
				t.Errorf("%s: the client sent the cookie %q and the tracker got %q", path, cookie, sent)
			}
			if given := tape.last(t).given.Values("Set-Cookie"); !slices.Equal(got.header.Values("Set-Cookie"), given) {
				t.Errorf("%s: the tracker gave the cookies %q and the client got %q", path, given, got.header.Values("Set-Cookie"))
			}
		}
	}
}

func TestDuty_19_TheClientsAddressGoesOn(t *testing.T) {
	t.Parallel()
	h, tape := recorded(t, plan{})
	for _, path := range []string{"/rest/login?login=admin%40example.com&password=adminpass1A%21&restrict_login=true", "/rest/bug/5/attachment", "/rest/bug/1"} {
		h.get(t, "", path).ok(t, 200)
		if from := tape.last(t).header.Get("X-Forwarded-For"); from != "127.0.0.1" {
			t.Errorf("%s: the tracker is told the address %q", path, from)
		}
	}
	// What a client says of itself does not count.
	h.do(t, ask{method: "GET", path: "/rest/bug/1", header: http.Header{"X-Forwarded-For": {"192.0.2.7"}}}).ok(t, 200)
	if from := tape.last(t).header.Get("X-Forwarded-For"); strings.Contains(from, "192.0.2.7") {
		t.Errorf("the tracker is told the address %q", from)
	}
}

// What a client gets for its Accept is what the tracker would have sent, in all forms but one: what is refused with a weight of 0
// is not sent (docs/divergences.md).
func TestAcceptMeansWhatItMeansToTheTracker(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	direct := &client{base: h.behind.String(), keys: h.keys}
	items := []string{"text/html", "application/json", "x/y", "*/*", "TEXT/HTML", "text/html ", "a text/javascript", "garbage"}
	weights := []string{"", ";q=.9", ";q=.95", ";q=0.5", ";q=1", "; q=1.0", ";level=1;q=0.7", ";q= 0.3", ";Q=0.3", ";q=10.5", ";q=1.", ";xq=0.9995"}
	accepts := []string{"", ",", "/", "x/y, text/html, application/json;q=1.0", "x/y,x/y,application/json, text/html;q=0.9985, text/javascript;q=0.9975"}
	for i, first := range items {
		for k, weight := range weights {
			second := items[(i+k+1)%len(items)] + weights[(5*i+7*k)%len(weights)]
			accepts = append(accepts, first+weight, first+weight+", "+second, "application/json,"+second+","+first+weight)
		}
	}
	pages := 0
	for _, accept := range accepts {
		call := ask{method: "GET", path: "/rest/bug/attachment/1?include_fields=id", header: http.Header{"Accept": {accept}}}
		want := direct.do(t, call).header.Get("Content-Type")
		if got := h.do(t, call).header.Get("Content-Type"); got != want {
			t.Errorf("Accept %q: the tracker sends %s, Portico %s", accept, want, got)
		}
		if strings.HasPrefix(want, "text/html") {
			pages++
		}
	}
	if pages < 30 || pages > len(accepts)-30 {
		t.Errorf("%d of %d answers are pages, which tells little", pages, len(accepts))
	}
}
