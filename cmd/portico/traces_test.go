package main

import (
	"bytes"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/test/process"
	"portico/test/tracker"
)

const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan   = "00f067aa0ba902b7"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

// TestOneRequestIsOneTree follows requests of every kind from the client to the tracker, with nothing sampled but what the client has.
func TestOneRequestIsOneTree(t *testing.T) {
	t.Parallel()
	const read = "flag_type.get http.request.method=GET http.response.status_code=200 http.route=/rest/flag_type/{product} "
	const refused = "flag_type.get http.request.method=GET http.response.status_code=400 http.route=/rest/flag_type/{product}"
	const call = " http.request.method=GET http.response.status_code=200 portico.operation="
	rows := []struct {
		name, path, fault string
		want              []string
	}{
		{"a read", "/rest/flag_type/WebShop", "", []string{
			read + "portico.cache=miss portico.operation=flag_type.get",
			"tracker flag_type.get" + call + "flag_type.get portico.outcome=ok portico.tracker=main portico.tries=1 server.address=127.0.0.1"}},
		{"passing through", "/show_bug.cgi?id=1", "", []string{
			"passthrough http.request.method=GET http.response.status_code=200 portico.operation=passthrough",
			"tracker passthrough" + call + "passthrough portico.outcome=ok portico.tracker=main portico.tries=1 server.address=127.0.0.1"}},
		{"a read that is tried again", "/rest/flag_type/WebShop?component=Accounts", "op=flag_type.get,nth=1,kind=reset-before", []string{
			read + "portico.cache=miss portico.operation=flag_type.get",
			"tracker flag_type.get http.request.method=GET http.request.resend_count=1 http.response.status_code=200 portico.operation=flag_type.get" +
				" portico.outcome=ok portico.tracker=main portico.tries=2 server.address=127.0.0.1"}},
		{"the same from memory, by another path", "/rest/flag_type/WebShop/Accounts", "", []string{
			strings.Replace(read, "{product}", "{product}/{component}", 1) + "portico.cache=hit portico.operation=flag_type.get"}},
		{"a read that fails", "/rest/bug/1/attachment", "kind=html200", []string{
			"attachment.list error.type=bad-answer http.request.method=GET http.response.status_code=502 http.route=/rest/bug/{bug_id}/attachment" +
				" portico.operation=attachment.list portico.reason=bad-answer failed",
			"tracker attachment.list error.type=bad_answer http.request.method=GET http.response.status_code=200 portico.operation=attachment.list" +
				" portico.outcome=bad_answer portico.tracker=main portico.tries=1 server.address=127.0.0.1 failed"}},
		{"what the client does wrong", "/rest/bug/%00/attachment", "", []string{
			"attachment.list http.request.method=GET http.response.status_code=400 http.route=/rest/bug/{bug_id}/attachment" +
				" portico.operation=attachment.list portico.reason=invalid-request"}},
		{"a wrong product", "/rest/flag_type/%00", "", []string{refused + " portico.operation=flag_type.get portico.reason=invalid-request"}},
		{"a wrong product with a component", "/rest/flag_type/%00/Accounts", "", []string{
			refused + "/{component} portico.operation=flag_type.get portico.reason=invalid-request"}},
	}
	seen, behind := startCollector(t, (*httptest.Server).Start), startListening(t)
	clients, _ := startTraced(t, behind.url, "sample: 0, endpoint: '"+seen.url+"'")
	told, count := make([]http.Header, len(rows)), 0
	for i, row := range rows {
		setFault(t, behind, row.fault)
		send(t, "GET", clients+row.path, "", "traceparent", clientParent, "tracestate", "vendor=1")
		told[i] = behind.last(t).Header
		count += len(row.want)
	}
	requests, calls := seen.await(t, count)
	for i, row := range rows {
		request := requests[i]
		if hex.EncodeToString(request.TraceId) != clientTrace || hex.EncodeToString(request.ParentSpanId) != clientSpan {
			t.Errorf("%s: the client's trace is not continued: %v", row.name, request)
		}
		got := []string{show(request)}
		for _, each := range calls[hex.EncodeToString(request.SpanId)] {
			got = append(got, show(each))
			if !bytes.Equal(each.TraceId, request.TraceId) || told[i].Get("Traceparent") != parentOf(each) || told[i].Get("Tracestate") != "vendor=1" {
				t.Errorf("%s: the tracker is told %q, %q, want %q", row.name, told[i].Values("Traceparent"), told[i].Get("Tracestate"), parentOf(each))
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: the spans are\n%s\nwant\n%s", row.name, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}

// setFault lets the tracker fail as a text says; without one it works.
func setFault(t *testing.T, behind *listening, text string) {
	t.Helper()
	if text == "" {
		behind.SetFaults(nil)
		return
	}
	fault, err := tracker.ParseFault(text)
	must(t, err)
	behind.SetFaults([]tracker.Fault{fault})
}

// TestAnswersFromMemoryAreTraced reads over one connection, so that all but the first
// request take the fast path.
func TestAnswersFromMemoryAreTraced(t *testing.T) {
	t.Parallel()
	seen, behind := startCollector(t, (*httptest.Server).Start), startListening(t)
	clients, operators := startTraced(t, behind.url, "endpoint: '"+seen.url+"'")
	for range 4 {
		get(t, clients+"/rest/flag_type/WebShop")
	}
	requests, calls := seen.await(t, 5)
	traces := map[string]bool{}
	for i, request := range requests {
		outcome, children := "hit", 0
		if i == 0 {
			outcome, children = "miss", 1
		}
		if got := show(request); !strings.Contains(got, "portico.cache="+outcome+" ") || len(calls[hex.EncodeToString(request.SpanId)]) != children {
			t.Errorf("request %d, with %d calls: %s", i, len(calls[hex.EncodeToString(request.SpanId)]), got)
		}
		traces[hex.EncodeToString(request.TraceId)] = true
	}
	if len(traces) != 4 {
		t.Errorf("4 requests are %d traces", len(traces))
	}
	if seen.about["service.name"] != "portico" || seen.about["service.version"] == "" {
		t.Errorf("the resource is %v", seen.about)
	}
	_, plain := send(t, "GET", operators+"/metrics", "", "Accept", "text/plain")
	response, exposed := send(t, "GET", operators+"/metrics", "", "Accept", "application/openmetrics-text; version=1.0.0")
	kind := response.Header.Get("Content-Type")
	exemplars := regexp.MustCompile(`portico_request_seconds_bucket{operation="flag_type.get",le="[^"]+"} \d+ # {trace_id="([0-9a-f]{32})"}`).FindAllStringSubmatch(exposed, -1)
	if len(exemplars) == 0 || !strings.HasPrefix(kind, "application/openmetrics-text") || strings.Contains(plain, "trace_id") {
		t.Errorf("no exemplars as %s:\n%s", kind, exposed)
	}
	for _, exemplar := range exemplars {
		if !traces[exemplar[1]] {
			t.Errorf("the exemplar %s is of no request", exemplar[1])
		}
	}
	process.Eventually(t, "5 spans and the call are counted", func() bool {
		counted := get(t, operators+"/metrics")
		return strings.Contains(counted, "\nportico_trace_spans_total 5\n") && strings.Contains(counted, "\nportico_tracker_calls_total{")
	})
}

// TestWhatIsNotSampled looks at traces that are not sampled: the tracker is told so,
// and the collector nothing.
func TestWhatIsNotSampled(t *testing.T) {
	t.Parallel()
	seen, behind := startCollector(t, (*httptest.Server).Start), startListening(t)
	clients, operators := startTraced(t, behind.url, "sample: 0, endpoint: '"+seen.url+"'")
	for _, tt := range []struct{ name, parent, want string }{
		{"the client has no trace", "", "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$"},
		{"it does not record its own", "00-" + clientTrace + "-" + clientSpan + "-00", "^00-" + clientTrace + "-[0-9a-f]{16}-00$"},
		{"it sends nonsense", "00-hello-01", "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$"},
	} {
		for _, path := range []string{"/rest/bug/1/attachment", "/show_bug.cgi"} {
			header := []string{"tracestate", "vendor=1"}
			if tt.parent != "" {
				header = append(header, "traceparent", tt.parent)
			}
			send(t, "GET", clients+path, "", header...)
			got := behind.last(t).Header
			if !regexp.MustCompile(tt.want).MatchString(got.Get("Traceparent")) || len(got.Values("Traceparent")) != 1 {
				t.Errorf("%s, %s: the tracker is told %q", tt.name, path, got.Values("Traceparent"))
			}
			if state := got.Get("Tracestate"); (state != "") != strings.Contains(tt.want, clientTrace) {
				t.Errorf("%s, %s: the tracker is told the state %q", tt.name, path, state)
			}
		}
	}
	if _, exposed := send(t, "GET", operators+"/metrics", "", "Accept", "application/openmetrics-text"); strings.Contains(exposed, "trace_id") {
		t.Errorf("an exemplar of what is not sampled:\n%s", exposed)
	}
	send(t, "GET", clients+"/rest/bug/1/attachment", "", "traceparent", clientParent)
	seen.await(t, 2)
}

// TestWithoutTraces: nothing is added, and what passes through stays what it is.
func TestWithoutTraces(t *testing.T) {
	behind := startListening(t)
	clients, _ := startTraced(t, behind.url, "endpoint: ''")
	for path, want := range map[string]string{"/rest/bug/1/attachment": "", "/show_bug.cgi": clientParent} {
		send(t, "GET", clients+path, "", "traceparent", clientParent)
		if got := behind.last(t).Header.Get("Traceparent"); got != want {
			t.Errorf("%s: the tracker is told %q, want %q", path, got, want)
		}
	}
}

// TestCollectorDoesNotMatter asks a Portico whose collector is away, hangs or has no
// use for traces: clients notice nothing, the spans are counted, and the end is in time.
func TestCollectorDoesNotMatter(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // and never accepts
	must(t, err)
	defer hangs.Close()
	const spans = 2560 // more than may wait
	lineOfRequest := regexp.MustCompile(`"duration":"[0-9.]+(ns|µs|ms|s)".*"trace_id":"` + clientTrace + `"`)
	for name, address := range map[string]string{
		"away": unusedURL(), "hangs": "http://" + hangs.Addr().String(), "refuses": stub(t, http.NotFound),
	} {
		t.Run(name, func(t *testing.T) {
			behind := startListening(t)
			cfg, problems := config.Load(nil, nil, writeFile(t, "c.yaml", tracedConfig(behind.url, "endpoint: '"+address+"'")))
			if config.Fatal(problems) {
				t.Fatal(texts(problems))
			}
			before := goleak.IgnoreCurrent()
			var log process.Output
			service := app.New(&log, cfg)
			rt, err := service.Build(t.Context(), cfg)
			must(t, err)
			longest := time.Duration(0)
			for range spans {
				response, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rest/flag_type/WebShop", nil)
				request.Header.Set("Traceparent", clientParent)
				began := time.Now()
				rt.Front.ServeHTTP(response, request)
				if longest = max(longest, time.Since(began)); response.Code != http.StatusOK {
					t.Fatalf("%d: %s", response.Code, response.Body)
				}
			}
			began := time.Now()
			if err := service.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("the end takes %s", took)
			}
			if longest > 5*time.Second { // who finds no room for a span would wait until a batch has failed
				t.Errorf("a client waited for the collector: asking once took %s", longest)
			}
			wantDropped(t, rt, 256)
			if name != "hangs" && !strings.Contains(log.String(), "traces cannot be sent") || strings.Contains(log.String(), address+"/v1") {
				t.Errorf("the log does not tell: %s", log.String())
			}
			if !lineOfRequest.MatchString(log.String()) {
				t.Errorf("the line of a request does not name its trace, or its duration with a unit: %s", log.String())
			}
			// A batch that is cut off at the end stops a moment later, and on a busy machine that is seconds.
			process.Eventually(t, "no goroutine is left", func() bool { return goleak.Find(before) == nil })
		})
	}
}

// wantDropped waits until the metrics count that many dropped spans: a batch that is cut off at the end is counted a moment later.
func wantDropped(t *testing.T, rt *app.Runtime, least int) {
	t.Helper()
	var page string
	process.Eventually(t, fmt.Sprintf("%d spans are counted as dropped", least), func() bool {
		response := httptest.NewRecorder()
		rt.Operators.ServeHTTP(response, httptest.NewRequest("GET", "http://127.0.0.1/metrics", nil))
		page = response.Body.String()
		dropped := 0
		for _, m := range regexp.MustCompile(`portico_trace_spans_dropped_total\{reason="[a-z-]+"\} (\d+)`).FindAllStringSubmatch(page, -1) {
			n, err := strconv.Atoi(m[1])
			must(t, err)
			dropped += n
		}
		return dropped >= least
	})
}

// TestReloadReplacesTheCollector: after a reload spans go to the new collector, and those of before are not lost.
func TestReloadReplacesTheCollector(t *testing.T) {
	t.Parallel()
	first, second, behind := startCollector(t, (*httptest.Server).Start), startCollector(t, (*httptest.Server).Start), startListening(t)
	file := writeFile(t, "c.yaml", tracedConfig(behind.url, "endpoint: '"+first.url+"'"))
	process, at := startServe(t, file)
	for _, next := range []string{second.url + "/v1/traces", "", ""} {
		get(t, "http://"+at[0]+"/rest/bug/1/attachment")
		copyFile(t, writeFile(t, "next.yaml", tracedConfig(behind.url, "endpoint: '"+next+"'")), file)
		reload(t, process, "http://"+at[1])
	}
	for _, each := range []*collector{first, second} {
		each.await(t, 2)
	}
}

// TestCollectorBehindTLSGetsHeaders sends traces with a secret to a collector whose
// certificate only a file vouches for.
func TestCollectorBehindTLSGetsHeaders(t *testing.T) {
	// What the library would take from its own variables does not count.
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-other=1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	behind, ca := startListening(t), ""
	seen := startCollector(t, func(s *httptest.Server) {
		s.StartTLS()
		ca = writeFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	})
	clients, _ := startTraced(t, behind.url, "endpoint: '"+seen.url+"', ca_file: '"+ca+"', headers_env: COLLECTOR",
		"COLLECTOR=authorization: Bearer for-the-collector\nx-tenant: shop\n")
	get(t, clients+"/rest/bug/1/attachment")
	seen.await(t, 2)
	header := seen.headers[0]
	if header.Get("Authorization") != "Bearer for-the-collector" || header.Get("X-Tenant") != "shop" || header.Get("X-Other") != "" {
		t.Errorf("the collector gets %q", header)
	}
}

// TestTracesFollowNoRedirect: what the configuration says of a collector is not for
// another server.
func TestTracesFollowNoRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := stub(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server gets traces and %q", r.Header.Get("X-Key"))
	})
	turns := stub(t, http.RedirectHandler(elsewhere, http.StatusTemporaryRedirect).ServeHTTP)
	clients, operators := startTraced(t, startListening(t).url, "endpoint: '"+turns+"', headers_env: COLLECTOR", "COLLECTOR=X-Key: k")
	get(t, clients+"/rest/bug/1/attachment")
	process.Eventually(t, "the spans are dropped", func() bool {
		return strings.Contains(get(t, operators+"/metrics"), `portico_trace_spans_dropped_total{reason="not-sent"} 2`)
	})
}
