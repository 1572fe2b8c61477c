package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"portico/mapping"
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
	l := &listening{Server: process.Reference(t, tracker.Options{Seed: tracker.SeedDemo})}
	l.url = process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/rest/version" { // a probe
			l.mu.Lock()
			l.seen = append(l.seen, r)
			l.mu.Unlock()
		}
		l.ServeHTTP(w, r)
	})).String()
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

// secretMark is in everything that must not get into a trace.
const secretMark = "hunter2"

// loud is a request whose every part holds a value that must not be exported.
type loud struct {
	name, method, path, body string
	header                   []string
}

// loudRequests show credentials in every form and name objects in every place, at the
// operations and at what passes through, right and wrong.
func loudRequests() []loud {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secretMark))
	all := []loud{
		{name: "a product", method: "GET", path: "/rest/flag_type/hunter2-product/hunter2-component"},
		{name: "a component", method: "GET", path: "/rest/flag_type/WebShop?component=hunter2"},
		{name: "a bug", method: "GET", path: "/rest/bug/hunter2-alias/attachment?ids=hunter2"},
		{name: "fields", method: "GET", path: "/rest/bug/attachment/1?include_fields=hunter2"},
		{name: "an unusual method", method: "HUNTER2", path: "/rest/bug/1/attachment"},
		{name: "a page", method: "GET", path: "/hunter2/show_bug.cgi?id=hunter2#hunter2"},
		{name: "bad escapes", method: "GET", path: "/rest/flag_type/hunter2%2F%FF"},
		{name: "not JSON", method: "PUT", path: "/rest/bug/attachment/1", body: `{"hunter2"`},
		{name: "XML-RPC", method: "POST", path: "/xmlrpc.cgi", body: "<methodCall>hunter2</methodCall>"},
	}
	for _, header := range []string{
		"X-BUGZILLA-API-KEY", "X-BUGZILLA-TOKEN", "X-BUGZILLA-LOGIN", "X-BUGZILLA-PASSWORD", "Authorization:Bearer ", "Authorization:" + basic + " ",
		"Cookie:Bugzilla_login=1; Bugzilla_logincookie=", "Idempotency-Key", "User-Agent", "Referer", "Traceparent", "Baggage:key=", "If-None-Match",
	} {
		name, before, _ := strings.Cut(header, ":")
		for _, path := range []string{"/rest/flag_type/WebShop", "/rest/bug/1/attachment", "/show_bug.cgi"} {
			all = append(all, loud{name: name, method: "GET", path: path, header: []string{name, before + secretMark}})
		}
	}
	for _, name := range []string{
		"api_key", "Bugzilla_api_key", "login", "Bugzilla_login", "password", "Bugzilla_password", "token", "Bugzilla_token",
	} {
		query := "?" + url.Values{name: {secretMark}}.Encode()
		body := fmt.Sprintf(`{%q: "hunter2", "name": "hunter2", "description": "hunter2", "summary": "hunter2", "file_name": "hunter2", "content_type": "text/plain", "data": "aHVudGVyMg=="}`, name)
		for _, path := range []string{"/rest/flag_type/WebShop", "/rest/bug/1/attachment", "/rest/bug/attachment/1", "/rest/bug/1", "/rest.cgi/version"} {
			all = append(all, loud{name: name, method: "GET", path: path + query})
		}
		all = append(all,
			loud{name: name, method: "POST", path: "/rest/flag_type" + query, body: body},
			loud{name: name, method: "PUT", path: "/rest/flag_type/hunter2" + query, body: body},
			loud{name: name, method: "POST", path: "/rest/bug/1/attachment" + query, body: body},
			loud{name: name, method: "PUT", path: "/rest/bug/attachment/1" + query, body: body},
			loud{name: name, method: "POST", path: "/jsonrpc.cgi" + query, body: body},
		)
	}
	return all
}

// TestNothingSecretInTraces sends every form of credential and every kind of name, to a
// tracker that answers, to one that fails and to one that is away, and looks at all
// bytes that the collector gets.
func TestNothingSecretInTraces(t *testing.T) {
	t.Parallel()
	answers, fails := startListening(t), startListening(t)
	fails.SetFaults([]tracker.Fault{{Kind: tracker.FaultError500}})
	for name, behind := range map[string]string{"answers": answers.url, "fails": fails.url, "away": unusedURL()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := startCollector(t, (*httptest.Server).Start)
			clients, _ := startTraced(t, behind, "endpoint: '"+seen.url+"', headers_env: COLLECTOR", "COLLECTOR=X-Key: hunter2")
			asked := loudRequests()
			for _, each := range asked {
				send(t, each.method, clients+each.path, each.body, each.header...)
			}
			process.Eventually(t, "every request has a span", func() bool { return countRequests(seen) == len(asked) })
			lookForSecrets(t, seen)
		})
	}
	t.Cleanup(func() {
		if len(answers.seen) < len(loudRequests())/2 {
			t.Errorf("only %d requests came through", len(answers.seen))
		}
	})
}

func countRequests(c *collector) int {
	count := 0
	for _, span := range c.spans() {
		if !strings.HasPrefix(span.Name, "tracker ") {
			count++
		}
	}
	return count
}

// lookForSecrets looks at the bytes as they came, and at the words of the spans: there
// is only a handful of them.
func lookForSecrets(t *testing.T, seen *collector) {
	t.Helper()
	seen.mu.Lock()
	raw := strings.ToLower(seen.raw.String())
	seen.mu.Unlock()
	for _, form := range []string{
		secretMark, base64.StdEncoding.EncodeToString([]byte(secretMark))[:8], hex.EncodeToString([]byte(secretMark)), "webshop", "component=", "me:",
	} {
		if strings.Contains(raw, strings.ToLower(form)) {
			t.Errorf("%q is in a trace", form)
		}
	}
	tame := regexp.MustCompile(`^[a-zA-Z0-9_.-]*$`)
	var known []string
	for _, operation := range mapping.Operations() {
		known = append(known, "/rest"+operation.Path(), "/rest/flag_type/{product}")
	}
	names := map[string]bool{}
	for _, span := range seen.spans() {
		names[span.Name] = true
		for _, each := range span.Attributes {
			if value := each.Value.GetStringValue(); !tame.MatchString(value) && !(each.Key == "http.route" && slices.Contains(known, value)) {
				t.Errorf("%s has %s=%q", span.Name, each.Key, value)
			}
		}
		if len(span.Events)+len(span.Links) > 0 || span.Status.GetMessage() != "" || span.TraceState != "" {
			t.Errorf("%s says more than it should: %v", span.Name, span)
		}
	}
	if len(names) > 20 {
		t.Errorf("there are %d names of spans: %v", len(names), names)
	}
}
