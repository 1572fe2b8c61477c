package proxy_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

const readP = "GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\n"

// Whichever way a request takes, its response is the same, and so is what becomes of the connection.
func TestFastPathRespondsAlike(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		peeked bool
	}{
		"plain":            {readP + "\r\n", true},
		"key":              {readP + "x-bugzilla-API-key:  k \r\n\r\n", true},
		"component":        {"GET /rest/flag_type/P/C HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"escapes":          {"GET /rest/flag_type/A%2FB%20c/d%21! HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"query":            {"GET /rest/flag_type/P?component=C&api_key=k HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"callback":         {"GET /rest/flag_type/P?callback=f HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"page":             {readP + "Accept: text/html\r\n\r\n", true},
		"not modified":     {readP + "If-None-Match: \"abc\"\r\n\r\n", true},
		"twice a field":    {readP + "If-None-Match: \"x\"\r\nif-none-match: \"abc\"\r\n\r\n", true},
		"python":           {readP + "Connection: keep-alive\r\nAccept-Encoding: gzip\r\nAccept: */*\r\n\r\n", true},
		"other root":       {"GET /rest.cgi/flag_type/P HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"slash":            {"GET /rest/flag_type/P/ HTTP/1.1\r\nHost: x\r\n\r\n", false},
		"nothing there":    {"GET /rest/flag_type/P/C/D HTTP/1.1\r\nHost: x\r\n\r\n", false},
		"refused":          {"GET /rest/flag_type/None HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"not at hand":      {"GET /rest/flag_type/New HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"fresh":            {readP + "Cache-Control: no-cache\r\n\r\n", false},
		"fresh of old":     {readP + "Pragma: no-cache\r\n\r\n", false},
		"head of nothing":  {"GET /rest/flag_type/P?x=%zz HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"a body":           {readP + "Content-Length: 2\r\n\r\n{}", false},
		"a later body":     {readP + "Content-Length: 0\r\n\r\n", false},
		"a bad field":      {readP + "bad field: x\r\n\r\n", false},
		"a folded field":   {readP + "A: x\r\n y\r\n\r\n", false},
		"no host":          {"GET /rest/flag_type/P HTTP/1.1\r\n\r\n", false},
		"two hosts":        {readP + "Host: y\r\n\r\n", false},
		"version":          {"GET /rest/flag_type/P HTTP/1.0\r\nHost: x\r\n\r\n", false},
		"a stray percent":  {"GET /rest/flag_type/P% HTTP/1.1\r\nHost: x\r\n\r\n", false},
		"a double query":   {"GET /rest/flag_type/P?? HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"an empty query":   {"GET /rest/flag_type/P? HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"long":             {"GET /rest/flag_type/" + strings.Repeat("P", 300) + " HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"last of its kind": {readP + "Connection: close\r\n\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &cachingTracker{}
			base := serveFast(t, proxy.Options{Tracker: f}, time.Minute).URL
			want := dial(t, base).exchange(t, c.text).told()
			for range 5 { // on a busy machine net/http may get the first byte although it could not use it
				if got := keep(t, base).exchange(t, c.text).told(); got != want {
					t.Fatalf("got  %s\nwant %s", got, want)
				}
				if f.peeked.Load() > 0 {
					break
				}
			}
			if took := f.peeked.Load() > 0; took != c.peeked {
				t.Errorf("fast path: %v", took)
			}
		})
	}
}

// What is asked again on net/http is one request in log and metrics.
func TestDeclinedRequestsCountOnce(t *testing.T) {
	f := &cachingTracker{}
	var log logBuffer
	watcher, records := finishing()
	options := proxy.Options{Tracker: f}
	options.Logger, options.Observer = log.logger(), watcher
	k := keep(t, serveFast(t, options, time.Minute).URL)
	<-records
	connected := 1
	for ; f.peeked.Load() == 0; connected++ { // on a busy machine net/http may get the next request as well
		k.exchange(t, readP+"\r\n")
		<-records
	}
	before := f.peeked.Load()
	k.exchange(t, "GET /rest/flag_type/New HTTP/1.1\r\nHost: x\r\nX-Request-Id: abc\r\n\r\n")
	k.exchange(t, "GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\nX-Request-Id: def\r\n\r\n")
	first, second := <-records, <-records
	if first.ID != "abc" || second.ID != "def" || second.Cache == nil || second.Bytes == 0 {
		t.Errorf("got %+v and %+v", first, second)
	}
	if text := log.String(); strings.Count(text, "id=abc") != 1 || strings.Count(text, "id=def") != 1 || strings.Count(text, "client=127.0.0.1") != connected+2 {
		t.Errorf("the log is %s", text)
	}
	if f.peeked.Load() == before {
		t.Error("nothing was declined")
	}
}

// Requests that come in one piece or in several are responded in their order, nothing is taken for a request that is part of
// another, and the fast path is open again as soon as it is sure that net/http holds nothing.
func TestFastPathKeepsToRequests(t *testing.T) {
	const inner = "GET /rest/flag_type/Inner HTTP/1.1\r\nHost: x\r\n\r\n"
	length := "Content-Length: " + strconv.Itoa(len(inner)) + "\r\n\r\n"
	for name, c := range map[string]struct {
		texts          []string
		responses      int
		inners, peeked int
	}{
		"one":               {[]string{inner}, 1, 1, 2},
		"two at once":       {[]string{inner + inner}, 2, 2, 1},
		"one and a half":    {[]string{inner + inner[:9], inner[9:]}, 2, 2, 1},
		"in pieces":         {[]string{inner[:9], inner[9:]}, 1, 1, 1},
		"first byte before": {[]string{inner[:1], inner[1:]}, 1, 1, 1},
		"something before":  {[]string{inner + "P", inner}, 2, 1, 1},
		"after a write":     {[]string{"POST /rest/flag_type HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", inner}, 2, 1, 2},
		"body of a write":   {[]string{"POST /rest/flag_type HTTP/1.1\r\nHost: x\r\n" + length, inner}, 1, 0, 1},
		"body behind":       {[]string{inner + "POST /rest/flag_type HTTP/1.1\r\nHost: x\r\n" + length, inner}, 2, 1, 1},
		"body of a read":    {[]string{"GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\n" + length, inner}, 1, 0, 1},
		"bare line feeds":   {[]string{"GET /rest/flag_type/P HTTP/1.1\nHost: x\n\n" + inner}, 2, 1, 1},
		"head":              {[]string{"HEAD /rest/flag_type HTTP/1.1\r\nHost: x\r\n\r\n"}, 1, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := &cachingTracker{}
			k := keep(t, serveFast(t, proxy.Options{Tracker: f}, time.Minute).URL)
			for _, text := range c.texts {
				k.send(t, text)
				time.Sleep(30 * time.Millisecond) // so that it is read by itself
			}
			k.send(t, "GET /rest/flag_type/Last HTTP/1.1\r\nHost: x\r\n\r\n")
			time.Sleep(30 * time.Millisecond)
			k.send(t, "GET /rest/flag_type/End HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			all, _ := io.ReadAll(k.reader)
			text := string(all)
			if got := strings.Count(text, "HTTP/1.1 "); got != c.responses+2 || strings.Count(text, `"Inner/"`) != c.inners || !strings.Contains(text, `"Last/"`) {
				t.Errorf("%d responses: %s", got, text)
			}
			// Where the machine is busy, requests that were sent apart may be read at once, and go to net/http.
			if got := f.peeked.Load(); got > int64(c.peeked) {
				t.Errorf("%d took the fast path, want %d at most", got, c.peeked)
			}
		})
	}
}

// Where calls are counted, each counts once, whether its response is in the cache or not.
func TestFastPathIsCountedOnce(t *testing.T) {
	f := &cachingTracker{}
	options := proxy.Options{Tracker: f}
	options.Rates = proxy.RateLimits{Anonymous: proxy.Rate{PerSecond: 1, Burst: 4}}
	k := keep(t, serveFast(t, options, time.Minute).URL)
	for range 3 {
		if got := k.exchange(t, "GET /rest/flag_type/New HTTP/1.1\r\nHost: x\r\n\r\n"); got.status != http.StatusOK {
			t.Errorf("got %+v", got)
		}
	}
	refused := false
	for range 20 {
		refused = refused || k.exchange(t, readP+"\r\n").status == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("cached reads are not counted")
	}
}

// Without a cache the tracker is called once for each request.
func TestNoCacheNoFastPath(t *testing.T) {
	f := &fakeTracker{}
	k := keep(t, serveFast(t, proxy.Options{Tracker: f}, time.Minute).URL)
	k.exchange(t, readP+"\r\n")
	if n := len(f.asked()); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// A server that is shut down sends the response that is on its way, although net/http takes the connection for idle.
func TestShutdownSendsFastResponses(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	var waits atomic.Bool
	f := &cachingTracker{before: func() {
		if waits.Load() {
			close(begun)
			<-goOn
		}
	}}
	server := serveFast(t, proxy.Options{Tracker: f}, time.Minute)
	k := keep(t, server.URL)
	for f.peeked.Load() == 0 { // on a busy machine net/http may get the next request as well
		k.exchange(t, readP+"\r\n")
	}
	waits.Store(true)
	k.send(t, readP+"\r\n")
	<-begun
	ended := make(chan error)
	go func() { ended <- server.Config.Shutdown(t.Context()) }()
	time.Sleep(50 * time.Millisecond) // Shutdown closes what is idle first
	close(goOn)
	if got := k.response(t); got.status != http.StatusOK || !strings.Contains(got.body, `"P/"`) {
		t.Errorf("got %+v", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The fast path keeps a connection open as net/http would, and no longer.
func TestFastPathKeepsConnectionsOpen(t *testing.T) {
	t.Parallel()
	const idle = 2400 * time.Millisecond
	f := &cachingTracker{}
	k := keep(t, serveFast(t, proxy.Options{Tracker: f}, idle).URL)
	for range 4 {
		time.Sleep(idle / 3)
		k.exchange(t, readP+"\r\n")
	}
	if f.peeked.Load() != 4 {
		t.Errorf("%d took the fast path", f.peeked.Load())
	}
	begun := time.Now()
	if _, err := k.reader.ReadByte(); err == nil || time.Since(begun) > 3*idle {
		t.Errorf("open for %s after the last response, %v", time.Since(begun), err)
	}
}

// fullTracker refuses all reads, and counts how it was asked.
type fullTracker struct{ asked, refused atomic.Int64 }

func (f *fullTracker) Do(context.Context, upstream.Caller, upstream.Call) (mapping.Reply, error) {
	f.asked.Add(1)
	return mapping.Reply{}, full()
}

func (f *fullTracker) Refuse(upstream.Caller, mapping.Operation) error {
	f.refused.Add(1)
	return full()
}

func full() error {
	return &mapping.Error{Code: mapping.CodeUnavailable, Status: 503, Reason: mapping.ReasonOverload, Message: "Full.", RetryAfter: time.Second}
}

// TestRefusalsTakeTheFastPath once a read was refused: they say the same and are one request each in log and metrics. What no tracker
// would be asked has its own error.
func TestRefusalsTakeTheFastPath(t *testing.T) {
	f := &fullTracker{}
	var log logBuffer
	watcher, records := finishing()
	base := serveFast(t, proxy.Options{Tracker: f, Logger: log.logger(), Observer: watcher}, time.Minute).URL
	for _, path := range []string{"/rest/bug/attachment/1", "/rest/bug/1/attachment"} {
		text := "GET " + path + "?api_key=SECRET HTTP/1.1\r\nHost: x\r\n\r\n"
		want := dial(t, base).exchange(t, text).told()
		<-records
		for end := time.Now().Add(10 * time.Second); ; { // on a busy machine net/http may get the first byte
			before := f.refused.Load()
			k := keep(t, base)
			<-records
			if got := k.exchange(t, text).told(); got != want || !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "Retry-After:[1]") {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
			if record := <-records; record.Status != 503 || record.Reason != mapping.ReasonOverload || len(records) > 0 {
				t.Errorf("recorded: %+v", record)
			}
			if f.refused.Load() > before {
				break
			}
			if time.Now().After(end) {
				t.Fatal("no refusal took the fast path")
			}
		}
	}
	refused := f.refused.Load()
	got := keep(t, base).exchange(t, "GET /rest/bug/attachment/x HTTP/1.1\r\nHost: x\r\n\r\n")
	if got.status < 400 || got.status >= 500 || f.refused.Load() != refused {
		t.Errorf("a request that is not valid: %d", got.status)
	}
	if text := log.String(); strings.Contains(text, "SECRET") || !strings.Contains(text, "reason=overload") {
		t.Errorf("the log is %s", text)
	}
}
