package proxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
	"portico/upstream/transport"
)

// outcomes records the outcomes that FlagTypesChanging gets.
type outcomes struct {
	mu   sync.Mutex
	last string
}

func (o *outcomes) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = what
}

// take gives what was noted since it was last taken.
func (o *outcomes) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.last = "" }()
	return o.last
}

func (o *outcomes) changing(_ context.Context, call func() error) (err error) {
	o.note("panic")
	err = call()
	var known *mapping.Error
	switch {
	case err == nil:
		o.note("done")
	case !errors.As(err, &known):
		o.note("odd")
	case known.Unknown:
		o.note("unknown")
	case known.FromTracker():
		o.note("refused by the tracker")
	default:
		o.note(string(known.Reason))
	}
	return err
}

// watched is a front whose tracker responses as the test says.
func watched(t *testing.T, change func(*proxy.Options)) (*backend, *outcomes, string) {
	t.Helper()
	told := &outcomes{}
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
		json(200, `{"error":"x"}`, "refused by the tracker", ""),
		json(200, `{"error":null,"result":null}`, "unknown", ""),
		json(200, `[]`, "unknown", ""),
		json(200, "", "unknown", ""),
		json(200, `{"result":{"x":"`+strings.Repeat("x", 100<<10)+`"}}`, "done", ""),
		json(302, "", "unknown", ""),
		json(502, `{"result":{}}`, "unknown", ""),
		json(401, "", "web-server", ""), json(403, "", "web-server", ""), json(404, "", "web-server", ""),
		json(405, "", "web-server", ""), json(413, "", "web-server", ""), json(429, "", "web-server", ""),
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
		xml(xmlFault("<string>Client</string>"), "refused by the tracker", ""),
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
	over := func(o *proxy.Options) {
		o.Passthrough.Transport = stack
		o.Passthrough.For = func(ctx context.Context, _ upstream.Caller, writes bool) context.Context {
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
			if got := told.take(); got != want {
				t.Errorf("%s %s with %s to a tracker that is away: %q, want %q", c.method, c.path, header, got, want)
			}
		}
		for header, want := range map[string]string{"Authorization": "unknown", "X-Other": ""} {
			ask(t, c.method, base+c.path, c.body, header, "K").wantError(t, 504, "200504")
			if got := lost.take(); got != want {
				t.Errorf("%s %s with %s to one that ends the connection: %q, want %q", c.method, c.path, header, got, want)
			}
		}
	}
}
