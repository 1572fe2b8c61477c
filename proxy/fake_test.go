package proxy_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"portico/mapping"
	"portico/proxy"
	"portico/proxy/fastpath"
	"portico/test/process"
	"portico/upstream"
)

// fakeTracker is a Tracker whose responses a test writes down, in do. Without it each is an empty success. It keeps what it was asked last.
type fakeTracker struct {
	do func(ctx context.Context, call upstream.Call) (mapping.Reply, error)

	mu      sync.Mutex
	calls   []mapping.Operation
	last    upstream.Call
	caller  upstream.Caller
	content string // of an attachment to create, read while it was open
}

// Do implements upstream.Tracker.
func (f *fakeTracker) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	f.mu.Lock()
	f.calls, f.last, f.caller = append(f.calls, call.Operation), call, caller
	f.mu.Unlock()
	if create := call.CreateAttachment; create != nil && create.Data != nil {
		text, err := io.ReadAll(create.Data.Reader())
		if f.content = string(text); err != nil {
			return mapping.Reply{}, err
		}
	}
	if f.do == nil {
		return success(call.Operation)
	}
	return f.do(ctx, call)
}

// asked lists the calls so far.
func (f *fakeTracker) asked() []mapping.Operation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

const noFlagTypes = `{"bug":[],"attachment":[]}`

// success is the reply to an operation that finds or changes next to nothing.
func success(operation mapping.Operation) (mapping.Reply, error) {
	switch operation {
	case mapping.OpFlagTypes:
		return says(noFlagTypes)
	case mapping.OpCreateFlagType:
		return says(`{"id":1,"flag_id":1}`)
	case mapping.OpUpdateFlagTypes:
		return says(`{"flagtypes":[]}`)
	case mapping.OpBugAttachments:
		return says(`{"bugs":{"5":[]},"attachments":{}}`)
	case mapping.OpAttachment:
		return says(`{"bugs":{},"attachments":{}}`)
	case mapping.OpCreateAttachment:
		return says(`{"ids":[1]}`)
	}
	return says(`{"attachments":[]}`)
}

func document(text string) *mapping.Document { return mapping.NewDocument([]byte(text)) }

func says(text string) (mapping.Reply, error) { return mapping.Reply{Document: document(text)}, nil }

// responding is a tracker with documents for reads of attachments.
func responding(documents func() *mapping.Document) *fakeTracker {
	return &fakeTracker{do: func(_ context.Context, call upstream.Call) (mapping.Reply, error) {
		if call.Attachments == nil {
			return success(call.Operation)
		}
		return mapping.Reply{Document: documents()}, nil
	}}
}

func failing(err error) *fakeTracker {
	return &fakeTracker{do: func(context.Context, upstream.Call) (mapping.Reply, error) { return mapping.Reply{}, err }}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a Server on a real socket and gives its base URL.
func serve(t *testing.T, options proxy.Options) string {
	t.Helper()
	return start(t, options, func(server *httptest.Server, _ *proxy.Server) {
		server.Listener = proxy.Listener(server.Listener, logger(options))
		server.Config.ConnContext, server.Config.MaxHeaderBytes = upstream.WithServer, 16<<10
	}).URL
}

// logger is the log of a Server, which may have none.
func logger(options proxy.Options) *slog.Logger {
	return cmp.Or(options.Logger, slog.New(slog.DiscardHandler))
}

// start starts a Server on a real socket, whose settings a test makes before.
func start(t *testing.T, options proxy.Options, set func(*httptest.Server, *proxy.Server)) *httptest.Server {
	t.Helper()
	if options.Tracker == nil {
		options.Tracker = &fakeTracker{}
	}
	handler, err := proxy.New(options)
	must(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState, server.Config.ErrorLog = proxy.ConnState, log.New(io.Discard, "", 0)
	set(server, handler)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// reply is an HTTP response with its body read.
type reply struct {
	status int
	header http.Header
	body   string
	length int64
}

// ask sends one request. header is a list of names and values.
func ask(t *testing.T, method, url, body string, header ...string) reply {
	t.Helper()
	request := newRequest(t, method, url, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Add(header[i], header[i+1])
	}
	return send(t, request)
}

func newRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	request, err := http.NewRequest(method, url, body)
	must(t, err)
	return request
}

var must = process.Must

// send sends a request on a connection of its own and follows no redirect.
func send(t *testing.T, request *http.Request) reply {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	response, err := transport.RoundTrip(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return reply{response.StatusCode, response.Header, string(text), response.ContentLength}
}

// member gives the text of one member of a JSON response.
func (r reply) member(t *testing.T, name string) string {
	t.Helper()
	members, err := mapping.ParseMembers(jsontext.Value(r.body))
	if err != nil {
		t.Fatalf("not a JSON object: %q", r.body)
	}
	return string(members.Get(name))
}

// wantError checks status and code of an error response, and its shape.
func (r reply) wantError(t *testing.T, status int, code string) {
	t.Helper()
	if r.status != status || r.member(t, "code") != code || r.member(t, "error") != "true" {
		t.Errorf("got %d %s, want status %d and code %s", r.status, r.body, status, code)
	}
	if !strings.HasPrefix(r.body, `{"error":`) || r.member(t, "message") == "" || r.member(t, "documentation") == "" {
		t.Errorf("not the shape of an error: %s", r.body)
	}
}

func (r reply) wantStatus(t *testing.T, status int) {
	t.Helper()
	if r.status != status {
		t.Fatalf("got %d %s, want %d", r.status, r.body, status)
	}
}

// raw sends text as it is and gives back all that comes until the server closes, which it does because of Connection: close
// or because it gives up.
func raw(t *testing.T, base, text string) string {
	t.Helper()
	connection := dial(t, base)
	_, err := io.WriteString(connection, text)
	must(t, err)
	response, err := io.ReadAll(connection)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) { // a server that has read enough resets
		t.Fatal(err)
	}
	return string(response)
}

// cachingTracker has a cached response for every product but those whose name begins with New, and counts how it was asked.
type cachingTracker struct {
	peeked, asked atomic.Int64
	before        func()
}

func (f *cachingTracker) Do(_ context.Context, _ upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	f.asked.Add(1)
	return f.read(*call.FlagTypes)
}

func (f *cachingTracker) Peek(_ context.Context, _ upstream.Caller, request mapping.FlagTypesRequest) (mapping.Reply, error) {
	f.peeked.Add(1)
	if f.before != nil {
		f.before()
	}
	if strings.HasPrefix(request.Product, "New") {
		return mapping.Reply{}, upstream.ErrNotLocal
	}
	return f.read(request)
}

func (f *cachingTracker) read(request mapping.FlagTypesRequest) (mapping.Reply, error) {
	if request.Product == "None" {
		return mapping.Reply{}, mapping.Refuse(mapping.CodeUnknownField, "There is no such component.")
	}
	reply := document(`{"bug":[{"name":"` + request.Product + "/" + request.Component + `"}],"attachment":[]}`)
	reply.ETag = `"abc"`
	return mapping.Reply{Document: reply, Cache: &mapping.CacheInfo{Hit: true, TTL: time.Minute, Detail: "local"}}, nil
}

// serveFast is serve with the fast path, and with a limit for idle connections.
func serveFast(t *testing.T, options proxy.Options, idle time.Duration) *httptest.Server {
	t.Helper()
	return start(t, options, func(server *httptest.Server, handler *proxy.Server) {
		server.Listener = proxy.Listener(fastpath.Listener(server.Listener, handler.MayServeAtOnce, handler.ServeAtOnce), logger(options))
		server.Config.IdleTimeout = idle
		server.Config.ConnState = func(c net.Conn, state http.ConnState) {
			proxy.ConnState(c, state)
			fastpath.ConnState(c, state)
		}
	})
}

// kept is a connection that has had its first response, so that the fast path is open.
type kept struct {
	net.Conn
	reader *bufio.Reader
}

func keep(t *testing.T, base string) *kept {
	t.Helper()
	k := dial(t, base)
	k.exchange(t, "GET /rest/flag_type/First HTTP/1.1\r\nHost: x\r\n\r\n")
	time.Sleep(10 * time.Millisecond) // net/http may yet be listening for the client's hanging up
	return k
}

func dial(t *testing.T, base string) *kept {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return &kept{conn, bufio.NewReader(conn)}
}

func (k *kept) exchange(t *testing.T, text string) reply {
	t.Helper()
	k.send(t, text)
	return k.response(t)
}

func (k *kept) send(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(k, text)
	must(t, err)
}

func (k *kept) response(t *testing.T) reply {
	t.Helper()
	response, err := http.ReadResponse(k.reader, nil)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return reply{response.StatusCode, response.Header, string(body), response.ContentLength}
}

// told gives everything of a response that does not differ from one to the next.
func (r reply) told() string {
	for _, name := range []string{"Date", "X-Request-Id"} {
		if r.header.Get(name) == "" {
			return "no " + name
		}
		r.header.Del(name)
	}
	return fmt.Sprint(r.status, r.header, r.body)
}
