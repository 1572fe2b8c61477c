package e2e

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// everywhere checks the operations and what passes through below a path of Portico.
func (f *facade) everywhere(t *testing.T, below string) {
	t.Helper()
	f.get(t, "", below+"/rest/version").ok(t, 200)
	for _, op := range seven() {
		f.do(t, ask{method: op.method, path: below + "/rest" + op.path, user: "admin", body: op.body}).ok(t, op.status)
		f.do(t, ask{method: op.method, path: below + "/rest" + op.path, body: op.body}).fails(t, op.anonymous, codeOf(op))
	}
	// What only Portico does shows that these are operations and do not just pass.
	f.put(t, "dev", below+"/rest/bug/attachment", `{"ids":[1]}`).refused(t, 404, 32614)
	f.put(t, "dev", below+"/rest/bug%2Fattachment", `{"ids":[1]}`).refused(t, 404, 32614)
	f.post(t, "editor", below+"/rest/flag_type", `{"name":"n","description":"d","sortkey":0}`).refused(t, 400, 1104)
	f.get(t, "", below+"/rest/flag_type/Product%2FWith%2FSlash").ok(t, 200)
	if status := f.get(t, "admin", below+"/rest/flag_type/TestProduct").ok(t, 200).cacheStatus(); status == "" {
		t.Errorf("a read of flag types below %q/ says nothing of the cache", below)
	}
	f.get(t, "admin", below+"/rest/bug/4").ok(t, 200)
	call := f.post(t, "", below+"/jsonrpc.cgi", `{"method":"Bugzilla.version","params":[{}],"id":1}`)
	if call.status != 200 || !strings.Contains(string(call.body), "5.2") {
		t.Errorf("JSON-RPC below %q/: status %d: %.200s", below, call.status, call.body)
	}
}

func TestRequests_ATrackerBelowAPathIsThereAndAtTheRoot(t *testing.T) {
	t.Parallel()
	f, tape := throughBelow(t, "/bugzilla", tracker.Options{})
	for _, below := range []string{"", "/bugzilla"} {
		f.everywhere(t, below)
		if page := f.get(t, "", below+"/show_bug.cgi?id=1"); page.status != 200 {
			t.Errorf("a page below %q/: status %d", below, page.status)
		}
	}
	for _, one := range tape.all() {
		if !strings.HasPrefix(one.uri, "/bugzilla/") || strings.HasPrefix(one.uri, "/bugzilla/bugzilla/") {
			t.Errorf("%s reached the tracker", one.uri)
		}
	}
}

// The address of the tracker names the host only: the tracker is found below /bugzilla.
func TestRequests_ATrackerBelowAPathIsFound(t *testing.T) {
	t.Parallel()
	base := listenOn(t, under("/bugzilla", reference(t, tracker.Options{})))
	f := startFacade(t, base.String())
	f.everywhere(t, "")
	f.everywhere(t, "/bugzilla")
	if page := f.get(t, "", "/bugzilla/show_bug.cgi?id=1"); page.status != 200 {
		t.Errorf("a page: status %d", page.status)
	}
	said, err := probed(t, base.String())
	if err != nil || !strings.Contains(said, "version 5.2+") || !strings.Contains(said, base.String()+"/bugzilla/") {
		t.Errorf("check --probe says %v: %s", err, said)
	}
	if said, err = probed(t, base.String(), "--dialect", "bugzilla-5"); err == nil || !strings.Contains(said, base.String()+"/bugzilla/") {
		t.Errorf("check --probe of a fixed dialect says %v: %s", err, said)
	}
}

// probed runs portico check --probe.
func probed(t *testing.T, base string, args ...string) (said string, err error) {
	t.Helper()
	all := []string{"check", "--probe", "--tracker", base}
	env := []string{"PORTICO_CACHE_SCOPE=off"}
	if len(args) == 2 && args[0] == "--dialect" {
		env = append(env, "PORTICO_TRACKERS_MAIN_DIALECT="+args[1])
	}
	command := exec.CommandContext(t.Context(), process.Portico(t), all...)
	command.Env, command.Dir = env, t.TempDir()
	text, err := command.CombinedOutput()
	return string(text), err
}

// Cookies and redirects have the path that the client uses.
func TestRequests_CookiesAndLinksBelowAPath(t *testing.T) {
	t.Parallel()
	base := listenOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bugzilla/rest/version":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"version":"5.2+"}`)
		case "/bugzilla/rest/bug/5/attachment":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Set-Cookie", "a=b; path=/bugzilla/; HttpOnly")
			_, _ = io.WriteString(w, `{"bugs":{"5":[]},"attachments":{}}`)
		case "/bugzilla/index.cgi":
			w.Header().Set("Set-Cookie", "a=b; path=/bugzilla/; HttpOnly")
			http.Redirect(w, r, "http://"+r.Host+"/bugzilla/show_bug.cgi?id=1", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	f := startFacade(t, base.String()+"/bugzilla/")
	for below, cookiePath := range map[string]string{"": "/", "/bugzilla": "/bugzilla/"} {
		page := f.get(t, "", below+"/index.cgi")
		if got, want := page.header.Get("Location"), f.base+below+"/show_bug.cgi?id=1"; page.status != http.StatusFound || got != want {
			t.Errorf("status %d, Location %s, want %s", page.status, got, want)
		}
		for _, got := range []*reply{page, f.get(t, "", below+"/rest/bug/5/attachment")} {
			if cookie := got.header.Get("Set-Cookie"); !strings.Contains(cookie, "path="+cookiePath+";") {
				t.Errorf("%s sets the cookie %q, want the path %s", got.ask.path, cookie, cookiePath)
			}
		}
	}
}

// Names in Latin-1 reach what they name, whatever the form that the tracker understands.
func TestRequests_LatinOnePaths(t *testing.T) {
	t.Parallel()
	f, _ := through(t, tracker.Options{Product: "Größe"})
	for _, path := range []string{"Gr%F6%DFe", "Gr%C3%B6%C3%9Fe"} {
		f.get(t, "", "/rest/flag_type/"+path).ok(t, 200)
	}
	f.get(t, "", "/rest/flag_type/TestProduct/%FCber").fails(t, 404, 51)
	f.post(t, "editor", "/rest/flag_type", `{"name":"grün","description":"d"}`).ok(t, 201)
	is(t, f.put(t, "editor", "/rest/flag_type/gr%FCn", `{"sortkey":77}`).ok(t, 200).at(t, "flagtypes", 0, "changes", "sortkey", "added"), `"77"`)
	f.get(t, "", "/rest/flag_type/a%00b").refused(t, 400, 32000)
}

// withoutRPC starts Portico before a tracker whose web server refuses JSON-RPC.
func withoutRPC(t *testing.T, options tracker.Options, env ...string) (f *facade, base string) {
	t.Helper()
	next := reference(t, options)
	address := listenOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/jsonrpc.cgi" {
			http.Error(w, "<html>Forbidden</html>", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
	return startFacade(t, address.String(), env...), address.String()
}

// Where JSON-RPC is refused, the error says that it is needed, and names are read by the REST forms that there are.
func TestRequests_JSONRPCIsRefused(t *testing.T) {
	t.Parallel()
	f, base := withoutRPC(t, tracker.Options{Product: "Größe"})
	for _, product := range []string{"Product%2FWith%2FSlash", "%E6%97%A5%E6%9C%AC"} {
		refused := f.get(t, "", "/rest/flag_type/"+product).refused(t, 403, 200403)
		if !strings.Contains(string(refused.body), "JSON-RPC") {
			t.Errorf("%s: the error is %s", product, refused.body)
		}
	}
	f.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200)
	f.get(t, "", "/rest/flag_type/Gr%C3%B6%C3%9Fe").ok(t, 200)
	f.get(t, "", "/rest/flag_type/Gr%F6%DFe").ok(t, 200)
	said, err := probed(t, base)
	if err != nil || !strings.Contains(said, "/jsonrpc.cgi is refused (HTTP 403)") {
		t.Errorf("check --probe says %v: %s", err, said)
	}
}

func TestRequests_JSONRPCIsRefusedOn50(t *testing.T) {
	t.Parallel()
	f, _ := withoutRPC(t, tracker.Options{Version: "5.0.4.1+", Quirks: []tracker.Quirk{tracker.QuirkUTF8Path}})
	f.get(t, "", "/rest/flag_type/%C3%9Cn%C3%AFcode%20%E6%97%A5%E6%9C%AC").ok(t, 200)
}

// With hide_keys no read of an operation has a credential in its request line.
func TestRequests_HiddenKeys(t *testing.T) {
	t.Parallel()
	f, tape := through(t, tracker.Options{}, "TRACKERS_MAIN_HIDE_KEYS=true", "CACHE_SCOPE=group")
	token := f.login(t)
	before := len(tape.all())
	for _, one := range forms(f.keys["admin"], token) {
		if one.writes {
			continue
		}
		for _, path := range []string{
			"/rest/flag_type/SecretProduct", "/rest/flag_type/TestProduct/Comp%20B", "/rest/bug/4/attachment", "/rest/bug/attachment/2?exclude_fields=data",
		} {
			f.do(t, one.with(t, ask{method: "GET", path: path})).ok(t, 200)
		}
	}
	plain, _ := through(t, tracker.Options{})
	for _, path := range []string{"/rest/bug/attachment/4", "/rest/flag_type/TestProduct"} {
		hidden, shown := f.get(t, "admin", path).ok(t, 200), plain.get(t, "admin", path).ok(t, 200)
		if path == "/rest/flag_type/TestProduct" && string(hidden.body) != string(shown.body) || len(hidden.body) != len(shown.body) {
			t.Errorf("%s: %d bytes with hidden keys and %d without", path, len(hidden.body), len(shown.body))
		}
	}
	seen := tape.all()[before:]
	if len(seen) == 0 {
		t.Fatal("nothing reached the tracker")
	}
	for _, one := range seen {
		if strings.Contains(one.uri, "Bugzilla_") || strings.Contains(one.uri, f.keys["admin"]) {
			t.Errorf("%s %s reached the tracker", one.method, one.uri)
		}
	}
	// Anonymous reads stay as they are.
	f.get(t, "", "/rest/bug/5/attachment").ok(t, 200)
	if last := tape.last(t); last.method != "GET" {
		t.Errorf("an anonymous read reached the tracker as %s %s", last.method, last.uri)
	}
}

// Which headers of the tracker reach the client (docs/divergences.md).
func TestRequests_TagsAndCookiesOfTheTracker(t *testing.T) {
	t.Parallel()
	f, tape := through(t, tracker.Options{})
	const cookie = "Bugzilla_login_request_cookie"
	for _, op := range seven() {
		got := f.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).ok(t, op.status)
		tag, given := got.header.Get("Etag"), tape.last(t).given.Get("Etag")
		isFlagTypes := op.method == http.MethodGet && strings.HasPrefix(op.path, "/flag_type")
		switch {
		case isFlagTypes && (tag == given || !strings.HasPrefix(tag, `"`)), !isFlagTypes && tag != given:
			t.Errorf("%s: the tracker's tag is %q and the client's %q", op.name, given, tag)
		}
		refused := f.do(t, ask{method: op.method, path: "/rest" + op.path, body: op.body}).fails(t, op.anonymous, codeOf(op))
		if refused.header.Get("Etag") != "" || refused.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: an error has the headers %v", op.name, refused.header)
		}
	}
	if got := f.get(t, "", "/rest/bug/5/attachment").ok(t, 200).header.Get("Set-Cookie"); !strings.HasPrefix(got, cookie) {
		t.Errorf("an anonymous read of attachments sets the cookie %q", got)
	}
	if got := f.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200).header.Get("Set-Cookie"); got != "" {
		t.Errorf("an anonymous read of flag types sets the cookie %q", got)
	}
}
