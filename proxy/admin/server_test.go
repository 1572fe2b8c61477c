package admin_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"portico/proxy/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts an admin listener on a real socket.
func open(t *testing.T, options admin.Options) (*admin.Server, string) {
	t.Helper()
	if options.Status == nil {
		options.Status = func() admin.Status { return admin.Status{} }
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
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
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
	for _, part := range []string{"<span class=\"state\">ready</span>", "<th scope=\"row\">Version</th><td>1.0</td>", "&lt;bmo&gt;",
		`<a href="/canary">Canary</a>`, `<a href="/metrics">`} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
	if status != 200 || strings.Contains(body, "/hidden") || header.Get("Content-Security-Policy") == "" || header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", status, header)
	}
	look(t, "GET", base+"/metrics")
	if status, _, _ := look(t, "GET", base+"/nope"); status != 404 || looked != 4 {
		t.Errorf("/nope: %d; the state was looked at %d times", status, looked)
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
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(client, "POST /status HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
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
