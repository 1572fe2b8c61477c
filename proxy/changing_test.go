package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
	"portico/upstream/transport"
)

// notes are what became known, in order.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) add(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, what)
}

// take gives what was noted since it was last taken.
func (n *notes) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { n.all = nil }()
	return strings.Join(n.all, "; ")
}

// changing notes what FlagTypesChanging is told.
func (n *notes) changing(_ context.Context, call func() error) error {
	became := "panic"
	defer func() { n.add(became) }()
	err := call()
	var known *mapping.Error
	switch {
	case err == nil:
		became = "done"
	case !errors.As(err, &known):
		became = "odd"
	case known.Unknown:
		became = "unknown"
	case known.FromTracker():
		became = "refused by the tracker"
	default:
		became = string(known.Reason)
	}
	return err
}

// watched is a front whose tracker responses as the test says.
func watched(t *testing.T, change func(*proxy.Options)) (*backend, *notes, string) {
	t.Helper()
	told := &notes{}
	tracker, base := behind(t, "/bugs", func(o *proxy.Options) {
		o.Passthrough.FlagTypesChanging = told.changing
		if change != nil {
			change(o)
		}
	})
	return tracker, told, base
}

const (
	jsonUpdate = `{"method":"FlagType.update","params":[{"ids":[1]}],"id":1}`
	xmlUpdate  = "<methodCall><methodName>FlagType.update</methodName></methodCall>"
	xmlDone    = "<?xml version='1.0' encoding='UTF-8'?><methodResponse><params><param><value><int>1</int></value></param></params></methodResponse>"
	loginPage  = `<form><input name="Bugzilla_login"><input type="password" name="Bugzilla_password"></form>`
)

func xmlFault(code string) string {
	return "<methodResponse><fault><value><struct><member><name>faultString</name><value><string>2</string></value></member>" +
		"<member><name>faultCode</name><value>" + code + "</value></member></struct></value></fault></methodResponse>"
}

// responded is how a tracker responses a request to a path, and what becomes known of it with a credential and without one.
type responded struct {
	path, body       string
	status           int
	response         string
	keyed, anonymous string
}

func jsonResponses() []responded {
	json := func(status int, response, keyed, anonymous string) responded {
		return responded{"/jsonrpc.cgi", jsonUpdate, status, response, keyed, anonymous}
	}
	return []responded{
		json(200, `{"id":1,"error":null,"result":{"flagtypes":[]}}`, "done", ""),
		json(200, `{"result":{"flagtypes":[]}}`, "done", ""),
		json(200, `{"id":1,"error":{"code":410,"message":"m"},"result":null}`, "refused by the tracker", ""),
		json(200, `{"id":1,"error":{"code":51,"message":"m"},"result":null}`, "refused by the tracker", ""),
		json(200, `{"error":{"code":32000}}`, "web-server", ""),
		json(200, `{"error":{"code":-32601}}`, "web-server", ""),
		json(200, `{"version":"1.1","error":{"name":"JSONRPCError","code":100201}}`, "web-server", ""),
		json(200, `{"error":{"code":-32768}}`, "web-server", ""),
		json(200, `{"error":{"code":100500}}`, "refused by the tracker", ""),
		json(200, `{"error":"x"}`, "refused by the tracker", ""),
		json(200, `{"error":{"code":51},"result":{}}`, "done", ""),
		json(200, `{"error":null,"result":null}`, "unknown", ""),
		json(200, `[]`, "unknown", ""),
		json(200, "", "unknown", ""),
		json(200, `{"result":{"x":"`+strings.Repeat("x", 100<<10)+`"}}`, "done", ""),
		json(302, "", "unknown", ""),
		json(502, `{"result":{}}`, "unknown", ""),
		json(401, "", "web-server", ""), json(403, "", "web-server", ""), json(404, "", "web-server", ""),
		json(405, "", "web-server", ""), json(408, "", "unknown", ""), json(413, "", "web-server", ""), json(429, "", "web-server", ""),
		{"/jsonrpc.cgi", "{{{", 200, `{"error":{"code":1}}`, "", ""},
		{"/jsonrpc.cgi", `{"method":"FlagType.update","params":[{"token":"1-x"}]}`, 200, `[]`, "unknown", "unknown"},
	}
}

func otherResponses() []responded {
	xml := func(response, keyed, anonymous string) responded {
		return responded{"/xmlrpc.cgi", xmlUpdate, 200, response, keyed, anonymous}
	}
	page := func(status int, response, keyed, anonymous string) responded {
		return responded{"/editflagtypes.cgi", "action=update", status, response, keyed, anonymous}
	}
	return []responded{
		xml(xmlDone, "done", ""),
		xml(xmlFault("<int>410</int>"), "refused by the tracker", ""),
		xml(xmlFault("<i4>1101</i4>"), "refused by the tracker", ""),
		xml(xmlFault("<int>32000</int>"), "web-server", ""),
		xml(xmlFault("<string>Client</string>"), "web-server", ""),
		xml(xmlFault("<string>Server</string>"), "refused by the tracker", ""),
		xml(xmlDone[:len(xmlDone)-10], "unknown", ""),
		xml("<methodResponse/>", "unknown", ""),
		xml("<html/>", "unknown", ""),
		{"/xmlrpc.cgi", "not XML", 200, xmlFault("<int>1</int>"), "", ""},
		{"/xmlrpc.cgi", strings.Replace(xmlUpdate, "</methodName>", "</methodName><name> Bugzilla_api_key </name>", 1), 200, "", "unknown", "unknown"},
		page(200, "<h1>Changed</h1>", "done", ""),
		page(200, loginPage, "web-server", ""),
		page(200, "", "unknown", ""),
		page(404, "<h1>Not found</h1>", "web-server", ""),
		page(503, "<h1>Later</h1>", "unknown", ""),
		{"/editflagtypes.cgi", "Bugzilla_login=a&Bugzilla_password=b", 500, "", "unknown", "unknown"},
	}
}

// TestWhatBecameOfAFlagTypeChange: what is known of one depends on its response, and on whether it had a credential.
func TestWhatBecameOfAFlagTypeChange(t *testing.T) {
	tracker, told, base := watched(t, nil)
	for _, c := range append(jsonResponses(), otherResponses()...) {
		tracker.response = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.response)
		}
		for header, want := range map[string]string{"X-Bugzilla-Api-Key": c.keyed, "X-Other": c.anonymous} {
			got := ask(t, "POST", base+c.path, c.body, header, "K", "Content-Type", "application/x-www-form-urlencoded")
			if got.status != c.status || got.body != c.response || tracker.body != c.body {
				t.Errorf("POST %s %.60s: arrived as %.60q, responded %d %.60q", c.path, c.body, tracker.body, got.status, got.body)
			}
			if became := told.take(); became != want {
				t.Errorf("POST %s %.60s with %s, responded %d %.60s: %q, want %q", c.path, c.body, header, c.status, c.response, became, want)
			}
		}
	}
}

// TestFlagTypeChangesWithoutAResponse: what was not sent changed nothing; what may have been sent may have changed something.
func TestFlagTypeChangesWithoutAResponse(t *testing.T) {
	stack := transport.New(transport.Options{Break: transport.BreakOptions{Unanswered: 1 << 20, MinRequests: 1 << 20}})
	defer stack.Close()
	var wrote notes
	over := func(o *proxy.Options) {
		o.Passthrough.Transport = stack
		o.Passthrough.Writes = func(_ context.Context, _ *proxy.Target, what string) func(bool) {
			return func(written bool) {
				if written {
					wrote.add(what)
				}
			}
		}
		o.Passthrough.For = func(ctx context.Context, _ mapping.Operation, _ upstream.Caller, writes bool) context.Context {
			return transport.With(ctx, func(c *transport.Call) { c.Writes = writes })
		}
	}
	_, told, away := watched(t, func(o *proxy.Options) {
		over(o)
		o.Passthrough.Base.Host = "127.0.0.1:1"
	})
	tracker, lost, base := watched(t, over)
	tracker.response = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/jsonrpc.cgi", jsonUpdate}, {"POST", "/editflagtypes.cgi", "x=1"}, {"GET", "/editflagtypes.cgi?action=delete", ""},
	} {
		for header, want := range map[string]string{"Authorization": "tracker-unreachable", "X-Other": ""} {
			ask(t, c.method, away+c.path, c.body, header, "K").wantError(t, 502, "200502")
			if got, written := told.take(), wrote.take(); got != want || written != "" {
				t.Errorf("%s %s with %s to a tracker that is away: %q, want %q; told of %q", c.method, c.path, header, got, want, written)
			}
		}
		for header, want := range map[string]string{"Authorization": "unknown", "X-Other": ""} {
			ask(t, c.method, base+c.path, c.body, header, "K").wantError(t, 504, "200504")
			if got, written := lost.take(), wrote.take(); got != want || written == "" {
				t.Errorf("%s %s with %s to one that ends the connection: %q, want %q; told of %q", c.method, c.path, header, got, want, written)
			}
		}
	}
}

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
	var order notes
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.FlagTypesChanging = func(ctx context.Context, call func() error) error {
			if ctx.Err() != nil {
				order.add("bad context")
			}
			order.add("announced")
			defer order.add("ended")
			return call()
		}
	})
	tracker.response = func(w http.ResponseWriter, _ *http.Request) {
		order.add("carried out")
		_, _ = io.WriteString(w, "done")
	}
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
		{"/xmlrpc.cgi", call("<![CDATA[FlagType.update]]>"), true},
		{"/xmlrpc.cgi", call("Flag<!-- a comment -->Type<?x?>.<![CDATA[cre]]>&#97;te"), true},
		{"/xmlrpc.cgi", call("<![CDATA[FlagType.get]]>"), false},
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
		{"PUT /xmlrpc.cgi", call("FlagType.update"), false}, {"DELETE /jsonrpc.cgi", `{"method":"FlagType.update"}`, false},
		{"/editflagtypes.cgi", "action=update&id=1", true},
		{"/editflagtypes.cgi/x", "action=update&id=1", true},
		{"/rest/bug", `{"method":"FlagType.update"}`, false},
		{"/editflagtypes.cgi", "", false}, {"/editflagtypes.cgi?action=delete&id=1", "", true}, {"/editflagtypes.cgi/?id=1;%61ction=delete", "", true},
		{"/show_bug.cgi?action=delete", "", false}, {"/jsonrpc.cgi?method=FlagType.get", "", false},
	} {
		method := http.MethodPost
		if c.body == "" { // a link
			method = http.MethodGet
		}
		if given, path, found := strings.Cut(c.path, " "); found {
			method, c.path = given, path
		}
		response := ask(t, method, base+c.path, c.body, "X-Bugzilla-Api-Key", "K")
		if response.body != "done" || tracker.body != c.body || tracker.last.ContentLength != int64(len(c.body)) {
			t.Errorf("%s: %d of %d bytes arrived, length %d", c.path, len(tracker.body), len(c.body), tracker.last.ContentLength)
		}
		want := "carried out"
		if c.announced {
			want = "announced; carried out; ended"
		}
		if got := order.take(); got != want {
			t.Errorf("%s %.80s: %s, want %s", c.path, c.body, got, want)
		}
	}
}

func TestServerNeedsATracker(t *testing.T) {
	if _, err := proxy.New(proxy.Options{}); err == nil {
		t.Error("no tracker was taken")
	}
}

// TestPassedWritesAreTold: what may change something is told by its pattern, with nothing that a client wrote, before the tracker gets it, and whether
// it may have been carried out.
func TestPassedWritesAreTold(t *testing.T) {
	var told notes
	var before atomic.Bool
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.Writes = func(_ context.Context, target *proxy.Target, what string) func(bool) {
			if target == nil {
				what = "nowhere"
			}
			before.Store(true)
			return func(written bool) {
				if written {
					told.add(what)
				}
			}
		}
	})
	var status atomic.Int64
	mayWrite := false
	tracker.response = func(w http.ResponseWriter, _ *http.Request) {
		mayWrite = before.Swap(false)
		w.WriteHeader(int(status.Load()))
	}
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
		{"POST", "/rest/bug", "{}", 408, "POST /rest/bug"},
		{"POST", "/rest/bug", "{}", 500, "POST /rest/bug"},
		{"GET", "/rest/bug/1/comment", "", 200, ""},
		{"POST", "/xmlrpc.cgi", strings.ReplaceAll(xml, "%", "Bug.update_attachment"), 200, "xmlrpc.cgi Bug.update_attachment"},
		{"POST", "/xmlrpc.cgi", strings.ReplaceAll(xml, "%", "Bug.get_bugs"), 200, ""},
		{"POST", "/xmlrpc.cgi", strings.ReplaceAll(xml, "%", "my password"), 200, "xmlrpc.cgi"},
		{"POST", "/jsonrpc.cgi", `[{"method":"Bug.update"},{"method":"Bug.search"}]`, 200, "jsonrpc.cgi Bug.update"},
	} {
		status.Store(c.status)
		ask(t, c.method, base+c.path, c.body, "X-BUGZILLA-API-KEY", "k")
		if got := told.take(); got != c.want || mayWrite != (c.want != "" || c.status == http.StatusUnauthorized) {
			t.Errorf("%s %s %s with %d: told %q, want %q; told before: %v", c.method, c.path, c.body, c.status, got, c.want, mayWrite)
		}
		// Without a credential nothing is told before: anybody could have writes counted that are refused.
		ask(t, c.method, base+c.path, c.body)
		if got := told.take(); got != c.want || mayWrite || before.Swap(false) != (c.want != "") {
			t.Errorf("%s %s %s with %d, anonymous: told %q, want %q; told before: %v", c.method, c.path, c.body, c.status, got, c.want, mayWrite)
		}
	}
}

// A target may refuse what would mean another object there. It learns which calls of the older interfaces are operations.
func TestATargetRefusesWhatItMust(t *testing.T) {
	var seen string
	tracker, base := behind(t, "", func(o *proxy.Options) {
		o.Passthrough.Check = func(_ context.Context, path string, query func(name string) []string, isOperation bool) error {
			ids := strings.Join(query("id"), ",")
			seen = fmt.Sprint(path, " ", ids, " ", isOperation)
			if ids == "7" {
				return &mapping.Error{Code: 200409, Status: 409, Message: "It has another id.", Reason: "unmapped-id"}
			}
			return nil
		}
	})
	for _, c := range []struct{ method, path, body, seen string }{
		{"GET", "/show_bug.cgi?id=8", "", "/show_bug.cgi 8 false"},
		{"GET", "/show_bug.cgi?ctype=xml;id=8;id=9;x=%", "", "/show_bug.cgi 8,9 false"},
		{"POST", "/process_bug.cgi?id=8", "id=7", "/process_bug.cgi 8 false"},
		{"POST", "/jsonrpc.cgi", `{"params":[],"method":"Bug.attachments"}`, "/jsonrpc.cgi  true"},
		{"POST", "/jsonrpc.cgi", `[{"method":"Bug.get"},{"method":"Bug.update_attachment"}]`, "/jsonrpc.cgi  true"},
		{"POST", "/jsonrpc.cgi", `{"method":"Bug.get"}`, "/jsonrpc.cgi  false"},
		{"GET", "/jsonrpc.cgi?method=FlagType.get", "", "/jsonrpc.cgi  true"},
		{"GET", "/jsonrpc.cgi?version=1.1;method=FlagType.get", "", "/jsonrpc.cgi  true"},
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

// Calls of the older interfaces that are operations are carried out as those of REST are, where they do not pass. What has no form as an
// operation passes whole.
func TestOperationsOfTheOlderInterfaces(t *testing.T) {
	tracker := &fakeTracker{}
	passed, base := behind(t, "", func(o *proxy.Options) {
		o.Tracker, o.Passthrough.Operations = tracker, func() bool { return true }
	})
	for _, c := range []struct {
		body, key string
		called    []mapping.Operation
		says      string
	}{
		{`{"method":"Bug.attachments","params":[{"ids":[5]}],"id":1}`, "", []mapping.Operation{mapping.OpBugAttachments}, `"result":`},
		{`{"method":"FlagType.get","params":[{"product":"P/Q","component":"C"}],"id":1}`, "", []mapping.Operation{mapping.OpFlagTypes}, `"result":`},
		{`{"method":"FlagType.update","params":[{"ids":[1],"name":"n"}],"id":1}`, "k", []mapping.Operation{mapping.OpUpdateFlagTypes}, `"result":`},
		{`{"method":"FlagType.update","params":[{"ids":[1],"name":"n"}],"id":1}`, "", nil, `"code":410`},
		{`{"method":"FlagType.update","params":[{"name":"n"}],"id":1}`, "k", nil, `"code":`},
		{`[{"method":"FlagType.update","params":[{"ids":[1]}]}]`, "k", []mapping.Operation{"passed"}, ""},
		{`{"method":"Bug.comments","params":[{"ids":[1]}]}`, "k", []mapping.Operation{"passed"}, ""},
	} {
		tracker.calls, passed.last, passed.body = nil, nil, ""
		response := ask(t, http.MethodPost, base+"/jsonrpc.cgi", c.body, "Content-Type", "application/json", "X-BUGZILLA-API-KEY", c.key)
		called := tracker.asked()
		if passed.last != nil && passed.body == c.body {
			called = append(called, "passed")
		}
		if !slices.Equal(called, c.called) || response.status != 200 || !strings.Contains(response.body, c.says) {
			t.Errorf("%s with the key %q: %d %s, called %v", c.body, c.key, response.status, response.body, called)
		}
		if read := tracker.last.FlagTypes; read != nil && *read != (mapping.FlagTypesRequest{Product: "P/Q", Component: "C"}) {
			t.Errorf("%s read %+v", c.body, *read)
		}
	}
}

// The time that a call of an older interface takes grows with the number of its parameters, and not with the square of it: that took minutes.
func TestManyParametersOfACall(t *testing.T) {
	_, base := behind(t, "", func(o *proxy.Options) {
		o.Tracker, o.Passthrough.Operations = &fakeTracker{}, func() bool { return true }
	})
	var others strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&others, `,"%06x":1`, i)
	}
	began := time.Now()
	body := `{"method":"Bug.attachments","params":[{"ids":[5]` + others.String() + `}],"id":1}`
	ask(t, http.MethodPost, base+"/jsonrpc.cgi", body, "Content-Type", "application/json").wantStatus(t, 200)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}
