package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
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
	must(t, err)
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

// TestPassthroughAddsNoType: net/http would guess the type of a response without one, and browsers would show as a page what the tracker does not call one.
func TestPassthroughAddsNoType(t *testing.T) {
	tracker, base := behind(t, "", nil)
	for _, want := range []string{"", "text/plain"} {
		tracker.response = func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = slices.DeleteFunc([]string{want}, func(kind string) bool { return kind == "" })
			_, _ = io.WriteString(w, "<html>")
		}
		if got := ask(t, "GET", base+"/attachment.cgi?id=1", ""); strings.Join(got.header["Content-Type"], "|") != want || got.body != "<html>" {
			t.Errorf("type %q became %q", want, got.header["Content-Type"])
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

// What a client claims about where it comes from counts only from a trusted proxy, and headers that CGI would take for another one never do.
func TestForwardedHeadersOfTrustedProxiesOnly(t *testing.T) {
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
		tracker.response = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/x", http.StatusFound)
		}
		request := newRequest(t, "GET", base+"/x.cgi", http.NoBody)
		for name, value := range map[string]string{
			"X-Custom": "x", "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "bugs.example.com", "Forwarded": "for=9.9.9.9",
		} {
			request.Header.Set(name, value)
		}
		for _, name := range slices.Concat(claims, never) {
			request.Header.Set(name, "x")
		}
		location := send(t, request).header.Get("Location")
		told := map[string]string{"X-Custom": "x", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": base[len("http://"):], "Forwarded": ""}
		if trusted {
			told = map[string]string{"X-Custom": "x", "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "bugs.example.com"}
		}
		if want := told["X-Forwarded-Proto"] + "://" + told["X-Forwarded-Host"] + "/x"; location != want {
			t.Errorf("trusted %v: Location %s, want %s", trusted, location, want)
		}
		for _, name := range claims {
			told[name] = map[bool]string{true: "x"}[trusted]
		}
		for _, name := range never {
			told[name] = ""
		}
		for name, want := range told {
			if got := tracker.last.Header.Get(name); got != want {
				t.Errorf("trusted %v: %s arrived as %q, want %q", trusted, name, got, want)
			}
		}
	}
}

func TestPassthroughGivesChunkedBodiesALength(t *testing.T) {
	dir := t.TempDir()
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.BlobDir, o.Limits.BlobMemory, o.Limits.Body = dir, 100, 100000
	})
	for _, path := range []string{"/rest/bug", "/jsonrpc.cgi"} {
		for _, size := range []int{0, 99, 100, 101, 70000} {
			body := strings.Repeat("b", size)
			request := newRequest(t, "POST", base+path, struct{ io.Reader }{strings.NewReader(body)})
			send(t, request).wantStatus(t, 200)
			if tracker.body != body || tracker.last.ContentLength != int64(size) || len(tracker.last.TransferEncoding) != 0 {
				t.Errorf("%s, %d bytes: %d bytes arrived with length %d", path, size, len(tracker.body), tracker.last.ContentLength)
			}
		}
	}
	// A client that sends more than twice the limit may be cut off before it has the response.
	for _, length := range []int64{-1, 150000} {
		request := newRequest(t, "POST", base+"/rest/bug", strings.NewReader(strings.Repeat("b", 150000)))
		request.ContentLength = length
		send(t, request).wantError(t, 413, "200413")
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 0 {
		t.Errorf("left behind: %v %v", files, err)
	}
}

// A response that breaks off has begun: xmlrpc.client of Python sends a request again if it gets none at all.
func TestBrokenPassthroughIsCut(t *testing.T) {
	tracker, base := behind(t, "", nil)
	for _, sent := range []int{1, 50000} {
		tracker.response = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, strings.Repeat("x", sent))
		}
		response, err := http.Post(base+"/xmlrpc.cgi", "text/xml", strings.NewReader("<x/>"))
		must(t, err)
		text, err := io.ReadAll(response.Body)
		if response.Body.Close(); err == nil || response.StatusCode != 200 {
			t.Errorf("the client took %d and %q for all", response.StatusCode, text)
		}
	}
}

// To a client of HTTP/1.0 a response without a length ends with its connection, so an empty one would look whole.
func TestBrokenPassthroughIsNoEmptyResponse(t *testing.T) {
	tracker, base := behind(t, "", nil)
	tracker.response = func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	k := dial(t, base)
	k.send(t, "GET /page.cgi HTTP/1.0\r\nHost: x\r\n\r\n")
	if text, err := io.ReadAll(k.reader); err != nil || len(text) > 0 {
		t.Errorf("%v; the client took %q for all", err, text)
	}
}

// While a client is still sending, no tracker is asked: it would hold one of the tracker's few slots. The interim response tells
// that Portico has begun to read.
func TestPassthroughUploadIsReadBeforeTheTrackerIsAsked(t *testing.T) {
	const size = 3 * spoolMemory
	asked, arrived := make(chan struct{}, 1), make(chan string, 1)
	_, base := behind(t, "", func(o *proxy.Options) {
		o.BlobDir = t.TempDir()
		o.Passthrough.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			asked <- struct{}{}
			text, err := io.ReadAll(r.Body)
			arrived <- string(text)
			return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, err
		})
	})
	client := dial(t, base)
	fmt.Fprintf(client, "POST /attachment.cgi HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
	if line, err := client.reader.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q %v", line, err)
	}
	if _, err := client.reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 0 {
		t.Error("the tracker was asked before the body was here")
	}
	body := strings.Repeat("b", size)
	_, _ = io.WriteString(client, body)
	client.response(t).wantStatus(t, 200)
	if got := <-arrived; got != body {
		t.Errorf("%d bytes arrived", len(got))
	}
}

// A large body lies in a file that has lost its name, so that nothing of it stays when the process is killed.
func TestStoredBodyHasNoName(t *testing.T) {
	dir, seen := t.TempDir(), -1
	_, base := behind(t, "", func(o *proxy.Options) {
		o.BlobDir = dir
		o.Passthrough.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			files, err := os.ReadDir(dir)
			seen = len(files)
			return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, err
		})
	})
	request := newRequest(t, "POST", base+"/attachment.cgi", struct{ io.Reader }{strings.NewReader(strings.Repeat("b", 8*spoolMemory))})
	send(t, request).wantStatus(t, 200)
	if seen != 0 {
		t.Errorf("%d files while the tracker was asked", seen)
	}
}

// spoolMemory is above the size from which bodies lie in files.
const spoolMemory = 64 << 10

// rewrittenCookies are cookies of a tracker below /bz/, and what clients get of them.
var rewrittenCookies = map[string]string{
	"a=1; path=/bz/; HttpOnly":                       "a=1; path=/; HttpOnly",
	"a=1;Path=/bz":                                   "a=1;Path=/",
	"a=1; path=/bz/admin; Secure":                    "a=1; path=/admin; Secure",
	"a=1; path=/bzip; path":                          "a=1; path=/bzip; path",
	"a=1; path=/":                                    "a=1; path=/",
	"a=/bz/; domain=bugs.example.com; path=/bz/":     "a=/bz/; path=/",
	"a=1; Domain=.example.com; SameSite=Lax":         "a=1; SameSite=Lax",
	"a=1; domain=other.example":                      "a=1",
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

// TestPassthroughGoesWhereItIsChosen moves reads to another tracker: everything about a request is that tracker's.
func TestPassthroughGoesWhereItIsChosen(t *testing.T) {
	moved, other := backendAt(t, "/new/")
	other.Names, other.Dialect = []string{"new.example"}, func(context.Context) mapping.Dialect { return mapping.Dialect{} }
	usual, base := behind(t, "/old/", func(o *proxy.Options) {
		target := o.Passthrough.Target
		o.Passthrough.Choose = func(write bool) *proxy.Target {
			if write {
				return &target
			}
			return &other
		}
	})
	send := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://new.example/new/x")
		w.WriteHeader(http.StatusSeeOther)
		_, _ = io.WriteString(w, r.Host)
	}
	usual.response, moved.response = send, send
	const link = "/editflagtypes.cgi?action=deactivate&id=3&api_key=moved" // it changes, whatever its method
	for _, c := range []struct {
		method, path, body   string
		header               []string
		reached, old         *backend
		wantTarget, location string
	}{
		{"GET", "/rest/version", "", []string{"X-BUGZILLA-API-KEY", "moved"}, moved, usual, "/new/rest/version?Bugzilla_api_key=moved", base + "/x"},
		{"GET", "/rest/version?api_key=moved", "", nil, moved, usual, "/new/rest/version?api_key=moved", base + "/x"},
		{"GET", link, "", nil, usual, moved, "/old" + link, "http://new.example/new/x"},
		{"POST", "/rest/version", "{}", []string{"X-BUGZILLA-API-KEY", "moved"}, usual, moved, "/old/rest/version", "http://new.example/new/x"},
	} {
		usual.last, moved.last = nil, nil
		response := ask(t, c.method, base+c.path, c.body, c.header...)
		if c.reached.last == nil || c.old.last != nil || c.reached.target != c.wantTarget {
			t.Errorf("%s %s %v reached the wrong tracker, or as %q", c.method, c.path, c.header, c.reached.target)
			continue
		}
		if got := response.header.Get("Location"); got != c.location || !strings.HasPrefix(response.body, "127.0.0.1:") {
			t.Errorf("%s %s leads to %s, want %s; Host was %s", c.method, c.path, got, c.location, response.body)
		}
	}
}

// TestAMappedKeyIsAllThatTheTargetSees of a caller's credentials. In a body they cannot be replaced.
func TestAMappedKeyIsAllThatTheTargetSees(t *testing.T) {
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.Keys = func(caller upstream.Caller) (upstream.Caller, error) {
			if caller.Credentials.APIKey != "" {
				caller.Credentials = upstream.Credentials{APIKey: "mapped"}
			}
			return caller, nil
		}
	})
	ask(t, "GET", base+"/rest/bug/1?x=1&Bugzilla_api_key=own&token=2", "", "Authorization", "Basic eA==", "Cookie", "Bugzilla_logincookie=x",
		"X-Bugzilla-Token", "3", "X-Bugzilla-Login", "l", "X-Bugzilla-Password", "p").wantStatus(t, 200)
	shown := tracker.last.Header
	for name, want := range map[string]string{
		"X-Bugzilla-Api-Key": "mapped", "Authorization": "", "Cookie": "", "X-Bugzilla-Token": "", "X-Bugzilla-Login": "", "X-Bugzilla-Password": "",
	} {
		if got := shown.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if tracker.target != "/rest/bug/1?x=1" {
		t.Errorf("the tracker got %s", tracker.target)
	}
	const rpc = `{"method":"User.get","params":[{"Bugzilla_api_%s":"own"}]}`
	ask(t, "POST", base+"/jsonrpc.cgi", fmt.Sprintf(rpc, "token"), "Cookie", "Bugzilla_logincookie=x").wantStatus(t, 200) // a page of the tracker
	for path, body := range map[string]string{"/rest/bug/1/comment": `{"api_key":"own"}`, "/jsonrpc.cgi": fmt.Sprintf(rpc, "key")} {
		tracker.last = nil
		refused := ask(t, "POST", base+path, body, "Content-Type", "application/json")
		if refused.status != 401 || refused.header.Get("Portico-Error") != "no-mapped-key" || tracker.last != nil ||
			!strings.Contains(refused.body, "neither change nor check") { // a key may be one that the tracker would take
			t.Errorf("%s: got %d %v %s; the tracker got %v", path, refused.status, refused.header, refused.body, tracker.last)
		}
	}
}

// What is held of a write to look for its credential counts for the memory that bodies share.
func TestPassingWritesShareMemory(t *testing.T) {
	pass := passTo(t, func(http.ResponseWriter, *http.Request) {})
	base := serve(t, proxy.Options{Passthrough: pass, Limits: proxy.Limits{Memory: 64 << 10}})
	for size, status := range map[int]int{1 << 10: 200, 200 << 10: 503} {
		if got := ask(t, "POST", base+"/rest/bug", strings.Repeat("a", size)); got.status != status {
			t.Errorf("%d bytes: %d %s", size, got.status, got.body)
		}
	}
}
