package proxy_test

import (
	"net/http"
	"net/url"
	"testing"

	"portico/mapping"
	"portico/proxy"
)

// rewrittenCookies are cookies of a tracker below /bz/, and what clients get of them.
var rewrittenCookies = map[string]string{
	"a=1; path=/bz/; HttpOnly":                       "a=1; path=/; HttpOnly",
	"a=1;Path=/bz":                                   "a=1;Path=/",
	"a=1; path=/bz/admin; Secure":                    "a=1; path=/admin; Secure",
	"a=1; path=/bzip; path":                          "a=1; path=/bzip; path",
	"a=1; path=/":                                    "a=1; path=/",
	"a=/bz/; domain=bugs.example.com; path=/bz/":     "a=/bz/; path=/",
	"a=1; Domain=.example.com; SameSite=Lax":         "a=1; SameSite=Lax",
	"a=1; domain=ample.com":                          "a=1; domain=ample.com",
	"a=1; domain=other.example":                      "a=1; domain=other.example",
	"a=1; domain=127.0.0.1":                          "a=1; domain=127.0.0.1",
	"a=\"x\"; expires=Fri, 01-Jan-2038 00:00:00 GMT": "a=\"x\"; expires=Fri, 01-Jan-2038 00:00:00 GMT",
}

// A tracker's cookies say where they belong, and must come back through Portico, which is somewhere else. Those of the operations do so too, for
// the tracker that responded, which need not be the one that other paths go to.
func TestCookiesStayWithPortico(t *testing.T) {
	tracker, passing := behind(t, "/bz/", func(o *proxy.Options) { o.Passthrough.Names = []string{"bugs.example.com:8080"} })
	var cookie string
	tracker.response = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Set-Cookie", "first=1")
		w.Header().Add("Set-Cookie", cookie)
	}
	operations := responding(func() *mapping.Document {
		found := document(oneAttachment)
		found.Tracker = &url.URL{Scheme: "https", Host: "bugs.example.com:8080", Path: "/bz/"}
		found.Cookies = []string{"first=1", cookie}
		return found
	})
	_, operating := behind(t, "/old", func(o *proxy.Options) { o.Tracker = operations })
	for line, want := range rewrittenCookies {
		cookie = line
		for _, address := range []string{passing + "/index.cgi", operating + "/rest/bug/5/attachment"} {
			got := ask(t, "GET", address, "").header["Set-Cookie"]
			if len(got) != 2 || got[0] != "first=1" || got[1] != want {
				t.Errorf("%s: %s became %q, want %s", address, line, got, want)
			}
		}
	}
}
