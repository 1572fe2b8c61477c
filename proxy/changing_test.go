package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"portico/mapping"
	"portico/proxy"
)

// outcomes notes what FlagTypesChanging is told: nothing, or what became of a request.
type outcomes struct {
	mu   sync.Mutex
	last string
	// over gets the outcome of each as well.
	over chan string
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
	select {
	case o.over <- o.last:
	default:
	}
	return err
}

// watched is a front whose tracker answers as the test says.
func watched(t *testing.T, change func(*proxy.Options)) (*backend, *outcomes, string) {
	t.Helper()
	told := &outcomes{over: make(chan string, 1)}
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

// answered is how a tracker answers a request to a path, and what becomes known of it with a credential and without one.
type answered struct {
	path, body    string
	status        int
	answer        string
	keyed, nobody string
}

func jsonAnswers() []answered {
	said := func(status int, answer, keyed, nobody string) answered {
		return answered{"/jsonrpc.cgi", jsonUpdate, status, answer, keyed, nobody}
	}
	return []answered{
		said(200, `{"id":1,"error":null,"result":{"flagtypes":[]}}`, "done", "done"),
		said(200, `{"result":{"flagtypes":[]}}`, "done", "done"),
		said(200, `{"id":1,"error":{"code":410,"message":"m"},"result":null}`, "refused by the tracker", ""),
		said(200, `{"id":1,"error":{"code":51,"message":"m"},"result":null}`, "refused by the tracker", ""),
		said(200, `{"error":{"code":32000}}`, "web-server", ""),
		said(200, `{"error":{"code":-32601}}`, "web-server", ""),
		said(200, `{"error":"x"}`, "refused by the tracker", ""),
		said(200, `{"error":null,"result":null}`, "unknown", ""),
		said(200, `[]`, "unknown", ""),
		said(200, "", "unknown", ""),
		said(200, `{"result":{"x":"`+strings.Repeat("x", 100<<10)+`"}}`, "unknown", ""),
		said(302, "", "unknown", ""),
		said(502, `{"result":{}}`, "unknown", ""),
		said(401, "", "web-server", ""), said(403, "", "web-server", ""), said(404, "", "web-server", ""),
		said(405, "", "web-server", ""), said(413, "", "web-server", ""), said(429, "", "web-server", ""),
		{"/jsonrpc.cgi", "{{{", 200, `{"error":{"code":1}}`, "web-server", "web-server"},
		{"/jsonrpc.cgi", `{"method":"FlagType.update","params":[{"token":"1-x"}]}`, 200, `[]`, "unknown", "unknown"},
	}
}

func otherAnswers() []answered {
	xml := func(answer, keyed, nobody string) answered {
		return answered{"/xmlrpc.cgi", xmlUpdate, 200, answer, keyed, nobody}
	}
	page := func(status int, answer, keyed, nobody string) answered {
		return answered{"/editflagtypes.cgi", "action=update", status, answer, keyed, nobody}
	}
	return []answered{
		xml(xmlDone, "done", "done"),
		xml(xmlFault("<int>410</int>"), "refused by the tracker", ""),
		xml(xmlFault("<i4>1101</i4>"), "refused by the tracker", ""),
		xml(xmlFault("<int>32000</int>"), "web-server", ""),
		xml(xmlFault("<string>Client</string>"), "refused by the tracker", ""),
		xml(xmlDone[:len(xmlDone)-10], "unknown", ""),
		xml("<methodResponse/>", "unknown", ""),
		xml("<html/>", "unknown", ""),
		{"/xmlrpc.cgi", "not XML", 200, xmlFault("<int>1</int>"), "web-server", ""},
		{"/xmlrpc.cgi", strings.Replace(xmlUpdate, "</methodName>", "</methodName><name> Bugzilla_api_key </name>", 1), 200, "", "unknown", "unknown"},
		page(200, "<h1>Changed</h1>", "done", "done"),
		page(200, loginPage, "web-server", ""),
		page(200, "", "unknown", ""),
		page(404, "<h1>Not found</h1>", "web-server", ""),
		page(503, "<h1>Later</h1>", "unknown", ""),
		{"/editflagtypes.cgi", "Bugzilla_login=a&Bugzilla_password=b", 500, "", "unknown", "unknown"},
	}
}

// TestWhatBecameOfAFlagTypeChange: what is known of one depends on its answer, and on whether anybody could have made it.
func TestWhatBecameOfAFlagTypeChange(t *testing.T) {
	tracker, told, base := watched(t, nil)
	for _, c := range append(jsonAnswers(), otherAnswers()...) {
		tracker.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.answer)
		}
		for header, want := range map[string]string{"X-Bugzilla-Api-Key": c.keyed, "X-Other": c.nobody} {
			got := ask(t, "POST", base+c.path, c.body, header, "K", "Content-Type", "application/x-www-form-urlencoded")
			if got.status != c.status || got.body != c.answer || tracker.body != c.body {
				t.Errorf("POST %s %.60s: arrived as %.60q, answered %d %.60q", c.path, c.body, tracker.body, got.status, got.body)
			}
			if became := told.take(); became != want {
				t.Errorf("POST %s %.60s with %s, answered %d %.60s: %q, want %q", c.path, c.body, header, c.status, c.answer, became, want)
			}
		}
	}
}

// TestFlagTypeChangesWithoutAnAnswer: what was not sent changed nothing; what may have been sent may have changed something.
func TestFlagTypeChangesWithoutAnAnswer(t *testing.T) {
	_, told, away := watched(t, func(o *proxy.Options) {
		o.Passthrough.Base.Host = "127.0.0.1:1"
	})
	tracker, lost, base := watched(t, nil)
	tracker.answer = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
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
			ask(t, c.method, base+c.path, c.body, header, "K").wantError(t, 502, "200502")
			if got := lost.take(); got != want {
				t.Errorf("%s %s with %s to one that ends the connection: %q, want %q", c.method, c.path, header, got, want)
			}
		}
	}
}

// TestAnswersToFlagTypeChangesThatBreakOff are still seen to break off by the client, and leave everything open.
func TestAnswersToFlagTypeChangesThatBreakOff(t *testing.T) {
	tracker, told, base := watched(t, nil)
	tracker.answer = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":{}`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/jsonrpc.cgi?Bugzilla_token=1-x", strings.NewReader(jsonUpdate))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil || string(text) != `{"result":{}` {
		t.Errorf("the client gets %q, %v", text, err)
	}
	if got := told.take(); got != "unknown" {
		t.Errorf("it became %q", got)
	}
}

// updateUntil sends a write whose client hangs up when ctx ends, before there is an answer.
func updateUntil(ctx context.Context, t *testing.T, base, header, value string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/xmlrpc.cgi", strings.NewReader(xmlUpdate))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(header, value)
	if _, err := http.DefaultClient.Do(request); err == nil {
		t.Fatal("the client did not hang up")
	}
}

// TestFlagTypeChangesOfWhoHangsUp end, too, and so do those in which something panics.
func TestFlagTypeChangesOfWhoHangsUp(t *testing.T) {
	tracker, told, base := watched(t, nil)
	ctx, hangUp := context.WithCancel(t.Context())
	tracker.answer = func(_ http.ResponseWriter, r *http.Request) { hangUp(); <-r.Context().Done() }
	updateUntil(ctx, t, base, "Cookie", "Bugzilla_logincookie=x")
	if got := <-told.over; got != "canceled" {
		t.Errorf("it became %q", got)
	}
	_, broken, base := watched(t, func(o *proxy.Options) {
		o.Passthrough.Transport = roundTripper(func(*http.Request) (*http.Response, error) { panic("broken") })
	})
	if got := ask(t, "POST", base+"/xmlrpc.cgi", xmlUpdate, "Authorization", "x"); got.status < 500 || broken.take() != "panic" {
		t.Errorf("a panic gives %d", got.status)
	}
}

// TestFlagTypeChangesOfWhoHangsUpWithoutAConnection were not sent.
func TestFlagTypeChangesOfWhoHangsUpWithoutAConnection(t *testing.T) {
	ctx, hangUp := context.WithCancel(t.Context())
	_, told, base := watched(t, func(o *proxy.Options) {
		o.Passthrough.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			hangUp()
			<-t.Context().Done()
			return nil, t.Context().Err()
		}}
	})
	updateUntil(ctx, t, base, "Authorization", "x")
	if got := <-told.over; got != "tracker-unreachable" {
		t.Errorf("it became %q", got)
	}
}

// TestAnswersToFlagTypeChangesAreNotEncoded, since they are read on their way.
func TestAnswersToFlagTypeChangesAreNotEncoded(t *testing.T) {
	tracker, told, base := watched(t, nil)
	tracker.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "x")
	}
	ask(t, "POST", base+"/editflagtypes.cgi", "x=1", "Accept-Encoding", "br")
	if got := tracker.last.Header.Get("Accept-Encoding"); got != "identity" || told.take() != "" {
		t.Errorf("an answer in %q was asked for, and one in br was taken for a success", got)
	}
	ask(t, "POST", base+"/index.cgi", "x=1", "Accept-Encoding", "br")
	if got := tracker.last.Header.Get("Accept-Encoding"); got != "br" {
		t.Errorf("of the other answers those in %q are asked for", got)
	}
}
