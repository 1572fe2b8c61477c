package proxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream/transport"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPassthroughFailures(t *testing.T) {
	for _, c := range []struct {
		err          error
		method       string
		status       int
		code, reason string
	}{
		{&transport.Error{Reason: transport.Connect}, "POST", 502, "200502", "tracker-unreachable"},
		{&transport.Error{Reason: transport.Reset}, "GET", 502, "200502", "tracker-unreachable"},
		{&transport.Error{Reason: transport.Reset, Unknown: true}, "POST", 504, "200504", "tracker-unreachable; outcome=unknown"},
		{&transport.Error{Reason: transport.Timeout, Unknown: true}, "PUT", 504, "200504", "tracker-timeout; outcome=unknown"},
		{errors.New("of no known kind"), "PUT", 504, "200504", "internal; outcome=unknown"},
		{&mapping.Error{Code: 200503, Status: 503, Message: "m", Reason: mapping.ReasonOverload}, "GET", 503, "200503", "overload"},
		{&transport.Error{Reason: transport.BreakerOpen}, "GET", 503, "200503", "breaker-open"},
	} {
		_, base := behind(t, "", func(o *proxy.Options) {
			o.Passthrough.Transport = roundTripper(func(*http.Request) (*http.Response, error) { return nil, c.err })
		})
		for _, path := range []string{"/rest/version", "/xmlrpc.cgi", "/index.cgi"} {
			got := ask(t, c.method, base+path, "")
			got.wantError(t, c.status, c.code)
			if reason := got.header.Get("Portico-Error"); reason != c.reason {
				t.Errorf("%v: Portico-Error %q", c.err, reason)
			}
		}
	}
}

// Calls that change flag types are announced before the tracker gets them, and have ended before the client gets the response.
func TestFlagTypeChangesAreAnnounced(t *testing.T) {
	var order []string
	var mu sync.Mutex
	note := func(what string) { mu.Lock(); defer mu.Unlock(); order = append(order, what) }
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.FlagTypesChanging = func(ctx context.Context, call func() error) error {
			if ctx.Err() != nil {
				note("bad context")
			}
			note("announced")
			defer note("ended")
			return call()
		}
	})
	tracker.response = func(w http.ResponseWriter, _ *http.Request) { note("carried out"); _, _ = io.WriteString(w, "done") }
	call := func(method string) string {
		return "<?xml version='1.0' encoding='iso-8859-1'?>\n<methodCall><methodName>" + method + "</methodName><params/></methodCall>"
	}
	big := strings.Repeat(" ", 2<<20)
	for _, c := range []struct {
		path, body string
		announced  bool
	}{
		{"/jsonrpc.cgi", `{"method":"FlagType.create","params":[{}],"id":1}`, true},
		{"/jsonrpc.cgi", `{"params":[{"method":"Bug.get"}],"id":"method","method":"\u0046lagType.update"}`, true},
		{"/jsonrpc.cgi", `[{"method":"FlagType.create"},{"method":"FlagType.update"}]`, true},
		{"/jsonrpc.cgi", `{"method":"FlagType.get","params":[{"text":"FlagType.update","method":"FlagType.update"}]}`, false},
		{"/jsonrpc.cgi", `{"method":"Bug.get","method2":"FlagType.update"}`, false},
		{"/jsonrpc.cgi", `[{"method":"Bug.get"},{"method":"FlagType.update"}]`, false},
		{"/jsonrpc.cgi", `{{{`, false},
		{"/jsonrpc.cgi", `{}`, false},
		{"/jsonrpc.cgi", "{\"method\":\"Bug.update\",\"params\":[{\"summary\":\"\xff\"}]}", false},
		{"/jsonrpc.cgi/", `{"method":"FlagType.update"}`, true},
		{"/jsonrpc.cgi", `{"x":"` + big + `","method":"FlagType.update"}`, true},
		{"/jsonrpc.cgi", `{"method":"Bug.get","x":"` + big + `","method":"FlagType.update"}`, true},
		{"/jsonrpc.cgi", `{"method":"FlagType.update","x":"` + big + `","method":"Bug.get"}`, false},
		{"/jsonrpc.cgi", `{"method":"FlagType.update","x":"` + big + `"}`, true},
		{"/xmlrpc.cgi", call("FlagType.create"), true},
		{"/xmlrpc.cgi", call(" Flag&#84;ype.update\n"), true},
		{"/xmlrpc.cgi", call("Bug.add_attachment"), false},
		{"/xmlrpc.cgi", "<methodCall><methodName>FlagType.update", false},
		{"/xmlrpc.cgi", "not XML", false},
		{"/xmlrpc.cgi/", call("FlagType.update"), true},
		{"/xmlrpc.cgi/more/of%2Fit", call("FlagType.update"), true},
		{"/xmlrpc.cgi/", call("Bug.get"), false},
		{"/xmlrpc.cgi", "<!--" + big + "-->" + call("FlagType.update"), true},
		{"/xmlrpc.cgi", "\xff\xfe<\x00m\x00", false},
		{"/xmlrpc.cgi.bak", call("FlagType.update"), false},
		{"/xmlrpc.cgi", call("Bug.add_attachment") + big, false},
		{"/editflagtypes.cgi", "action=update&id=1", true},
		{"/editflagtypes.cgi/x", "action=update&id=1", true},
		{"/rest/bug", `{"method":"FlagType.update"}`, false},
	} {
		order = nil
		response := ask(t, "POST", base+c.path, c.body, "X-Bugzilla-Api-Key", "K")
		if response.body != "done" || tracker.body != c.body || tracker.last.ContentLength != int64(len(c.body)) {
			t.Errorf("%s: %d of %d bytes arrived, length %d", c.path, len(tracker.body), len(c.body), tracker.last.ContentLength)
		}
		want := []string{"carried out"}
		if c.announced {
			want = []string{"announced", "carried out", "ended"}
		}
		if !slices.Equal(order, want) {
			t.Errorf("%s %.80s: %v, want %v", c.path, c.body, order, want)
		}
	}
}

// The page of flag types takes what its links ask for like what its forms do.
func TestThePageOfFlagTypesIsAnnounced(t *testing.T) {
	var announced atomic.Int64
	_, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.FlagTypesChanging = func(_ context.Context, call func() error) error { announced.Add(1); return call() }
	})
	for path, want := range map[string]int64{
		"/editflagtypes.cgi": 0, "/editflagtypes.cgi?action=delete&id=1": 1, "/editflagtypes.cgi/?id=1;%61ction=delete": 1,
		"/show_bug.cgi?action=delete": 0, "/jsonrpc.cgi?method=FlagType.get": 0,
	} {
		announced.Store(0)
		ask(t, "GET", base+path, "", "X-Bugzilla-Api-Key", "K")
		if got := announced.Load(); got != want {
			t.Errorf("GET %s: announced %d times, want %d", path, got, want)
		}
	}
}

func TestServerNeedsATracker(t *testing.T) {
	if _, err := proxy.New(proxy.Options{}); err == nil {
		t.Error("no tracker was taken")
	}
}

// TestPassedWritesAreTold: what may have changed something is told by its pattern, with nothing that a client wrote.
func TestPassedWritesAreTold(t *testing.T) {
	var told []string
	var mu sync.Mutex
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.Wrote = func(_ context.Context, target *proxy.Target, what string) {
			mu.Lock()
			defer mu.Unlock()
			if target == nil {
				what = "nowhere"
			}
			told = append(told, what)
		}
	})
	var status atomic.Int64
	tracker.response = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }
	xml := "<methodCall><methodName>%</methodName></methodCall>"
	for _, c := range []struct {
		method, path, body string
		status             int64
		want               string
	}{
		{"POST", "/rest/bug", "{}", 201, "POST /rest/bug"},
		{"PUT", "/rest/user/ada@example.org/x/y/z", "{}", 200, "PUT /rest/user/{…}/{…}/{…}"},
		{"POST", "/process_bug.cgi/secret", "id=1", 200, "POST /process_bug.cgi/{…}"},
		{"POST", "/rest/bug", "{}", 401, ""},
		{"POST", "/rest/bug", "{}", 500, "POST /rest/bug"},
		{"GET", "/rest/bug/1/comment", "", 200, ""},
		{"POST", "/xmlrpc.cgi", strings.ReplaceAll(xml, "%", "Bug.update_attachment"), 200, "xmlrpc.cgi Bug.update_attachment"},
		{"POST", "/xmlrpc.cgi", strings.ReplaceAll(xml, "%", "Bug.get_bugs"), 200, ""},
		{"POST", "/xmlrpc.cgi", strings.ReplaceAll(xml, "%", "my password"), 200, "xmlrpc.cgi"},
		{"POST", "/jsonrpc.cgi", `[{"method":"Bug.update"},{"method":"Bug.search"}]`, 200, "jsonrpc.cgi Bug.update"},
	} {
		told = nil
		status.Store(c.status)
		ask(t, c.method, base+c.path, c.body)
		mu.Lock()
		if got := strings.Join(told, "; "); got != c.want {
			t.Errorf("%s %s %s with %d: told %q, want %q", c.method, c.path, c.body, c.status, got, c.want)
		}
		mu.Unlock()
	}
}
