package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
)

// scripted is a reference tracker that returns a given response instead of its own while there is one.
type scripted struct {
	response atomic.Pointer[http.HandlerFunc]
	// failing makes it return status 200 without a body, as a tracker does whose database is away. It still responds to probes, because
	// failed probes open the breaker, and a refused write is not one of unknown outcome.
	failing atomic.Bool
	base    string
}

func startScripted(t *testing.T) *scripted {
	t.Helper()
	s := &scripted{}
	reference := process.Reference(t, tracker.Options{})
	s.base = process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.failing.Load() && r.URL.Path != "/rest/version" {
			return
		}
		given := s.response.Load()
		if given == nil || r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/rest/") {
			reference.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		(*given)(w, r)
	})).String()
	return s
}

// says makes the tracker return a status and a body to everything but REST reads.
func (s *scripted) says(status int, body string) {
	s.does(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func (s *scripted) does(handler http.HandlerFunc) { s.response.Store(&handler) }

// itself makes the tracker respond by itself again.
func (s *scripted) itself() { s.response.Store(nil) }

const (
	typeForm  = "application/x-www-form-urlencoded"
	outsider  = "made-up-made-up-made-up-made-up-made-up-"
	loginForm = `<form><input name="Bugzilla_login"><input type="password" name="Bugzilla_password"></form>`
)

func call(method, path, body string, header ...string) ask {
	a := ask{method: method, path: path, body: body, header: http.Header{"Content-Type": {"text/plain"}}}
	for i := 0; i < len(header); i += 2 {
		a.header.Set(header[i], header[i+1])
	}
	return a
}

func padding(bytes int) string { return strings.Repeat("padding ", bytes/8) }

// outsidersCalls are requests without a credential, or with one that the tracker does not know.
func outsidersCalls() map[string]ask {
	const update = `"method":"FlagType.update"`
	long := padding(1200 << 10)
	return map[string]ask{
		"JSON-RPC over 1 MiB":               call("POST", "/jsonrpc.cgi", `{"method":"Bugzilla.version","id":1,"x":"`+long+`"}`),
		"JSON-RPC over 1 MiB, method late":  call("POST", "/jsonrpc.cgi", `{"x":"`+long+`","method":"Bugzilla.version","id":1}`),
		"JSON-RPC write over 1 MiB":         call("POST", "/jsonrpc.cgi", `{`+update+`,"id":1,"x":"`+long+`"}`),
		"XML-RPC over 1 MiB":                call("POST", "/xmlrpc.cgi", xmlCall("Bugzilla.version", "<!-- "+long+" -->")),
		"XML-RPC over 1 MiB, method late":   call("POST", "/xmlrpc.cgi", "<!-- "+long+" -->"+xmlCall("Bugzilla.version", "")),
		"over 1 MiB, neither JSON nor XML":  call("POST", "/jsonrpc.cgi", long),
		"over 1 MiB, neither XML nor JSON":  call("POST", "/xmlrpc.cgi", long),
		"two methods":                       call("POST", "/jsonrpc.cgi", `{`+update+`,"method":"Bugzilla.version","id":1}`),
		"two methods, made-up key":          call("POST", "/jsonrpc.cgi", `{`+update+`,"method":"Bugzilla.version","id":1}`, "X-BUGZILLA-API-KEY", outsider),
		"a method in the parameters":        call("POST", "/xmlrpc.cgi", xmlCall("Bugzilla.version", "<methodName>FlagType.update</methodName>"), "X-BUGZILLA-API-KEY", outsider),
		"neither JSON nor XML, made-up key": call("POST", "/jsonrpc.cgi", "x=1", "X-BUGZILLA-API-KEY", outsider),
		"a long refusal, made-up key": call("POST", "/jsonrpc.cgi",
			`{"method":"FlagType.create","params":[{"name":"n","Bugzilla_api_key":"`+outsider+`"}],"id":"`+padding(300<<10)+`"}`),
		"JSON-RPC, made-up token":     call("POST", "/jsonrpc.cgi", `{"method":"FlagType.create","params":[{"name":"n","token":"1-made-up"}],"id":1}`),
		"XML-RPC by PUT, made-up key": call("PUT", "/xmlrpc.cgi", xmlCall("FlagType.update", ""), "X-BUGZILLA-API-KEY", outsider),
		"XML-RPC, made-up key": call("POST", "/xmlrpc.cgi", xmlCall("FlagType.create",
			xmlMember("Bugzilla_api_key", "<string>"+outsider+"</string>"))),
		"the page":                call("POST", "/editflagtypes.cgi", "x=1", "Content-Type", typeForm),
		"the page, by a link":     call("GET", "/editflagtypes.cgi?action=delete&id=1", ""),
		"the page, made-up login": call("POST", "/editflagtypes.cgi", "x=1", "Content-Type", typeForm, "Cookie", "Bugzilla_logincookie=x"),
		"REST, anonymous":         call("PUT", "/rest/flag_type/1", `{"sortkey":1}`, "Content-Type", "application/json"),
		"REST, made-up key":       call("PUT", "/rest/flag_type/1", `{"sortkey":1}`, "Content-Type", "application/json", "X-BUGZILLA-API-KEY", outsider),
	}
}

// insidersUploads are calls that change no flag type, by a caller that the tracker accepts, with an attachment of several MiB.
func insidersUploads(key string) map[string]ask {
	data := strings.Repeat("QUFB", 1<<20)
	member := func(name, value string) string { return xmlMember(name, "<string>"+value+"</string>") }
	upload := `"params":[{"Bugzilla_api_key":"` + key + `","ids":[7],"data":"` + data + `","file_name":"f","summary":"s","content_type":"text/plain"}]`
	return map[string]ask{
		"JSON-RPC upload":              call("POST", "/jsonrpc.cgi", `{"method":"Bug.add_attachment","id":1,`+upload+`}`),
		"JSON-RPC upload, method late": call("POST", "/jsonrpc.cgi", `{`+upload+`,"id":1,"method":"Bug.add_attachment"}`),
		"XML-RPC upload": call("POST", "/xmlrpc.cgi", xmlCall("Bug.add_attachment", member("Bugzilla_api_key", key)+
			xmlMember("ids", "<array><data><value><int>7</int></value></data></array>")+xmlMember("data", "<base64>"+data+"</base64>")+
			member("file_name", "f")+member("summary", "s")+member("content_type", "text/plain")), "Content-Type", "text/xml"),
	}
}

// keeps sends calls and demands that the reads of flag types that follow are answered from the cache.
func keeps(t *testing.T, f *facade, when string, calls map[string]ask) {
	t.Helper()
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "granter"}
	process.Eventually(t, "a read is answered from the cache", func() bool { return f.do(t, read).ok(t, 200).cacheStatus() == "hit" })
	for name, c := range calls {
		got := f.do(t, c)
		for range 2 {
			if status := f.do(t, read).ok(t, 200).cacheStatus(); status != "hit" {
				t.Errorf("%s: after %s, answered with %d %.80s, a read is %q", when, name, got.status, got.body, status)
			}
		}
	}
	if made := f.changes(t); made != 0 {
		t.Errorf("%s: Portico has noticed %d changes", when, made)
	}
}

// TestNoOutsiderInvalidates: neither an anonymous caller nor one with a made-up credential takes anything from the cache, and
// a large upload does not either.
func TestNoOutsiderInvalidates(t *testing.T) {
	t.Parallel()
	s := startScripted(t)
	f := startFacade(t, s.base, "TIMEOUTS_REDIS=10s")
	keeps(t, f, "by outsiders", outsidersCalls())
	keeps(t, f, "by callers", insidersUploads(f.keys["dev"]))
	for path, refusal := range map[string]string{
		"/jsonrpc.cgi":       `{"result":null,"error":{"message":"` + padding(1<<20) + `","code":306}}`,
		"/xmlrpc.cgi":        xmlFaultOf(306, padding(1<<20)),
		"/editflagtypes.cgi": "<p>" + padding(900<<10) + "</p>" + loginForm, // of a page the first MiB is looked at
	} {
		body := map[string]string{
			"/jsonrpc.cgi": `{"method":"FlagType.create","params":[{"Bugzilla_api_key":"` + outsider + `"}],"id":1}`,
			"/xmlrpc.cgi":  xmlCall("FlagType.create", xmlMember("Bugzilla_api_key", "<string>"+outsider+"</string>")),
		}[path]
		s.says(200, refusal)
		keeps(t, f, "by a refusal over 64 KiB", map[string]ask{path: call("POST", path, body, "Cookie", "Bugzilla_logincookie=made-up")})
	}
	s.does(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, loginForm)
		}
	})
	for _, method := range []string{"HEAD", "OPTIONS"} {
		link := call(method, "/editflagtypes.cgi?action=delete&id=1", "", "Cookie", "Bugzilla_logincookie=made-up")
		keeps(t, f, "by a link", map[string]ask{method: link})
	}
	s.does(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	keeps(t, f, "without a credential and without an answer", map[string]ask{
		"REST":     call("PUT", "/rest/flag_type/1", `{"sortkey":1}`, "Content-Type", "application/json"),
		"JSON-RPC": call("POST", "/jsonrpc.cgi", `{"method":"FlagType.update","params":[{"ids":[1]}],"id":1}`),
		"page":     call("POST", "/editflagtypes.cgi", "action=update", "Content-Type", typeForm),
	})
}

func xmlFaultOf(code int, message string) string {
	return "<?xml version='1.0'?><methodResponse><fault><value><struct>" + xmlMember("faultString", "<string>"+message+"</string>") +
		xmlMember("faultCode", fmt.Sprintf("<int>%d</int>", code)) + "</struct></value></fault></methodResponse>"
}

// TestHangingUpInvalidatesNothing: a caller with a made-up key that does not wait for the refusal takes nothing from the cache.
func TestHangingUpInvalidatesNothing(t *testing.T) {
	t.Parallel()
	s := startScripted(t)
	f := startFacade(t, s.base, "TIMEOUTS_REDIS=10s")
	arrived, goOn := make(chan struct{}), make(chan struct{})
	for name, c := range map[string]struct {
		ask
		status  int
		refusal string
	}{
		"REST": {call("PUT", "/rest/flag_type/1", `{"sortkey":1}`, "Content-Type", "application/json", "X-BUGZILLA-API-KEY", outsider),
			400, `{"error":true,"code":306,"message":"m","documentation":"d"}`},
		"XML-RPC": {call("POST", "/xmlrpc.cgi", xmlCall("FlagType.update", ""), "X-BUGZILLA-API-KEY", outsider), 200, xmlFaultOf(306, "m")},
	} {
		s.itself()
		keeps(t, f, name, nil)
		s.does(func(w http.ResponseWriter, _ *http.Request) {
			arrived <- struct{}{}
			<-goOn
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.refusal)
		})
		ctx, hangUp := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, c.method, f.base+c.path, strings.NewReader(c.body))
		must(t, err)
		request.Header = c.header
		over := make(chan struct{})
		go func() {
			defer close(over)
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		}()
		<-arrived
		hangUp()
		<-over
		time.Sleep(100 * time.Millisecond) // for Portico to notice
		goOn <- struct{}{}
		time.Sleep(200 * time.Millisecond) // for Portico to draw its conclusions
		if made := f.changes(t); made != 0 {
			t.Errorf("%s: %d invalidations", name, made)
		}
	}
}

// changes counts the changes of flag types that Portico has noticed, by its metrics.
func (f *facade) changes(t *testing.T) (made int) {
	t.Helper()
	for line := range strings.Lines(string(f.operators.do(t, ask{method: http.MethodGet, path: "/metrics"}).body)) {
		var n int
		if _, value, found := strings.Cut(line, "} "); found && strings.HasPrefix(line, "portico_cache_changes_total") {
			_, _ = fmt.Sscan(value, &n)
			made += n
		}
	}
	return made
}
