package proxy_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

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
	tracker := &fakeTracker{
		updateFlagTypes: func(context.Context, upstream.Caller, mapping.FlagTypeUpdate) (mapping.Reply, error) {
			panic("key=SECRET")
		},
		updateAttachments: func(context.Context, upstream.Caller, mapping.AttachmentUpdate) (mapping.Reply, error) {
			return mapping.Reply{}, errors.New("of no known kind")
		},
		flagTypes: func(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.Reply, error) {
			return mapping.Reply{}, errors.New("of no known kind")
		},
	}
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
	if text := log.String(); strings.Contains(text, "SECRET") || !strings.Contains(text, "own_failure_test.go") {
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
	tracker := responding(broken)
	tracker.updateFlagTypes = func(context.Context, upstream.Caller, mapping.FlagTypeUpdate) (mapping.Reply, error) {
		return mapping.Reply{Document: broken()}, nil
	}
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
	created := 0
	base := serve(t, proxy.Options{Tracker: &fakeTracker{
		createFlagType: func(context.Context, upstream.Caller, mapping.FlagTypeCreate) (mapping.Reply, error) {
			created++
			return mapping.Reply{Document: document(`{"id":1,"more":"` + strings.Repeat("x", 32<<10) + `"}`)}, nil
		},
	}})
	ask(t, "POST", base+"/rest/flag_type", createType, "Idempotency-Key", "a").wantStatus(t, 201)
	again := ask(t, "POST", base+"/rest/flag_type", createType, "Idempotency-Key", "a")
	if created != 1 || again.status != 504 || !strings.HasSuffix(again.header.Get("Portico-Error"), "; outcome=unknown") {
		t.Errorf("created %d times, then status %d and %q", created, again.status, again.header.Get("Portico-Error"))
	}
}
