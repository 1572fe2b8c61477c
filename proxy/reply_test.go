package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

const oneAttachment = `{"bugs":{"5":[{"id":11,"is_private":0,"is_obsolete":1,"is_patch":0,"summary":"<b>&\"x\"'"}]},"attachments":{}}`

func TestPageIsEscaped(t *testing.T) {
	base := serve(t, proxy.Options{Tracker: responding(func() *mapping.Document { return document(oneAttachment) })})
	response := ask(t, "GET", base+"/rest/bug/5/attachment", "", "Accept", "text/html")
	if strings.Contains(response.body, "<b>") || !strings.Contains(response.body, "&lt;b&gt;&amp;\\&quot;x\\&quot;&#39;") ||
		!strings.Contains(response.body, "\n   &quot;bugs&quot;") {
		t.Errorf("page %s", response.body)
	}
	if got := ask(t, "GET", base+"/rest/bug/5/attachment", "", "Accept", "text/html;q=0").body; got != oneAttachment {
		t.Errorf("a refused page: %s", got)
	}
	failed := ask(t, "DELETE", base+"/rest/bug/5/attachment", "", "Accept", "text/html")
	if failed.status != 404 || !strings.Contains(failed.body, "&quot;error&quot;: true") {
		t.Errorf("page %d %s", failed.status, failed.body)
	}
	refused := ask(t, "POST", base+"/rest/flag_type", "{}", "Accept", "text/html")
	if refused.status != 401 || refused.header.Get("Content-Type") != "text/html; charset=UTF-8" {
		t.Errorf("page %d %s", refused.status, refused.body)
	}
}

// The rows are the recorded exchanges proto.jsonp.*.
func TestJSONP(t *testing.T) {
	tracker := &fakeTracker{do: func(_ context.Context, call upstream.Call) (mapping.Reply, error) {
		if call.FlagTypes != nil {
			return mapping.Reply{}, &mapping.Error{Code: 106, Status: 401, Message: "no"}
		}
		return says(oneAttachment)
	}}
	base := serve(t, proxy.Options{Tracker: tracker})
	for _, name := range []string{"cb", "a.b[0]", "jQuery_1"} {
		response := ask(t, "GET", base+"/rest/bug/5/attachment?callback=+"+name+"%20", "", "Accept", "text/html")
		if response.body != "/**/"+name+"("+oneAttachment+")" || response.header.Get("Content-Type") != "text/javascript; charset=UTF-8" ||
			response.length != int64(len(response.body)) {
			t.Errorf("%s: %+v", name, response)
		}
	}
	ask(t, "GET", base+"/rest/bug/5/attachment?callback=alert(1)", "").wantError(t, 400, "32611")
	for _, twice := range []string{"callback=a&callback=b", "callback=a&x=1;callback=", "callback=&callback=a"} {
		ask(t, "GET", base+"/rest/bug/5/attachment?"+twice, "").wantError(t, 400, "32611")
		ask(t, "POST", base+"/rest/flag_type"+key+"&"+twice, `{"name":"n","description":"d"}`).wantError(t, 400, "32611")
	}
	if got := ask(t, "GET", base+"/rest/bug/5/attachment?callback=", ""); got.body != oneAttachment {
		t.Errorf("empty callback: %s", got.body)
	}
	failed := ask(t, "GET", base+"/rest/flag_type/P?callback=cb", "")
	if failed.status != 401 || !strings.HasPrefix(failed.body, `/**/cb({"error":true,"code":106,`) {
		t.Errorf("error: %+v", failed)
	}
	ask(t, "GET", base+"/rest/nope?callback=cb", "").wantError(t, 404, "32614")
}

func TestCommonHeaders(t *testing.T) {
	base := serve(t, proxy.Options{})
	for _, response := range []reply{
		ask(t, "GET", base+"/rest/flag_type/P", ""), ask(t, "GET", base+"/rest/nope", ""), ask(t, "OPTIONS", base+"/rest/flag_type/P", ""),
		ask(t, "POST", base+"/rest/flag_type", "{"), ask(t, "GET", base+"/x%00/%2e%2e/..", ""),
	} {
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "SAMEORIGIN",
			"X-Xss-Protection": "1; mode=block", "Content-Type": "application/json; charset=UTF-8",
		} {
			if got := response.header.Get(name); got != want {
				t.Errorf("%d: %s is %q", response.status, name, got)
			}
		}
		if response.length != int64(len(response.body)) || response.header.Get("X-Request-Id") == "" {
			t.Errorf("length %d of %d bytes, id %q", response.length, len(response.body), response.header.Get("X-Request-Id"))
		}
		if response.header.Get("Location") != "" || response.header.Get("Www-Authenticate") != "" {
			t.Errorf("unexpected headers: %v", response.header)
		}
	}
}

// TestNoSharedCacheKeepsWhatAKeyShows: one before Portico goes by the address, in which a key of a header is not.
func TestNoSharedCacheKeepsWhatAKeyShows(t *testing.T) {
	tracker, base := behind(t, "", func(o *proxy.Options) {
		unreading(o)
		o.Tracker = &fakeTracker{do: func(_ context.Context, call upstream.Call) (mapping.Reply, error) {
			if call.Attachments != nil {
				return mapping.Reply{}, &mapping.Error{Code: 101, Status: 404, Message: "none"}
			}
			return mapping.Reply{Document: document(noFlagTypes)}, nil
		}}
	})
	own := ""
	tracker.response = func(w http.ResponseWriter, _ *http.Request) {
		if own != "" {
			w.Header().Set("Cache-Control", own)
		}
	}
	for _, c := range []struct{ path, key, own, want string }{
		{"/rest/flag_type/P", "K", "", "private"},
		{"/rest/flag_type/P?api_key=K", "", "", ""}, // as without Portico
		{"/rest/flag_type/P", "", "", ""},
		{"/rest/bug/1/attachment", "K", "", "private"},
		{"/rest/bug/1", "K", "", "private"},
		{"/rest/bug/1", "K", "no-store", "no-store"},
		{"/rest/bug/1", "", "", ""},
		{"/rest/bug/1?api_key=K", "", "", ""},
	} {
		own = c.own
		var header []string
		if c.key != "" {
			header = []string{"X-BUGZILLA-API-KEY", c.key}
		}
		if got := ask(t, "GET", base+c.path, "", header...); got.header.Get("Cache-Control") != c.want {
			t.Errorf("%+v: Cache-Control is %q", c, got.header.Get("Cache-Control"))
		}
	}
}

func TestFlagTypeTagsAndCacheHeaders(t *testing.T) {
	info := &mapping.CacheInfo{}
	tracker := &fakeTracker{do: func(context.Context, upstream.Call) (mapping.Reply, error) {
		found := document(noFlagTypes)
		found.ETag = `"tag"`
		own := *info // which the request may read after its response
		return mapping.Reply{Document: found, Cache: &own}, nil
	}}
	base := serve(t, proxy.Options{Tracker: tracker}) + "/rest/flag_type/P"
	for condition, want := range map[string]int{
		`"tag"`: 304, `tag`: 304, `*`: 304, `"x", "tag"`: 304, `"x", tag`: 304, `W/"tag"`: 304, `W/"x", W/"tag"`: 304, `"nope"`: 200, ``: 200,
	} {
		response := ask(t, "GET", base, "", "If-None-Match", condition)
		if response.status != want || response.header.Get("Etag") != `"tag"` || want == 304 && response.body != "" {
			t.Errorf("%s: %+v, want %d", condition, response, want)
		}
	}
	weak := ask(t, "GET", base, "", "If-None-Match", `W/"tag"`, "Accept-Encoding", "gzip")
	if weak.status != 304 || weak.header.Get("Etag") != `W/"tag"` || weak.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("for a tag that came with a compressed response: %+v", weak)
	}
	if got := ask(t, "GET", base, "", "If-None-Match", "*", "Accept", "text/html"); got.status != 200 || got.header.Get("Etag") != "" {
		t.Errorf("a page is another text than the one with the tag: %+v", got)
	}
	for _, c := range []struct {
		info      mapping.CacheInfo
		want, age string
	}{
		{mapping.CacheInfo{Hit: true, Age: 90 * time.Second, TTL: 210 * time.Second, Detail: "local"}, "Portico; hit; ttl=210; detail=local", "90"},
		{mapping.CacheInfo{Hit: true, Stale: true, Age: 400 * time.Second, TTL: -100 * time.Second}, "Portico; hit; ttl=-100", "400"},
		{mapping.CacheInfo{Forward: "miss", Stored: true}, "Portico; fwd=miss; stored", ""},
		{mapping.CacheInfo{Forward: "stale", Collapsed: true}, "Portico; fwd=stale; collapsed", ""},
		{mapping.CacheInfo{Forward: "bypass"}, "Portico; fwd=bypass", ""},
	} {
		*info = c.info
		response := ask(t, "GET", base, "")
		if response.header.Get("Cache-Status") != c.want || response.header.Get("Age") != c.age {
			t.Errorf("%+v: %q, age %q", c.info, response.header.Get("Cache-Status"), response.header.Get("Age"))
		}
	}
}

// TestRefusalsFromTheCacheSaySo: "no such component" is remembered, too. An error of
// Portico's own is not a cached response.
func TestRefusalsFromTheCacheSaySo(t *testing.T) {
	for _, c := range []struct {
		err       *mapping.Error
		want, age string
	}{
		{&mapping.Error{Code: 51, Status: 404, Message: "none"}, "Portico; hit; ttl=3", "2"},
		{&mapping.Error{Code: mapping.CodeBadGateway, Status: 502, Reason: mapping.ReasonBadResponse, Message: "broken"}, "", ""},
	} {
		reply := func(context.Context, upstream.Call) (mapping.Reply, error) {
			return mapping.Reply{Cache: &mapping.CacheInfo{Hit: true, Age: 2 * time.Second, TTL: 3 * time.Second}}, c.err
		}
		base := serve(t, proxy.Options{Tracker: &fakeTracker{do: reply}})
		response := ask(t, "GET", base+"/rest/flag_type/P/C", "")
		if response.status != c.err.Status || response.header.Get("Cache-Status") != c.want || response.header.Get("Age") != c.age {
			t.Errorf("%v: %d, %q, age %q", c.err, response.status, response.header.Get("Cache-Status"), response.header.Get("Age"))
		}
	}
}

func TestAttachmentTagsAreTheTrackers(t *testing.T) {
	var asked string
	reply := func(_ context.Context, call upstream.Call) (mapping.Reply, error) {
		asked = call.Attachments.IfNoneMatch
		found := document(oneAttachment)
		found.ETag, found.Cookies = "tMGK", []string{"Bugzilla_login_request_cookie=x; path=/"}
		if asked == "tMGK" {
			found = &mapping.Document{ETag: "tMGK", NotModified: true}
		}
		return mapping.Reply{Document: found}, nil
	}
	base := serve(t, proxy.Options{Tracker: &fakeTracker{do: reply}}) + "/rest/bug/5/attachment"
	response := ask(t, "GET", base, "", "If-None-Match", "other")
	if response.status != 200 || response.header.Get("Etag") != "tMGK" || response.header.Get("Set-Cookie") == "" {
		t.Errorf("got %+v", response)
	}
	if response := ask(t, "GET", base, "", "If-None-Match", "tMGK"); response.status != 304 || response.body != "" || response.header.Get("Etag") != "tMGK" {
		t.Errorf("got %+v", response)
	}
	if ask(t, "GET", base, "", "If-None-Match", `W/"x"`); asked != `"x"` {
		t.Errorf("the tracker, which knows no weak tags, was asked for %s", asked)
	}
	if ask(t, "GET", base+"?callback=cb", "", "If-None-Match", "tMGK"); asked != "" {
		t.Error("the tag of one representation was used for another")
	}
}

func TestErrorsOfTheTracker(t *testing.T) {
	for _, c := range []struct {
		err          error
		status       int
		code, reason string
	}{
		{&mapping.Error{Code: 106, Status: 401, Message: "m"}, 401, "106", ""},
		{&mapping.Error{Code: 51, Status: 404, Message: "m", Documentation: "http://d.example/"}, 404, "51", ""},
		{&mapping.Error{Code: 200503, Status: 503, Message: "m", Reason: mapping.ReasonBreakerOpen, RetryAfter: 1100 * time.Millisecond}, 503, "200503", "breaker-open"},
		{&mapping.Error{Code: 200504, Status: 504, Message: "m", Reason: mapping.ReasonTimeout, Unknown: true}, 504, "200504", "tracker-timeout; outcome=unknown"},
		{context.DeadlineExceeded, 504, "200504", "tracker-timeout"},
		{errors.New("password=SECRET"), 500, "200500", "internal"},
	} {
		base := serve(t, proxy.Options{Tracker: failing(c.err)})
		response := ask(t, "GET", base+"/rest/flag_type/P", "")
		response.wantError(t, c.status, c.code)
		if got := response.header.Get("Portico-Error"); got != c.reason {
			t.Errorf("%v: Portico-Error %q", c.err, got)
		}
		if strings.Contains(response.body, "SECRET") {
			t.Errorf("leaked: %s", response.body)
		}
		if wait := response.header.Get("Retry-After"); c.status == 503 && wait != "2" {
			t.Errorf("Retry-After %q", wait)
		}
	}
	base := serve(t, proxy.Options{Tracker: failing(context.DeadlineExceeded), DocumentationURL: "http://docs.example/"})
	response := ask(t, "POST", base+"/rest/flag_type"+key, `{"name":"n","description":"d"}`)
	response.wantError(t, 504, "200504")
	if response.header.Get("Portico-Error") != "tracker-timeout; outcome=unknown" || response.member(t, "documentation") != `"http://docs.example/"` {
		t.Errorf("got %+v", response)
	}
}

// Members that only the tracker knows are kept behind the others. What it did not say is not made up.
func TestErrorsKeepTheirMembers(t *testing.T) {
	extra := mapping.Members{{Name: "extra", Value: []byte("5.0")}}
	const rest = `"message":"m","documentation":"d","extra":5.0}`
	for code, want := range map[int]string{51: `{"error":true,"code":51,` + rest, 0: `{"error":true,` + rest} {
		failed := &mapping.Error{Code: code, Status: 404, Message: "m", Documentation: "d", Extra: extra}
		base := serve(t, proxy.Options{Tracker: failing(failed)})
		if got := ask(t, "GET", base+"/rest/flag_type/P", "").body; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestInterfaceFormOfManyAttachments: a response is not refused for having more in it than a request may have.
func TestInterfaceFormOfManyAttachments(t *testing.T) {
	const many = 20000
	one := `{"is_patch":1,"data":"YQ==","a":[1,2,3,4,5,6,7,8,9,10,11,12]}`
	text := `{"attachments":{},"bugs":{"5":[` + strings.Repeat(one+",", many-1) + one + `]}}`
	base := serve(t, proxy.Options{
		Tracker:   responding(func() *mapping.Document { return stream(text, nil) }),
		Responses: proxy.ResponsesInterface,
	})
	response := ask(t, "GET", base+"/rest/bug/5/attachment", "")
	response.wantStatus(t, 200)
	if got := strings.Count(response.body, `{"is_patch":true,"data":"YQ=="`); got != many {
		t.Errorf("%d attachments have the form of the interface, want %d", got, many)
	}
}

func TestClientMayAskForAFreshResponse(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker})
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"Cache-Control", "no-cache", true}, {"Cache-Control", "x, MAX-AGE=0", true}, {"Cache-Control", "no-store", true}, {"Pragma", "no-cache", true},
		{"Cache-Control", "max-age=60", false}, {"Accept", "*/*", false},
	} {
		ask(t, "GET", base+"/rest/flag_type/P", "", c.name, c.value).wantStatus(t, 200)
		if tracker.last.Fresh != c.want {
			t.Errorf("%s: %s: %v", c.name, c.value, tracker.last.Fresh)
		}
	}
}

// stream is a document that arrives in pieces; err is what comes instead of its end.
func stream(text string, err error) *mapping.Document {
	rest := io.Reader(strings.NewReader(text[10:]))
	if err != nil {
		rest = io.MultiReader(rest, brokenReader{err})
	}
	return mapping.NewStream([]byte(text[:10]), io.NopCloser(rest), -1)
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func TestStreams(t *testing.T) {
	data := strings.Repeat("QUJD", 200000)
	text := `{"bugs":{},"attachments":{"1":{"data":"` + data + `","summary":"<s>"}}}`
	base := serve(t, proxy.Options{BlobDir: t.TempDir(), Tracker: responding(func() *mapping.Document { return stream(text, nil) })})
	if response := ask(t, "GET", base+"/rest/bug/attachment/1", ""); response.status != 200 || response.body != text {
		t.Errorf("%d, %d bytes", response.status, len(response.body))
	}
	page := ask(t, "GET", base+"/rest/bug/attachment/1", "", "Accept", "text/html")
	if page.status != 200 || !strings.Contains(page.body, data) || !strings.Contains(page.body, "&lt;s&gt;") {
		t.Errorf("as a page: %d, %d bytes", page.status, len(page.body))
	}
}

// A reply that is kept in memory until the client has taken it counts for the memory that bodies share. A page of it is written as it goes, without a
// copy whose length would be known.
func TestRepliesInMemoryShareIt(t *testing.T) {
	list := func(n int) string {
		return `{"bugs":{"1":[` + strings.Repeat(`{"id":1},`, n) + `{}]},"attachments":{}}`
	}
	text := list(9000)
	streamed := responding(func() *mapping.Document { return stream(text, nil) })
	whole := responding(func() *mapping.Document { return mapping.NewDocument([]byte(text)) })
	short := responding(func() *mapping.Document { return mapping.NewDocument([]byte(list(7000))) }) // the system takes it at once
	for _, c := range []struct {
		tracker   upstream.Tracker
		memory    int64
		responses proxy.Responses
		accept    string
		status    int
	}{
		{streamed, 1, proxy.ResponsesTracker, "application/json", 200}, {streamed, 1, proxy.ResponsesInterface, "application/json", 503},
		{streamed, 1, proxy.ResponsesTracker, "text/html", 503}, {streamed, 0, proxy.ResponsesTracker, "text/html", 200},
		{whole, 1, proxy.ResponsesTracker, "application/json", 503}, {whole, 128 << 10, proxy.ResponsesTracker, "application/json", 200},
		{short, 1, proxy.ResponsesTracker, "application/json", 200}, {short, 1, proxy.ResponsesInterface, "application/json", 200},
	} {
		base := serve(t, proxy.Options{Tracker: c.tracker, Limits: proxy.Limits{Memory: c.memory}, Responses: c.responses})
		for range 10 { // each gives back what it took
			got := ask(t, "GET", base+"/rest/bug/1/attachment", "", "Accept", c.accept)
			isWhole := got.header.Get("Content-Length") == "" && strings.Count(got.body, "&quot;id&quot;") == 9000
			if got.status != c.status || c.status == 200 && c.accept == "text/html" && !isWhole {
				t.Errorf("%+v: %d, %d bytes, %v", c, got.status, len(got.body), got.header)
			}
		}
	}
	update := &fakeTracker{do: func(context.Context, upstream.Call) (mapping.Reply, error) {
		return mapping.Reply{Document: stream(text, nil)}, nil
	}}
	base := serve(t, proxy.Options{Tracker: update, Limits: proxy.Limits{Memory: 1}, Responses: proxy.ResponsesInterface})
	if got := ask(t, "PUT", base+"/rest/bug/attachment/1", `{"summary":"s"}`, "X-Bugzilla-API-Key", "k"); got.status != 200 { // it was carried out
		t.Errorf("a write: %d %s", got.status, got.body)
	}
}

func TestBrokenStreamIsCut(t *testing.T) {
	text := `{"bugs":{},"attachments":{"1":{"data":"` + strings.Repeat("QUJD", 100000) + `"}}}`
	records := make(chan proxy.Record, 10) // the HTTP client may repeat a request without a response
	var log logBuffer
	base := serve(t, proxy.Options{
		Logger:   log.logger(),
		Observer: observer(func(r proxy.Record) { records <- r }),
		Tracker:  responding(func() *mapping.Document { return stream(text, errors.New("gone")) }),
	})
	for _, coding := range []string{"gzip", "identity"} {
		request := newRequest(t, http.MethodGet, base+"/rest/bug/attachment/1", http.NoBody)
		request.Header.Set("Accept-Encoding", coding)
		response, err := http.DefaultClient.Do(request)
		if coding == "gzip" && errors.Is(err, io.EOF) {
			continue // nothing of the compressed response was sent yet
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the client saw %v", err)
		}
		_ = response.Body.Close()
	}
	for sent := false; !sent; {
		record := <-records
		sent = record.Bytes > 0
		if record.Operation != mapping.OpAttachment || record.Reason != mapping.ReasonBadResponse {
			t.Errorf("record %+v", record)
		}
	}
	if text := log.String(); strings.Contains(text, "panicked") {
		t.Errorf("a response that breaks off is no panic: %s", text)
	}
}

type observer func(proxy.Record)

func (o observer) Finished(r proxy.Record) { o(r) }

const slowResponse = 4 << 20

// behindSlow serves a large response to clients that may pause for half a second.
func behindSlow(t *testing.T, window int) (*kept, <-chan proxy.Record) {
	t.Helper()
	watcher, records := finishing()
	base := serveFast(t, proxy.Options{
		Observer:    watcher,
		ClientPause: proxy.ClientPause{Taking: 500 * time.Millisecond},
		Tracker: responding(func() *mapping.Document {
			return document(`{"bugs":{},"attachments":{"1":{"summary":"` + strings.Repeat("s", slowResponse) + `"}}}`)
		}),
	}, time.Minute).URL // whose connections lie under others
	client := dial(t, base)
	must(t, client.Conn.(*net.TCPConn).SetReadBuffer(window))
	_, _ = io.WriteString(client, "GET /rest/bug/attachment/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	return client, records
}

// A client is judged by what it takes, not by what waits for it inside the system.
func TestClientThatTakesNothing(t *testing.T) {
	t.Parallel()
	_, records := behindSlow(t, 4<<10)
	got := <-records
	if got.Reason != mapping.ReasonCanceled || runtime.GOOS == "linux" && got.Bytes > 1<<20 {
		t.Errorf("record %+v", got)
	}
}

// A client that takes a large response slowly, but steadily, gets it whole.
func TestSlowButSteadyDownload(t *testing.T) {
	t.Parallel()
	client, records := behindSlow(t, 64<<10)
	piece, taken := make([]byte, 64<<10), 0
	for {
		n, err := io.ReadFull(client, piece)
		if taken += n; err != nil {
			break
		}
		time.Sleep(30 * time.Millisecond) // that is what makes it slow
	}
	if got := <-records; taken < slowResponse || got.Reason != "" {
		t.Errorf("%d bytes were taken, record %+v", taken, got)
	}
}

// A body that stops arriving ends the request, whether a handler reads it or not.
func TestPatient(t *testing.T) {
	server := httptest.NewServer(proxy.Patient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			if _, err := io.ReadAll(r.Body); err == nil {
				t.Error("a body came to its end that was never sent")
			}
		}
		_, _ = io.WriteString(w, "response")
	}), proxy.ClientPause{Sending: 50 * time.Millisecond, Taking: time.Minute}))
	defer server.Close()
	for _, path := range []string{"/read", "/leave"} {
		got := dial(t, server.URL).exchange(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na")
		if got.status != 200 || !strings.HasSuffix(got.body, "response") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
