package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"portico/test/process"
	"portico/test/tracker"
)

// collector takes traces as a real one does, and keeps them.
type collector struct {
	url string

	mu      sync.Mutex
	raw     bytes.Buffer
	headers []http.Header
	all     []*tracepb.Span
	about   map[string]string
}

// startCollector serves a collector, started in a way of the test's choice, until the
// test ends.
func startCollector(t *testing.T, start func(*httptest.Server)) *collector {
	t.Helper()
	c := &collector{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var request tracepb.TracesData
		if err == nil {
			err = proto.Unmarshal(text, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Method != http.MethodPost {
			t.Errorf("the collector got %s %s: %v", r.Method, r.URL.Path, err)
		}
		c.keep(r.Header, text, &request)
	}))
	start(server)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) keep(header http.Header, text []byte, request *tracepb.TracesData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(text)
	c.headers = append(c.headers, header)
	for _, resource := range request.ResourceSpans {
		c.about = map[string]string{}
		for _, each := range resource.Resource.Attributes {
			c.about[each.Key] = each.Value.GetStringValue()
		}
		for _, scope := range resource.ScopeSpans {
			c.all = append(c.all, scope.Spans...)
		}
	}
}

// spans are those that have come so far.
func (c *collector) spans() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// await waits for so many spans and gives those of clients' requests, and the calls
// to trackers by the span that they are parts of.
func (c *collector) await(t *testing.T, count int) (requests []*tracepb.Span, calls map[string][]*tracepb.Span) {
	t.Helper()
	process.Eventually(t, fmt.Sprintf("%d spans have come", count), func() bool { return len(c.spans()) >= count })
	calls = map[string][]*tracepb.Span{}
	for _, span := range c.spans() {
		if span.Kind == tracepb.Span_SPAN_KIND_SERVER {
			requests = append(requests, span)
		} else {
			parent := hex.EncodeToString(span.ParentSpanId)
			calls[parent] = append(calls[parent], span)
		}
	}
	if all := len(c.spans()); all != count {
		t.Errorf("%d spans have come, want %d", all, count)
	}
	slices.SortFunc(requests, func(a, b *tracepb.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	return requests, calls
}

// show is a span as a line: its name and what is said of it, in order.
func show(span *tracepb.Span) string {
	said := map[string]string{}
	for _, each := range span.Attributes {
		said[each.Key] = strings.Trim(each.Value.String(), `"`)
		if _, value, found := strings.Cut(each.Value.String(), ":"); found {
			said[each.Key] = strings.Trim(value, `" `)
		}
	}
	line := span.Name
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if name != "portico.request_id" && name != "server.port" {
			line += " " + name + "=" + said[name]
		}
	}
	if span.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		line += " failed" + span.Status.Message
	}
	return line
}

// parentOf is the traceparent that a span sends on.
func parentOf(span *tracepb.Span) string {
	return "00-" + hex.EncodeToString(span.TraceId) + "-" + hex.EncodeToString(span.SpanId) + "-01"
}

// listening is a reference tracker that keeps what headers it saw.
type listening struct {
	*tracker.Server
	url string

	mu   sync.Mutex
	seen []*http.Request
}

func startListening(t *testing.T) *listening {
	t.Helper()
	l := &listening{Server: tracker.New(tracker.Options{Seed: tracker.SeedDemo})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/rest/version" { // a probe
			l.mu.Lock()
			l.seen = append(l.seen, r)
			l.mu.Unlock()
		}
		l.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		_ = l.Close()
		server.Close()
	})
	l.url = server.URL
	return l
}

// last is the last request but those of Portico's own.
func (l *listening) last(t *testing.T) *http.Request {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen) == 0 {
		t.Fatal("the tracker was not asked")
	}
	return l.seen[len(l.seen)-1]
}

// tracedConfig is a configuration with a tracker whose dialect needs no question, and
// with traces.
func tracedConfig(trackerURL, traces string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntrackers: {main: {url: %q, dialect: bugzilla-5}}\n"+
		"timeouts: {drain: 5s}\ntraces: {%s}\n", trackerURL, traces)
}

// startTraced serves a configuration with traces.
func startTraced(t *testing.T, trackerURL, traces string, environ ...string) (clients, operators string) {
	t.Helper()
	clients, operators = serveConfig(t, writeFile(t, "c.yaml", tracedConfig(trackerURL, traces)), environ...)
	return "http://" + clients, "http://" + operators
}
