package proxy_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/test/process"
	"portico/upstream"
)

// logBuffer is a log that may be read while it is written.
type logBuffer struct{ process.Output }

func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// finishing gives an observer and a way to wait for its records.
func finishing() (proxy.Observer, <-chan proxy.Record) {
	records := make(chan proxy.Record, 100)
	return observer(func(r proxy.Record) { records <- r }), records
}

func TestRequestIDs(t *testing.T) {
	base := serve(t, proxy.Options{}) + "/rest/flag_type/P"
	if got := ask(t, "GET", base, "", "X-Request-Id", "client-1.2:3").header.Get("X-Request-Id"); got != "client-1.2:3" {
		t.Errorf("id %q", got)
	}
	for _, offered := range []string{"", "a b", "ä", strings.Repeat("x", 65), "<script>"} {
		if got := ask(t, "GET", base, "", "X-Request-Id", offered).header.Get("X-Request-Id"); !regexp.MustCompile(`^[A-Z2-7]{26}$`).MatchString(got) {
			t.Errorf("%q became %q", offered, got)
		}
	}
}

func TestOneLinePerRequestWithoutSecrets(t *testing.T) {
	var log logBuffer
	watcher, records := finishing()
	leak := &url.Error{Op: "Get", URL: "http://t.example/?api_key=SECRET", Err: errors.New("refused")}
	tracker := failing(&mapping.Error{Code: 200502, Status: 502, Message: "m", Reason: mapping.ReasonUnreachable, Err: leak})
	base := serve(t, proxy.Options{Tracker: tracker, Logger: log.logger(), Observer: watcher})
	ask(t, "GET", base+"/rest/flag_type/"+strings.Repeat("p", 500)+"?api_key=SECRET&Bugzilla_password=SECRET", "",
		"X-Request-Id", "id-1", "Authorization", "Bearer SECRET", "Cookie", "Bugzilla_logincookie=SECRET")
	got := <-records
	line := log.String()
	if strings.Count(line, "\n") != 1 || strings.Contains(line, "SECRET") {
		t.Errorf("log %s", line)
	}
	for _, part := range []string{"id=id-1", "client=127.0.0.1", "method=GET", "operation=flag_type.get", "status=502",
		"reason=tracker-unreachable", "cause=\"Get: refused\"", "pppp…", "level=WARN"} {
		if !strings.Contains(line, part) {
			t.Errorf("%s is not in %s", part, line)
		}
	}
	if len(line) > 600 || got.Operation != mapping.OpFlagTypes || got.Status != 502 || got.Reason != mapping.ReasonUnreachable || got.Bytes == 0 || got.Duration <= 0 {
		t.Errorf("record %+v, line of %d bytes", got, len(line))
	}
	// A client may send any text as its method, also one that should not appear in a log, and a query whose question mark was escaped.
	ask(t, "PLANTED", base+"/rest/flag_type/P", "")
	ask(t, "GET", base+"/rest/flag_type/P%3Fapi_key%3DSECRET", "").wantError(t, 400, "32000")
	<-records
	<-records
	if text := log.String(); strings.Contains(text, "PLANTED") || strings.Contains(text, "SECRET") ||
		!strings.Contains(text, "method=OTHER") || !strings.Contains(text, "api_key%3D…") {
		t.Errorf("log %s", text)
	}
}

// A conflict of path and ids is logged and counted, whether Portico sees it or the client of the tracker.
func TestConflictIsLoggedAndCounted(t *testing.T) {
	for _, ids := range []string{"8", `"al"`} {
		var log logBuffer
		watcher, records := finishing()
		tracker := &fakeTracker{do: func(_ context.Context, call upstream.Call) (mapping.Reply, error) {
			made := document(`{"ids":[11]}`)
			made.PathWon = ids != "8" && call.CreateAttachment.PathBug == "7"
			return mapping.Reply{Document: made}, nil
		}}
		base := serve(t, proxy.Options{Tracker: tracker, Logger: log.logger(), Observer: watcher})
		ask(t, "POST", base+"/rest/bug/7/attachment"+key, `{"ids":[`+ids+`],"data":"QUJD","file_name":"f","summary":"s","is_patch":1}`).wantStatus(t, 201)
		if got := <-records; !got.Conflict || !strings.Contains(log.String(), "ids_conflict=true") {
			t.Errorf("record %+v, log %s", got, log.String())
		}
	}
}

func TestClientBehindTrustedProxies(t *testing.T) {
	tracker := &fakeTracker{}
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		trusted         []netip.Prefix
		forwarded, want string
	}{
		{nil, "1.2.3.4", "127.0.0.1"},
		{trusted, "", "127.0.0.1"},
		{trusted, "1.2.3.4", "1.2.3.4"},
		{trusted, "9.9.9.9, 1.2.3.4, 10.1.1.1", "1.2.3.4"},
		{trusted, "10.2.2.2", "10.2.2.2"},
		{trusted, "garbage", "127.0.0.1"},
		{trusted, "2001:db8::1", "2001:db8::1"},
		{trusted, "[2001:db8::1]", "2001:db8::1"},
		{trusted, "9.9.9.9, [2001:db8::1]:4711", "2001:db8::1"},
		{trusted, "1.2.3.4:4711, 10.1.1.1:80", "1.2.3.4"},
	} {
		base := serve(t, proxy.Options{Tracker: tracker, TrustedProxies: c.trusted})
		ask(t, "GET", base+"/rest/flag_type/P", "", "X-Forwarded-For", c.forwarded).wantStatus(t, 200)
		if got := tracker.caller.Address; got != c.want {
			t.Errorf("%q: %s, want %s", c.forwarded, got, c.want)
		}
	}
}

func TestDeadlineOfACall(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tracker := &fakeTracker{do: func(ctx context.Context, _ upstream.Call) (mapping.Reply, error) {
		if at, ok := ctx.Deadline(); !ok || time.Until(at) > time.Second {
			return mapping.Reply{}, errors.New("no deadline")
		}
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		return mapping.Reply{}, wait(child)
	}}
	base := serve(t, proxy.Options{Tracker: tracker, Timeout: 20 * time.Millisecond})
	ask(t, "GET", base+"/rest/flag_type/P", "").wantError(t, 504, "200504")
	response := ask(t, "PUT", base+"/rest/flag_type/P"+key, "{}")
	response.wantError(t, 504, "200504")
	if got := response.header.Get("Portico-Error"); got != "tracker-timeout; outcome=unknown" {
		t.Errorf("Portico-Error %q", got)
	}
}

// The deadline is for the beginning of a response: a long stream outlives it.
func TestDeadlineEndsWhereTheResponseBegins(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	tracker := &fakeTracker{do: func(ctx context.Context, _ upstream.Call) (mapping.Reply, error) {
		slow, w := io.Pipe()
		go func() {
			timer := time.NewTimer(3 * limit / 2)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				w.CloseWithError(ctx.Err())
			case <-timer.C:
				_, _ = io.WriteString(w, `,"attachments":{}}`)
				w.Close()
			}
		}()
		return mapping.Reply{Document: mapping.NewStream([]byte(`{"bugs":{}`), slow, -1)}, nil
	}}
	base := serve(t, proxy.Options{Tracker: tracker, Timeout: limit})
	if response := ask(t, "GET", base+"/rest/bug/attachment/1", ""); response.body != `{"bugs":{},"attachments":{}}` {
		t.Errorf("got %+v", response)
	}
}

func TestClientHangsUp(t *testing.T) {
	for _, c := range []struct {
		text      string
		failed    error
		operation mapping.Operation
	}{
		{"GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\n\r\n", context.Canceled, mapping.OpFlagTypes},
		{"GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\n\r\n", &mapping.Error{Code: 200503, Status: 503, Reason: mapping.ReasonCanceled}, mapping.OpFlagTypes},
		{"POST /xmlrpc.cgi HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", context.Canceled, proxy.OpPassthrough},
	} {
		begun, ended := make(chan struct{}), make(chan error, 1)
		wait := func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			ended <- ctx.Err()
			return c.failed
		}
		watcher, records := finishing()
		_, base := behind(t, "", func(o *proxy.Options) {
			o.Observer, o.Timeout = watcher, 90*time.Second
			o.Tracker = &fakeTracker{do: func(ctx context.Context, _ upstream.Call) (mapping.Reply, error) { return mapping.Reply{}, wait(ctx) }}
			o.Passthrough.Transport = roundTripper(func(r *http.Request) (*http.Response, error) { return nil, wait(r.Context()) })
		})
		client := dial(t, base)
		client.send(t, c.text)
		<-begun
		client.Close()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%q: the call ended with %v", c.text, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q: the call goes on", c.text)
		}
		if got := <-records; got.Status != proxy.StatusClientGone || got.Reason != mapping.ReasonCanceled || got.Operation != c.operation {
			t.Errorf("%q: record %+v", c.text, got)
		}
	}
}

// A client that closes its own side of the connection counts as one that has hung up. It can still read, so the response must not say that a write
// was not carried out.
func TestClientClosesItsSideOnly(t *testing.T) {
	for text, reason := range map[string]string{
		"GET /x HTTP/1.1\r\nHost: x\r\n\r\n":                        "canceled",
		"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx": "canceled; outcome=unknown",
	} {
		begun := make(chan struct{})
		_, base := behind(t, "", func(o *proxy.Options) {
			o.Passthrough.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				close(begun)
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
		})
		client := dial(t, base)
		client.send(t, text)
		<-begun
		must(t, client.Conn.(*net.TCPConn).CloseWrite())
		if got := client.response(t); got.status != proxy.StatusClientGone || got.header.Get("Portico-Error") != reason {
			t.Errorf("%q: %d, %q, want %q", text, got.status, got.header.Get("Portico-Error"), reason)
		}
	}
}

// writes keeps each write of a log that is not empty.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	if len(p) > 0 {
		*w = append(*w, string(p))
	}
	return len(p), nil
}

// Lines that come fast share a write. None is late, and none comes after what was logged later.
func TestLinesOfRequestsShareWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log writes
		logger := slog.New(proxy.LogHandler(&log, func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) }))
		tracker := &fakeTracker{}
		server, err := proxy.New(proxy.Options{Tracker: tracker, Logger: logger})
		must(t, err)
		get := func(id string) {
			request := httptest.NewRequest(http.MethodGet, "/rest/flag_type/P", http.NoBody)
			request.Header.Set("X-Request-Id", id)
			server.ServeHTTP(httptest.NewRecorder(), request)
		}
		want := func(what string, lines ...string) {
			t.Helper()
			synctest.Wait()
			got := slices.Collect(strings.Lines(strings.Join(log, "")))
			if len(log) != 1 || len(got) != len(lines) {
				t.Fatalf("%s: %d writes of %q, want one of %d lines", what, len(log), got, len(lines))
			}
			for i, part := range lines {
				if !strings.Contains(got[i], part) {
					t.Errorf("%s: line %d is %q, want %s", what, i+1, got[i], part)
				}
			}
			log = nil
		}
		get("alone")
		time.Sleep(5 * time.Millisecond)
		want("of one request", "id=alone ")
		get("a")
		get("b")
		time.Sleep(5 * time.Millisecond)
		want("after 5 ms", "id=a ", "id=b ")
		get("c")
		logger.Info("something else")
		want("before another line", "id=c ", "something else")
		get("d")
		tracker.do = failing(&mapping.Error{Code: mapping.CodeBadGateway, Status: http.StatusBadGateway, Message: "m"}).do
		get("e")
		want("of a failed request", "id=d ", "id=e ")
	})
}

// lateLog takes lines of every level, and holds each back until the test has its response.
type lateLog struct {
	slog.Handler
	t         *testing.T
	responded chan struct{}
}

func (lateLog) Enabled(context.Context, slog.Level) bool { return true }

func (l lateLog) Handle(context.Context, slog.Record) error {
	select {
	case <-l.responded:
	case <-time.After(time.Minute):
		l.t.Error("the log line came before the response")
	}
	return nil
}

func TestResponsesLeaveBeforeTheirLogLine(t *testing.T) {
	late := lateLog{Handler: slog.DiscardHandler, t: t, responded: make(chan struct{})}
	base := serve(t, proxy.Options{Logger: slog.New(late)})
	ask(t, http.MethodGet, base+"/rest/bug/1/attachment", "").wantStatus(t, http.StatusOK)
	close(late.responded)
}

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("key=SECRET") }

// wantUnknown tells that Portico failed, and whether it says that a write may have been carried out.
func wantUnknown(t *testing.T, got reply, unknown bool) {
	t.Helper()
	status, header := 500, "internal"
	if unknown {
		status, header = 504, "internal; outcome=unknown"
	}
	if got.status != status || got.header.Get("Portico-Error") != header {
		t.Errorf("%d %q, want %d %q", got.status, got.header.Get("Portico-Error"), status, header)
	}
}

// TestOurOwnFailureAfterAWriteWasHandedOver: after a panic or an unknown error the outcome of a write is unknown.
func TestOurOwnFailureAfterAWriteWasHandedOver(t *testing.T) {
	tracker := &fakeTracker{do: func(_ context.Context, call upstream.Call) (mapping.Reply, error) {
		switch call.Operation {
		case mapping.OpUpdateFlagTypes:
			panic("key=SECRET")
		case mapping.OpUpdateAttachments, mapping.OpFlagTypes:
			return mapping.Reply{}, errors.New("of no known kind")
		}
		return success(call.Operation)
	}}
	var log logBuffer
	_, base := behind(t, "", func(o *proxy.Options) {
		o.Tracker, o.Passthrough.Transport, o.Logger = tracker, panicking{}, log.logger()
	})
	wantUnknown(t, ask(t, "PUT", base+"/rest/flag_type/1"+key, `{"name":"n"}`), true)
	wantUnknown(t, ask(t, "PUT", base+"/rest/bug/attachment/1"+key, `{"summary":"s"}`), true)
	wantUnknown(t, ask(t, "GET", base+"/rest/flag_type/P", ""), false)
	wantUnknown(t, ask(t, "POST", base+"/xmlrpc.cgi", "x"), true)
	wantUnknown(t, ask(t, "GET", base+"/index.cgi", ""), false)
	ask(t, "GET", base+"/rest/bug/5/attachment", "").wantStatus(t, 200) // a panic costs one request
	if text := log.String(); strings.Contains(text, "SECRET") || !strings.Contains(text, "record_test.go") {
		t.Errorf("log %s", text)
	}
}

// A response to a write that cannot be given its form any more leaves the client without it, not the tracker
// without the write. Nothing of that response goes out with the error.
func TestResponseToAWriteThatCannotBeRead(t *testing.T) {
	broken := func() *mapping.Document {
		d := stream(`{"flagtypes":[`, errors.New("gone"))
		d.ETag, d.Cookies = `"tag"`, []string{"a=secret"}
		return d
	}
	tracker := &fakeTracker{do: func(context.Context, upstream.Call) (mapping.Reply, error) {
		return mapping.Reply{Document: broken()}, nil
	}}
	base := serve(t, proxy.Options{Responses: proxy.ResponsesInterface, Tracker: tracker})
	for method, c := range map[string]struct{ path, reason string }{
		"PUT": {"/rest/flag_type/1" + key, "bad-answer; outcome=unknown"},
		"GET": {"/rest/bug/5/attachment", "bad-answer"},
	} {
		got := ask(t, method, base+c.path, map[string]string{"PUT": "{}"}[method])
		if got.header.Get("Portico-Error") != c.reason || got.header.Get("Etag") != "" || got.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: status %d, %v", method, got.status, got.header)
		}
	}
}

// A long response to a create is not kept, so that the outcome of the next request with its key is unknown.
func TestLongResponseToACreateIsNotKept(t *testing.T) {
	tracker := &fakeTracker{do: func(context.Context, upstream.Call) (mapping.Reply, error) {
		return says(`{"id":1,"more":"` + strings.Repeat("x", 32<<10) + `"}`)
	}}
	base := serve(t, proxy.Options{Tracker: tracker})
	ask(t, "POST", base+"/rest/flag_type", createType, "Idempotency-Key", "a").wantStatus(t, 201)
	again := ask(t, "POST", base+"/rest/flag_type", createType, "Idempotency-Key", "a")
	if created := len(tracker.asked()); created != 1 || again.status != 504 || !strings.HasSuffix(again.header.Get("Portico-Error"), "; outcome=unknown") {
		t.Errorf("created %d times, then status %d and %q", created, again.status, again.header.Get("Portico-Error"))
	}
}
