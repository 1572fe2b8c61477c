package admin_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"portico/cache"
	"portico/proxy/admin"
	"portico/proxy/admin/view"
	"portico/upstream/journal"
	"portico/upstream/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// contains checks that a page says all of it.
func contains(t *testing.T, body string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open starts an admin listener on a real socket.
func open(t *testing.T, options admin.Options) (*admin.Server, string) {
	t.Helper()
	if options.Metrics == nil {
		options.Metrics = admin.NewMetrics()
	}
	state := options.Status
	options.Status = func() (s admin.Status) {
		if state != nil {
			s = state()
		}
		s.Alarm, s.Traffic = options.Metrics.Alarm(), options.Metrics.Traffic()
		return s
	}
	if options.Looked == nil {
		options.Looked = func() {}
	}
	options.Unready = func() string { return "" }
	handler := admin.New(options)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return handler, server.URL
}

// look sends one request and gives status, header and body.
func look(t *testing.T, method, url string, header ...string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, nil)
	must(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, response.Header, string(text)
}

func TestHealth(t *testing.T) {
	server, base := open(t, admin.Options{Token: "secret"})
	want := func(path string, status int) {
		t.Helper()
		if got, _, body := look(t, "GET", base+path); got != status {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
	want("/livez", 200)
	want("/readyz", 503)
	server.SetReady(true)
	want("/readyz", 200)
	server.SetReady(false)
	want("/readyz", 503)
	want("/livez", 200)
	want("/status", 401)
}

func TestStatusAndOverview(t *testing.T) {
	state := admin.Status{Version: "1.0", Trackers: map[string]admin.TrackerStatus{"main": {Dialect: "<bmo>"}}}
	looked := 0
	server, base := open(t, admin.Options{
		Looked: func() { looked++ }, Metrics: admin.NewMetrics(), Status: func() admin.Status { return state },
		Pages: []admin.Page{{Path: "/canary", Title: "Canary", Handler: http.NotFoundHandler()}, {Path: "/hidden", Handler: http.NotFoundHandler()}},
	})
	if _, _, body := look(t, "GET", base+"/"); !strings.Contains(body, "starting or draining") {
		t.Errorf("before it is ready: %s", body)
	}
	server.SetReady(true)
	status, header, body := look(t, "GET", base+"/status")
	if status != 200 || header.Get("Content-Type") != "application/json; charset=utf-8" || !strings.Contains(body, `"dialect": "\u003cbmo\u003e"`) {
		t.Errorf("%d %s", status, body)
	}
	status, header, body = look(t, "GET", base+"/")
	contains(t, body, "<span class=\"state\">ready</span>", "<th scope=\"row\">Version</th><td>1.0</td>", "&lt;bmo&gt;",
		`<a href="/canary">Canary</a>`, `<a href="/metrics">`)
	if status != 200 || strings.Contains(body, "/hidden") || header.Get("Content-Security-Policy") == "" || header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", status, header)
	}
	look(t, "GET", base+"/metrics")
	if status, _, _ := look(t, "GET", base+"/nope"); status != 404 || looked != 5 {
		t.Errorf("/nope: %d; it was looked at %d times", status, looked)
	}
	if look(t, "GET", base+"/readyz"); looked != 5 {
		t.Error("a health check counts as a look")
	}
}

func TestToken(t *testing.T) {
	_, base := open(t, admin.Options{Token: "secret", Metrics: admin.NewMetrics()})
	for _, c := range []struct {
		authorization string
		want          int
	}{
		{"", 401}, {"Bearer wrong", 401}, {"Bearer", 401}, {"Bearer secret", 200}, {"bearer secret", 200}, {"Bearer secret2", 401},
		{"Basic dXNlcjpzZWNyZXQ=", 200}, {"Basic c2VjcmV0Og==", 401},
	} {
		for _, path := range []string{"/", "/status", "/metrics"} {
			if got, _, _ := look(t, "GET", base+path, "Authorization", c.authorization); got != c.want {
				t.Errorf("%s with %q: %d", path, c.authorization, got)
			}
		}
	}
	if _, header, _ := look(t, "GET", base+"/"); !strings.HasPrefix(header.Get("Www-Authenticate"), "Basic ") {
		t.Error("a browser would not ask for the token")
	}
	for _, path := range []string{"/openapi.yaml", "/openapi-admin.yaml", "/assets/%2e%2e/openapi.yaml", "/assets/..%2fopenapi.yaml", "/assets/../openapi.yaml"} {
		if status, _, _ := look(t, "GET", base+path); status == http.StatusOK {
			t.Errorf("%s needs no token", path)
		}
	}
	for _, path := range []string{"/openapi.yaml", "/openapi-admin.yaml"} {
		described, err := os.ReadFile("." + path)
		must(t, err)
		if status, _, body := look(t, "GET", base+path, "Authorization", "Bearer secret"); status != http.StatusOK || body != string(described) {
			t.Errorf("%s: %d, %d bytes", path, status, len(body))
		}
	}
}

func TestPageWithASlash(t *testing.T) {
	_, base := open(t, admin.Options{Pages: []admin.Page{{Path: "/canary", Handler: http.NotFoundHandler()}}})
	for path, want := range map[string]int{"/canary/": http.StatusMovedPermanently, "/canary/x/": http.StatusNotFound} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		must(t, err)
		response, err := http.DefaultTransport.RoundTrip(request)
		must(t, err)
		_ = response.Body.Close()
		if to := response.Header.Get("Location"); response.StatusCode != want || want == http.StatusMovedPermanently && to != "/canary" {
			t.Errorf("%s: status %d to %q", path, response.StatusCode, to)
		}
	}
}

func TestChanges(t *testing.T) {
	changes := 0
	page := admin.Page{Path: "/phases", Title: "Phases", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { changes++ })}
	_, base := open(t, admin.Options{Pages: []admin.Page{page}})
	_, guarded := open(t, admin.Options{Pages: []admin.Page{page}, Token: "secret"})
	for _, c := range []struct {
		base, method string
		header       []string
		want         int
	}{
		{base, "POST", nil, 200},
		{base, "POST", []string{"Origin", base}, 200},
		{base, "POST", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{base, "POST", []string{"Origin", "http://evil.example"}, 403},
		{base, "POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{base, "POST", []string{"Host", "evil.example", "Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}, 403},
		{base, "POST", []string{"Host", "portico:9080"}, 200},
		{base, "POST", []string{"Host", "[::1]:9080"}, 200},
		{base, "POST", []string{"Host", "[::ffff:127.0.0.1]"}, 200},
		{base, "GET", []string{"Sec-Fetch-Site", "cross-site"}, 200},
		{base, "GET", []string{"Host", "evil.example:9080"}, 403},
		{base, "HEAD", []string{"Host", "evil.example:9080"}, 403},
		{guarded, "GET", []string{"Authorization", "Bearer secret", "Host", "portico.example.com"}, 200},
		{guarded, "POST", nil, 401},
		{guarded, "POST", []string{"Authorization", "Bearer secret", "Host", "portico.example.com"}, 200},
		{guarded, "POST", []string{"Authorization", "Bearer secret", "Origin", "http://evil.example"}, 403},
	} {
		before := changes
		got, _, _ := look(t, c.method, c.base+"/phases/next", c.header...)
		if got != c.want || (changes > before) != (c.want == 200) {
			t.Errorf("%s %v: %d, want %d", c.method, c.header, got, c.want)
		}
	}
}

// A request without the token gets its response whether its body comes or not.
func TestStrangersBodyIsNotWaitedFor(t *testing.T) {
	_, base := open(t, admin.Options{Token: "secret"})
	client, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	must(t, err)
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(client, "POST /status HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(client), nil)
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized || !response.Close {
		t.Errorf("%d, close %v", response.StatusCode, response.Close)
	}
}

// Where certificates alone are accepted, an empty token is not.
func TestCertificatesWithoutAToken(t *testing.T) {
	_, base := open(t, admin.Options{Certificates: true})
	for _, header := range [][]string{nil, {"Authorization", "Bearer "}, {"Authorization", "Basic Og=="}, {"Authorization", "Bearer x"}} {
		if got, _, _ := look(t, "GET", base+"/status", header...); got != 401 {
			t.Errorf("%v: %d", header, got)
		}
	}
	if got, _, _ := look(t, "GET", base+"/livez"); got != 200 {
		t.Errorf("health: %d", got)
	}
}

// TestPagesStayOutOfCachesAndFrames checks the headers that each response has, with and without a token.
func TestPagesStayOutOfCachesAndFrames(t *testing.T) {
	_, base := open(t, admin.Options{Token: "secret"})
	for _, header := range [][]string{nil, {"Authorization", "Bearer secret"}} {
		_, got, _ := look(t, "GET", base+"/", header...)
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		} {
			if got.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, got.Get(name), want)
			}
		}
		if policy := got.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("the policy is %q", policy)
		}
	}
}

// greeting is a page that shows its path.
func greeting(body string, live bool) http.Handler {
	middle := view.New(fstest.MapFS{"html/page.html": {Data: []byte(body)}}, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admin.Show(w, r, admin.Sheet{Status: http.StatusTeapot, Title: "A <b>", Templates: middle, Body: "page.html", Data: r.URL.Path, Live: live})
	})
}

func TestFrame(t *testing.T) {
	_, base := open(t, admin.Options{Token: "secret", Metrics: admin.NewMetrics(), Pages: []admin.Page{
		{Path: "/canary", Title: "Canary", Handler: greeting("<h1>{{.}}</h1>", false)}, {Path: "/can", Title: "Can", Handler: http.NotFoundHandler()},
	}})
	status, header, body := look(t, "GET", base+"/canary/x<y", "Authorization", "Bearer secret")
	if status != http.StatusTeapot || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d %v", status, header)
	}
	contains(t, body, "<title>A &lt;b&gt; · Portico</title>", "<h1>/canary/x&lt;y</h1>", `<a href="/canary" aria-current="page">Canary</a>`, `<a href="/can">Can</a>`, `<a href="/">Status</a>`)
	if strings.Contains(body, "refresh") {
		t.Error("a page that is not to be left open offers to load itself")
	}
	for path, kind := range map[string]string{"/assets/style.css": "text/css; charset=utf-8", "/assets/page.js": "text/javascript; charset=utf-8"} {
		status, header, content := look(t, "GET", base+path)
		if status != 200 || header.Get("Content-Type") != kind || content == "" || !strings.Contains(body, `="`+path+`"`) {
			t.Errorf("%s: %d %v", path, status, header)
		}
	}
}

func TestPageThatLoadsItself(t *testing.T) {
	_, base := open(t, admin.Options{})
	for query, want := range map[string]string{
		"?refresh=10": `<meta http-equiv="refresh" content="10">`, "?refresh=1&x=%22": `<meta http-equiv="refresh" content="10">`, "": "",
	} {
		_, _, body := look(t, "GET", base+"/"+query)
		if strings.Contains(body, "http-equiv") != (want != "") || !strings.Contains(body, want) {
			t.Errorf("%q: %s", query, body)
		}
	}
	_, _, body := look(t, "GET", base+"/?x=1&refresh=10")
	if !strings.Contains(body, `<a href="/">Stop reloading</a>`) {
		t.Errorf("one cannot stop it: %s", body)
	}
}

func TestPageThatCannotBeShown(t *testing.T) {
	_, base := open(t, admin.Options{Pages: []admin.Page{{Path: "/x", Title: "X", Handler: greeting("half {{.Missing}}", false)}}})
	if status, _, body := look(t, "GET", base+"/x"); status != 500 || strings.Contains(body, "half") {
		t.Errorf("%d %s", status, body)
	}
}

// The first page says in words what each member of the status means.
func TestStatusInWords(t *testing.T) {
	at := time.Date(2026, 11, 21, 17, 30, 0, 0, time.UTC)
	state := admin.Status{
		Started: at, Primary: "main", NeedRestart: []string{"primary"},
		Trackers: map[string]admin.TrackerStatus{
			"main": {URL: "http://a/", Serves: true, Dialect: "bmo", InUse: 3, Slots: 64, Breakers: []transport.Status{
				{Breaker: "read", State: transport.Open, Since: at, Cause: "it is <gone>", History: []transport.Change{{At: at, From: transport.Closed, To: transport.Open, Reason: "connect"}}},
				{Breaker: "write", State: transport.Closed},
			}},
			"a-new": {Problem: "it redirects", Dialect: "bmo", DialectPinned: true, TrackerVersion: "5.2"},
		},
		Cache: &cache.Status{Redis: true, Undelivered: true, LocalItems: 2}, Canary: &admin.CanaryStatus{Candidate: "next", Sample: .5},
		Switchover: &admin.SwitchoverStatus{Source: "admin", Killed: true, Undelivered: "no store", Rules: []admin.RuleStatus{
			{Rule: "all", Reads: "new", Writes: "old", GoingBack: journal.Outlook{State: journal.OutlookDrain, Drain: 1200, Seconds: 60}},
		}},
		Journal: &journal.Status{Paused: true, Pending: 1200, Lag: 600},
	}
	_, base := open(t, admin.Options{Status: func() admin.Status { return state }})
	_, _, body := look(t, "GET", base+"/")
	contains(t, body, "2026-11-21 17:30:00 UTC", "<code>primary</code>", "bmo, assumed until", "bmo, as of version 5.2", "3 of at most 64", "the candidate; it serves no client",
		"reads are refused since", "it is &lt;gone&gt;", "closed → open, reason connect", "writes reach the tracker", "it redirects",
		"noticed late", "one has not reached Redis", "about 2 responses", "not served: no read of flag types has failed lately", "50 % of requests, next with main",
		"reads new, writes old", "going back is safe once 1,200 writes are copied, in about 60 s", "everything goes to main", "only this process knows: no store",
		"an operator", "paused", "1,200, the oldest for 10 min")
	if strings.Index(body, "Tracker main") > strings.Index(body, "Tracker a-new") {
		t.Errorf("the primary is not the first tracker: %s", body)
	}
	state = admin.Status{Cache: &cache.Status{Embedded: true, TrackerSick: true, LocalItems: 1}}
	_, _, body = look(t, "GET", base+"/")
	contains(t, body, "not in use, since it does not respond as it should; it runs in this process", "no other process shares", "all have reached", "served, since the tracker fails", "about 1 response<")
}

// fakeCaches is a CacheView.
type fakeCaches struct {
	away  error
	purge func(product string) error
}

func (fakeCaches) Lookup(_ context.Context, product, component string) ([]cache.Item, error) {
	return []cache.Item{{Product: product, Component: component}}, nil
}

func (f fakeCaches) LookupKey(context.Context, string) ([]cache.Item, error) { return nil, f.away }

func (f fakeCaches) Purge(_ context.Context, product string) error { return f.purge(product) }

// TestPurge checks that exactly the named items are purged, and that an unclear request is refused.
func TestPurge(t *testing.T) {
	var purged []string
	view := fakeCaches{purge: func(product string) error {
		purged = append(purged, product)
		return nil
	}}
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct{ query, kind, body, want string }{
		{"", "", "", "everything"},
		{"", form, "", "everything"},
		{"?product=P", "", "", "P"},
		{"", form, "product=P", "P"},
		{"?product=A%26B", form, "", "A&B"},
		{"?product=P", form, "product=P", ""},
		{"?product=P&product=Q", "", "", ""},
		{"?product=", "", "", ""},
		{"", form, "product=", ""},
		{"?Product=P", "", "", ""},
		{"?product=P&component=C", "", "", ""},
		{"?product=%zz", "", "", ""},
		{"", "application/json", `{"product":"P"}`, ""},
		{"?product=P", "application/json", `{"product":"Q"}`, ""},
		{"", "", "product=P", ""},
		{"", form, "product=" + strings.Repeat("x", 1<<20), ""},
	} {
		purged = nil
		request := httptest.NewRequest(http.MethodPost, "/cache/purge"+c.query, strings.NewReader(c.body))
		if c.kind != "" {
			request.Header.Set("Content-Type", c.kind)
		}
		response := httptest.NewRecorder()
		admin.CachePage(view).Handler.ServeHTTP(response, request)
		want, status := []string{strings.ReplaceAll(c.want, "everything", "")}, http.StatusOK
		if c.want == "" {
			want, status = nil, http.StatusBadRequest
		}
		if response.Code != status || !slices.Equal(purged, want) {
			t.Errorf("%q with %.40q (%s) gives %d and purges %q: %s", c.query, c.body, c.kind, response.Code, purged, response.Body)
		}
	}
}

// TestRequestsOfTheCache: a lookup is for what the query names, an error of the cache is no empty list, and other methods are told those that
// a path takes.
func TestRequestsOfTheCache(t *testing.T) {
	away := errors.New("Redis is away")
	view := fakeCaches{away: away, purge: func(string) error { return away }}
	for _, c := range []struct {
		method, path string
		status       int
		takes, want  string
	}{
		{http.MethodGet, "/cache?product=P&component=C", http.StatusOK, "", `"component": "C"`},
		{http.MethodGet, "/cache?key=K", http.StatusBadGateway, "", away.Error()},
		{http.MethodPost, "/cache/purge", http.StatusBadGateway, "", away.Error()},
		{http.MethodHead, "/cache?product=P", http.StatusOK, "", ""},
		{http.MethodPost, "/cache", http.StatusMethodNotAllowed, "GET, HEAD", ""},
		{http.MethodGet, "/cache/purge", http.StatusMethodNotAllowed, "POST", ""},
		{http.MethodGet, "/cache/nothing", http.StatusNotFound, "", ""},
	} {
		response := httptest.NewRecorder()
		admin.CachePage(view).Handler.ServeHTTP(response, httptest.NewRequest(c.method, c.path, nil))
		if response.Code != c.status || response.Header().Get("Allow") != c.takes || !strings.Contains(response.Body.String(), c.want) {
			t.Errorf("%s %s: %d %q %s", c.method, c.path, response.Code, response.Header().Get("Allow"), response.Body)
		}
	}
}
