package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

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
		if got := ask(t, "GET", base, "", "X-Request-Id", offered).header.Get("X-Request-Id"); len(got) != 24 {
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
		tracker := &fakeTracker{createAttachment: func(_ context.Context, _ upstream.Caller, request mapping.AttachmentCreate) (mapping.Reply, error) {
			made := document(`{"ids":[11]}`)
			made.PathWon = ids != "8" && request.PathBug == "7"
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
	var got upstream.Caller
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
		base := serve(t, proxy.Options{Tracker: recordCallers(&got), TrustedProxies: c.trusted})
		ask(t, "GET", base+"/rest/flag_type/P", "", "X-Forwarded-For", c.forwarded).wantStatus(t, 200)
		if got.Address != c.want {
			t.Errorf("%q: %s, want %s", c.forwarded, got.Address, c.want)
		}
	}
}

func TestDeadlineOfACall(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tracker := &fakeTracker{
		flagTypes: func(ctx context.Context, _ upstream.Caller, _ mapping.FlagTypesRequest) (mapping.Reply, error) {
			return mapping.Reply{}, wait(ctx)
		},
		updateFlagTypes: func(ctx context.Context, _ upstream.Caller, _ mapping.FlagTypeUpdate) (mapping.Reply, error) {
			if at, ok := ctx.Deadline(); !ok || time.Until(at) > time.Second {
				return mapping.Reply{}, errors.New("no deadline")
			}
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			return mapping.Reply{}, wait(child)
		},
	}
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
	tracker := &fakeTracker{attachment: func(ctx context.Context, _ upstream.Caller, _ mapping.AttachmentsRequest) (mapping.Reply, error) {
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
	for _, failed := range []error{context.Canceled, &mapping.Error{Code: 200503, Status: 503, Reason: mapping.ReasonCanceled}} {
		hangUp(t, failed)
	}
}

// hangUp leaves a call that then ends with failed.
func hangUp(t *testing.T, failed error) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	tracker := &fakeTracker{flagTypes: func(ctx context.Context, _ upstream.Caller, _ mapping.FlagTypesRequest) (mapping.Reply, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return mapping.Reply{}, failed
	}}
	watcher, records := finishing()
	base := serve(t, proxy.Options{Tracker: tracker, Observer: watcher})
	connection, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(connection, "GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	connection.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if got := <-records; got.Status != proxy.StatusClientGone || got.Reason != mapping.ReasonCanceled {
		t.Errorf("record %+v", got)
	}
}
