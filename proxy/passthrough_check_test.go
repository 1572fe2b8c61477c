package proxy_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"portico/mapping"
	"portico/proxy"
)

// A target may refuse what would mean another object there. It learns which calls of the older interfaces are operations.
func TestATargetRefusesWhatItMust(t *testing.T) {
	var seen string
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.Check = func(_ context.Context, path string, query url.Values, isOperation bool) error {
			seen = fmt.Sprint(path, " ", query.Get("id"), " ", isOperation)
			if query.Get("id") == "7" {
				return &mapping.Error{Code: 200409, Status: 409, Message: "It has another id.", Reason: "unmapped-id"}
			}
			return nil
		}
	})
	for _, c := range []struct{ method, path, body, seen string }{
		{"GET", "/show_bug.cgi?id=8", "", "/show_bug.cgi 8 false"},
		{"POST", "/process_bug.cgi?id=8", "id=7", "/process_bug.cgi 8 false"},
		{"POST", "/jsonrpc.cgi", `{"params":[],"method":"Bug.attachments"}`, "/jsonrpc.cgi  true"},
		{"POST", "/jsonrpc.cgi", `[{"method":"Bug.get"},{"method":"Bug.update_attachment"}]`, "/jsonrpc.cgi  true"},
		{"POST", "/jsonrpc.cgi", `{"method":"Bug.get"}`, "/jsonrpc.cgi  false"},
		{"GET", "/jsonrpc.cgi?method=FlagType.get", "", "/jsonrpc.cgi  true"},
		{"GET", "/jsonrpc.cgi?method=Bug.get", "", "/jsonrpc.cgi  false"},
		{"POST", "/xmlrpc.cgi", "<methodCall><methodName>Bug.add_attachment</methodName></methodCall>", "/xmlrpc.cgi  true"},
		{"POST", "/xmlrpc.cgi", "<methodCall><methodName>Bug.add_comment</methodName></methodCall>", "/xmlrpc.cgi  false"},
	} {
		if response := ask(t, c.method, base+c.path, c.body); response.status != 200 || seen != c.seen {
			t.Errorf("%s %s: status %d, seen %q, want %q", c.method, c.path, response.status, seen, c.seen)
		}
	}
	tracker.last = nil
	response := ask(t, "POST", base+"/process_bug.cgi?id=7", strings.Repeat("x", 1<<20))
	if response.status != 409 || response.header.Get("Portico-Error") != "unmapped-id" || tracker.last != nil {
		t.Errorf("got status %d with %v; the tracker got %v", response.status, response.header, tracker.last)
	}
}
