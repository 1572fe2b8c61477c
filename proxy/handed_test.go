package proxy_test

import (
	"context"
	"errors"
	"net/http"
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

// TestOurOwnFailureAfterAWriteWasHandedOver: whoever panics or fails then, nobody knows what became of the write.
func TestOurOwnFailureAfterAWriteWasHandedOver(t *testing.T) {
	tracker := &fakeTracker{
		updateFlagTypes: func(context.Context, upstream.Caller, mapping.FlagTypeUpdate) (mapping.FlagTypesUpdated, error) {
			panic("key=SECRET")
		},
		updateAttachments: func(context.Context, upstream.Caller, mapping.AttachmentUpdate) (mapping.AttachmentsUpdated, error) {
			return mapping.AttachmentsUpdated{}, errors.New("of no known kind")
		},
		flagTypes: func(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
			return mapping.FlagTypes{}, errors.New("of no known kind")
		},
	}
	_, base := behind(t, "", func(o *proxy.Options) { o.Tracker, o.Passthrough.Transport = tracker, panicking{} })
	wantUnknown(t, ask(t, "PUT", base+"/rest/flag_type/1"+key, `{"name":"n"}`), true)
	wantUnknown(t, ask(t, "PUT", base+"/rest/bug/attachment/1"+key, `{"summary":"s"}`), true)
	wantUnknown(t, ask(t, "GET", base+"/rest/flag_type/P", ""), false)
	wantUnknown(t, ask(t, "POST", base+"/xmlrpc.cgi", "x"), true)
	wantUnknown(t, ask(t, "GET", base+"/index.cgi", ""), false)
}
