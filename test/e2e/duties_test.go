package e2e

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/tracker"
	"portico/upstream/transport"
)

// Duties of docs/reference/clients.md, section 4, that take more than steps. The others are in duties().

func TestDuty_19_CookiesPassPerClient(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	tape := h.tape
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

func TestDuty_17_NeverARedirect(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cached: true})
	for _, path := range []string{
		"/rest/flag_type/TestProduct/", "/rest/flag_type/", "/rest/bug/1/attachment/", "/rest/bug/attachment/1/", "/rest/", "/rest", "/rest.cgi",
		"//rest//bug/1/attachment", "/rest/./bug/2/../1/attachment", "/Rest/bug/1/attachment", "/rest/bug/attachment", "/rest/bug//1//attachment",
		"/xmlrpc.cgi/", "/index.cgi", "/", "",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE"} {
			if r := h.do(t, ask{method: method, path: path}); r.status >= 300 && r.status < 400 || r.status == 405 {
				t.Errorf("%s %s: status %d", method, path, r.status)
			}
		}
	}
	h.get(t, "", "//rest//bug/5/attachment").ok(t, 200)
	h.get(t, "", "/rest/bug/5/attachment/").refused(t, 404, 32614)
}

// A client that the tracker limits is not let through a second time, so each operation has an environment of its own.
func TestDuty_20_TheTrackersRateLimitGoesOn(t *testing.T) {
	t.Parallel()
	limited := stub(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "17")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":true,"code":32610,"message":"slow down","documentation":"d"}`)
	})
	for _, op := range append(seven(), operation{"any other path", "GET", "/bug/1", "", 0, 0}) {
		h := open(t, plan{before: limited})
		got := h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).fails(t, 429, 32610)
		if after := got.header.Get("Retry-After"); after != "17" {
			t.Errorf("%s: Retry-After is %q", op.name, after)
		}
	}
}

func TestClient_GitBz(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	tape := h.tape
	head := http.Header{"User-Agent": {"git-bz"}, "Cookie": {"Bugzilla_login=4; Bugzilla_logincookie=x"}}
	page := h.client.do(t, ask{method: "GET", path: "/show_bug.cgi?id=1&ctype=xml", header: head})
	if page.status != 200 || tape.last(t).uri != "/show_bug.cgi?id=1&ctype=xml" {
		t.Errorf("the page is answered with %d and was asked as %s", page.status, tape.last(t).uri)
	}
	body := "--b\r\nContent-Disposition: form-data; name=\"data\"; filename=\"f\"\r\nContent-Type: text/plain\r\n\r\n\x00\xff\r\n--b--\r\n"
	head.Set("Content-Type", "multipart/form-data; boundary=b")
	h.client.do(t, ask{method: "POST", path: "/attachment.cgi", body: body, header: head})
	if got := tape.last(t); string(got.body) != body || got.header.Get("Cookie") != head.Get("Cookie") || got.header.Get("Content-Type") != head.Get("Content-Type") {
		t.Errorf("the form arrived as %q with %v", got.body, got.header)
	}
	if got := h.client.do(t, ask{method: "GET", path: "/attachment.cgi?id=1", header: head}); string(got.body) != "hello public\n" {
		t.Errorf("attachment 1 is %q", got.body)
	}
}

// failing are the failures that Portico answers for itself: an environment in which each happens, and what it answers.
func failing(t *testing.T) map[int]*environment {
	t.Helper()
	patient := transport.Options{Break: transport.BreakOptions{Unanswered: 1000, MinRequests: 1000}}
	silent := stub(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	small := plan{}
	small.limits.Body = 64
	return map[int]*environment{
		413: open(t, small),
		502: open(t, plan{before: silent, transport: patient}),
		503: full(t),
		504: open(t, plan{timeout: 50 * time.Millisecond, tracker: tracker.Options{
			Faults: []tracker.Fault{{Op: "attachment.*", Kind: tracker.FaultHangBefore}, {Op: "flag_type.*", Kind: tracker.FaultHangBefore}},
		}}),
	}
}

// full gives an environment whose tracker is busy, so that further requests are refused.
func full(t *testing.T) *environment {
	t.Helper()
	entered, release := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	h := open(t, plan{
		transport: transport.Options{Limit: transport.LimitOptions{Slots: 1, ReserveWrites: -1, Queue: -1}},
		before: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/rest/bug/1/comment" && asked.Add(1) == 1 {
					close(entered)
					<-release
				}
				next.ServeHTTP(w, r)
			})
		},
	})
	h.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200) // the dialect is known from here on
	done := make(chan struct{})
	go func() {
		defer close(done)
		response, err := straight().Get(h.base + "/rest/bug/1/comment")
		if err == nil {
			response.Body.Close()
		}
	}()
	<-entered
	t.Cleanup(func() {
		close(release)
		<-done
	})
	return h
}

func TestDuty_04_PorticosOwnErrorsAreJSONToo(t *testing.T) {
	t.Parallel()
	for status, h := range failing(t) {
		for _, op := range seven() {
			if status == 413 && op.method == "GET" {
				continue
			}
			body := op.body
			if status == 413 {
				body = strings.Replace(body, "{", `{"padding":"`+strings.Repeat("x", 100)+`",`, 1)
			}
			want := status
			if status == 502 && op.method != "GET" {
				want = 504 // what became of the write is unknown
			}
			got := h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: body})
			got.refused(t, want, 200000+want)
			if !strings.HasPrefix(string(got.body), `{"error":true,"code":`) {
				t.Errorf("%d: the error begins with %.40s", status, got.body)
			}
		}
		if status != 504 && status != 413 {
			h.get(t, "", "/rest/bug/1").refused(t, status, 200000+status)
		}
	}
	h := open(t, plan{})
	h.get(t, "", "/rest/bug/1/attachment?x="+strings.Repeat("y", 9000)).refused(t, 414, 200414)
	h.get(t, "", "/rest/bug/1?x="+strings.Repeat("y", 9000)).refused(t, 414, 200414)
	h.get(t, "", "/rest/bug/%00/attachment").refused(t, 400, 32000)
}

func TestDuty_20_ARefusalSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	got := full(t).get(t, "", "/rest/bug/attachment/1").refused(t, 503, 200503)
	if got.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", got.header)
	}
}
