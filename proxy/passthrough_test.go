package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"portico/proxy"
)

// backend is the tracker behind a passthrough: it keeps the last request, and responses as a test says.
type backend struct {
	mu       sync.Mutex
	last     *http.Request
	body     string
	target   string
	response http.HandlerFunc
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	b.last, b.body, b.target = r, string(text), r.RequestURI
	response := b.response
	b.mu.Unlock()
	if response != nil {
		response(w, r)
	}
}

// backendAt starts a backend below path, and gives it as a target.
func backendAt(t *testing.T, path string) (*backend, proxy.Target) {
	t.Helper()
	tracker := &backend{}
	server := httptest.NewServer(tracker)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return tracker, proxy.Target{Base: address, Transport: transport}
}

// behind starts a backend below path and a Server before it.
func behind(t *testing.T, path string, change func(*proxy.Options)) (*backend, string) {
	t.Helper()
	tracker, target := backendAt(t, path)
	options := proxy.Options{Passthrough: proxy.Passthrough{Target: target, Prefixes: []string{"/"}}}
	if change != nil {
		change(&options)
	}
	return tracker, serve(t, options)
}

// passTo lets everything pass to a handler.
func passTo(t *testing.T, handler http.HandlerFunc) proxy.Passthrough {
	t.Helper()
	tracker, target := backendAt(t, "")
	tracker.response = handler
	return proxy.Passthrough{Target: target, Prefixes: []string{"/"}}
}

func TestPassthroughKeepsTheRequest(t *testing.T) {
	tracker, base := behind(t, "", nil)
	tracker.response = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Set-Cookie", "a=1; path=/")
		w.Header().Add("Set-Cookie", "b=2; path=/")
		w.Header().Set("X-Request-Id", "theirs")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}
	response := ask(t, "POST", base+"//x/../show%2Fbug.cgi/%41%20b?id=1;x=%zz&y=a+b&api_key=K", "some body",
		"Content-Type", "text/weird", "Cookie", "c=3", "X-Custom", "kept", "Accept", "text/html", "User-Agent", "agent",
		"Connection", "X-Hop, Upgrade, close", "X-Hop", "gone", "Te", "trailers", "Keep-Alive", "x", "Proxy-Authorization", "x", "Upgrade", "websocket",
		"Idempotency-Key", "k", "X-Idempotency-Key", "k", "X-Request-Id", "mine",
		"X-HTTP-Method-Override", "PUT", "X-HTTP-Method", "PUT", "X-Method-Override", "PUT")
	if response.status != http.StatusTeapot || response.body != "short and stout" || len(response.header["Set-Cookie"]) != 2 ||
		!slices.Equal(response.header["X-Request-Id"], []string{"mine"}) {
		t.Errorf("got %+v", response)
	}
	got := tracker.last
	if got.Method != "POST" || tracker.target != "/show%2Fbug.cgi/A%20b?id=1;x=%zz&y=a+b&api_key=K" || tracker.body != "some body" || got.ContentLength != 9 {
		t.Errorf("%s %s %q", got.Method, tracker.target, tracker.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/weird", "Cookie": "c=3", "X-Custom": "kept", "Accept": "text/html", "User-Agent": "agent", "X-Request-Id": "mine",
		"X-Hop": "", "Keep-Alive": "", "Proxy-Authorization": "", "Upgrade": "", "Idempotency-Key": "", "X-Idempotency-Key": "",
		"X-Http-Method-Override": "", "X-Http-Method": "", "X-Method-Override": "",
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": strings.TrimPrefix(base, "http://"),
	} {
		if have := got.Header.Get(name); have != want {
			t.Errorf("%s is %q, want %q", name, have, want)
		}
	}
}

func TestPassthroughPrefixes(t *testing.T) {
	for _, c := range []struct {
		prefixes []string
		path     string
		want     int
	}{
		{nil, "/", 404}, {nil, "/rest/version", 404}, {[]string{"/"}, "/x", 200}, {[]string{"/xmlrpc.cgi"}, "/xmlrpc.cgi", 200},
		{[]string{"/xmlrpc.cgi"}, "/xmlrpc.cgi/x", 200}, {[]string{"/xmlrpc.cgi"}, "/xmlrpc.cgi2", 404}, {[]string{"/xmlrpc.cgi"}, "/jsonrpc.cgi", 404},
		{[]string{"/rest/"}, "/rest/version", 200}, {[]string{"/rest"}, "/rest/version", 200}, {[]string{"/rest"}, "/%72est/version", 200},
	} {
		_, base := behind(t, "", func(o *proxy.Options) { o.Passthrough.Prefixes = c.prefixes })
		if response := ask(t, "GET", base+c.path, ""); response.status != c.want {
			t.Errorf("%v %s: %d", c.prefixes, c.path, response.status)
		}
	}
}

func TestRedirectsStayWithPortico(t *testing.T) {
	tracker, base := behind(t, "/bz/", func(o *proxy.Options) { o.Passthrough.Names = []string{"bugs.example.com"} })
	own := base[len("http://"):]
	for location, want := range map[string]string{
		"TRACKER/bz/show_bug.cgi?id=1#c2":   base + "/show_bug.cgi?id=1#c2",
		"TRACKER/bz":                        base + "/",
		"TRACKER/elsewhere":                 "TRACKER/elsewhere",
		"http://bugs.example.com/bz/a%2Fb":  base + "/a%2Fb",
		"http://bugs.example.com:80/bz/x":   base + "/x",
		"https://bugs.example.com/bz/x":     base + "/x",
		"http://bugs.example.com:8080/bz/x": "http://bugs.example.com:8080/bz/x",
		"https://other.example/bz/":         "https://other.example/bz/",
		"//bugs.example.com/bz/x":           base + "/x",
		"/bz/index.cgi":                     "/index.cgi",
		"index.cgi?x=1":                     "index.cgi?x=1",
		"mailto:x@example.com":              "mailto:x@example.com",
		"http://[":                          "http://[",
	} {
		var host string
		tracker.mu.Lock()
		tracker.response = func(w http.ResponseWriter, r *http.Request) {
			host = "http://" + r.Host
			w.Header().Set("Location", strings.Replace(location, "TRACKER", host, 1))
			w.WriteHeader(http.StatusFound)
		}
		tracker.mu.Unlock()
		response := ask(t, "GET", base+"/x", "")
		wanted := strings.Replace(want, "TRACKER", host, 1)
		if got := response.header.Get("Location"); response.status != 302 || got != wanted {
			t.Errorf("%s became %s, want %s (%s)", location, got, wanted, own)
		}
	}
}

func TestForwardedHeadersOfTrustedProxiesOnly(t *testing.T) {
	header := []string{"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "bugs.example.com", "Forwarded", "for=9.9.9.9"}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/x", http.StatusFound)
	}
	tracker, base := behind(t, "", nil)
	tracker.response = redirect
	response := ask(t, "GET", base+"/", "", header...)
	if got := tracker.last.Header; got.Get("X-Forwarded-For") != "127.0.0.1" || got.Get("X-Forwarded-Proto") != "http" || got.Get("Forwarded") != "" {
		t.Errorf("got %v", got)
	}
	if got := response.header.Get("Location"); got != base+"/x" {
		t.Errorf("Location %s", got)
	}
	tracker, base = behind(t, "", func(o *proxy.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	tracker.response = redirect
	response = ask(t, "GET", base+"/", "", header...)
	if got := tracker.last.Header; got.Get("X-Forwarded-For") != "1.2.3.4" || got.Get("X-Forwarded-Proto") != "https" || got.Get("X-Forwarded-Host") != "bugs.example.com" {
		t.Errorf("got %v", got)
	}
	if got := response.header.Get("Location"); got != "https://bugs.example.com/x" {
		t.Errorf("Location %s", got)
	}
}

// Other headers that name the client count only from a trusted proxy, and those that CGI would take for another header never do.
func TestClaimsOfClientsAreRemoved(t *testing.T) {
	claims := []string{
		"X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Scheme", "X-Forwarded-Server", "X-Forwarded-Ssl", "X-Forwarded-User",
		"X-Real-IP", "X-Client-IP", "True-Client-IP",
	}
	never := []string{"Proxy", "X_Forwarded_For", "X-Real_ip"}
	for _, trusted := range []bool{false, true} {
		tracker, base := behind(t, "", func(o *proxy.Options) {
			if trusted {
				o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
			}
		})
		request, err := http.NewRequest("GET", base+"/x.cgi", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Custom", "x")
		for _, name := range slices.Concat(claims, never) {
			request.Header.Set(name, "x")
		}
		send(t, request).wantStatus(t, 200)
		if tracker.last.Header.Get("X-Custom") == "" {
			t.Error("a header that means nothing was dropped")
		}
		for _, name := range claims {
			if got := tracker.last.Header.Get(name) != ""; got != trusted {
				t.Errorf("trusted %v: %s arrived: %v", trusted, name, got)
			}
		}
		for _, name := range never {
			if tracker.last.Header.Get(name) != "" {
				t.Errorf("trusted %v: %s arrived", trusted, name)
			}
		}
	}
}
