package proxy_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

// fakeTracker is a Tracker whose responses a test writes down. Where a test says nothing, it responses with an empty success.
type fakeTracker struct {
	flagTypes         func(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.Reply, error)
	createFlagType    func(context.Context, upstream.Caller, mapping.FlagTypeCreate) (mapping.Reply, error)
	updateFlagTypes   func(context.Context, upstream.Caller, mapping.FlagTypeUpdate) (mapping.Reply, error)
	bugAttachments    func(context.Context, upstream.Caller, mapping.AttachmentsRequest) (mapping.Reply, error)
	attachment        func(context.Context, upstream.Caller, mapping.AttachmentsRequest) (mapping.Reply, error)
	createAttachment  func(context.Context, upstream.Caller, mapping.AttachmentCreate) (mapping.Reply, error)
	updateAttachments func(context.Context, upstream.Caller, mapping.AttachmentUpdate) (mapping.Reply, error)

	mu    sync.Mutex
	calls []string
}

func (f *fakeTracker) called(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, name)
}

// asked lists the calls so far.
func (f *fakeTracker) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func document(text string) *mapping.Document { return mapping.NewDocument([]byte(text)) }

const noFlagTypes = `{"bug":[],"attachment":[]}`

// Do implements upstream.Tracker.
func (f *fakeTracker) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	switch call.Operation {
	case mapping.OpFlagTypes:
		f.called("FlagTypes")
		return said(ctx, caller, *call.FlagTypes, f.flagTypes, noFlagTypes)
	case mapping.OpCreateFlagType:
		f.called("CreateFlagType")
		return said(ctx, caller, *call.CreateFlagType, f.createFlagType, `{"id":1,"flag_id":1}`)
	case mapping.OpUpdateFlagTypes:
		f.called("UpdateFlagTypes")
		return said(ctx, caller, *call.UpdateFlagTypes, f.updateFlagTypes, `{"flagtypes":[]}`)
	case mapping.OpBugAttachments:
		f.called("BugAttachments")
		return said(ctx, caller, *call.Attachments, f.bugAttachments, `{"bugs":{"5":[]},"attachments":{}}`)
	case mapping.OpAttachment:
		f.called("Attachment")
		return said(ctx, caller, *call.Attachments, f.attachment, `{"bugs":{},"attachments":{}}`)
	case mapping.OpCreateAttachment:
		f.called("CreateAttachment")
		return said(ctx, caller, *call.CreateAttachment, f.createAttachment, `{"ids":[1]}`)
	}
	f.called("UpdateAttachments")
	return said(ctx, caller, *call.UpdateAttachments, f.updateAttachments, `{"attachments":[]}`)
}

// said is the response that a test wrote down, or else text.
func said[R any](
	ctx context.Context, caller upstream.Caller, request R, own func(context.Context, upstream.Caller, R) (mapping.Reply, error), text string,
) (mapping.Reply, error) {
	if own != nil {
		return own(ctx, caller, request)
	}
	return mapping.Reply{Document: document(text)}, nil
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a Server on a real socket and gives its base URL.
func serve(t *testing.T, options proxy.Options) string {
	t.Helper()
	if options.Tracker == nil {
		options.Tracker = &fakeTracker{}
	}
	handler, err := proxy.New(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener = proxy.Listener(server.Listener)
	server.Config.ConnState, server.Config.ConnContext = proxy.ConnState, proxy.ConnContext
	server.Config.MaxHeaderBytes = 16 << 10
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
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
	var source io.Reader
	if body != "" {
		source = strings.NewReader(body)
	}
	request, err := http.NewRequest(method, url, source)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Add(header[i], header[i+1])
	}
	return send(t, request)
}

// send sends a request on a connection of its own and follows no redirect.
func send(t *testing.T, request *http.Request) reply {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
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
	connection, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	response, err := io.ReadAll(connection)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) { // a server that has read enough resets
		t.Fatal(err)
	}
	return string(response)
}

// filesIn lists what lies in a directory.
func filesIn(dir string) ([]os.DirEntry, error) { return os.ReadDir(dir) }
