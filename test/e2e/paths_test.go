package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// Odd spellings of a path of the interface are refused, or handled as the plain path. None reaches the tracker as something else.
func TestOddSpellingsOfPathsAreRefused(t *testing.T) {
	t.Parallel()
	f := open(t, plan{program: true})
	tape := f.tape
	for _, path := range []string{
		"/rest/flag_type%2F5", "/rest%2Fflag_type/5", "/rest.cgi%2fflag_type/5", "/rest/bug%2F7%2Fattachment", "/rest/bug/7%2fattachment",
		"/rest/bug%252F7%252Fattachment", "/rest/bug/attachment%20", "/rest/bug/%20attachment", "/rest/bug/attachment%0a", "/rest/bug/attachment.",
		"/rest/bug/attachment;a", "/rest/bug/attachment%00", "/rest/bug/attachment%20/1", "/rest/bug/attachment./1", "/rest/bug/attachment;a/1",
		"/rest/bug/%20attachment/1", "/rest/bug/7/attachment%20", "/rest/bug/7/attachment;a", "/rest/bug/..;/user", "/rest/bug/..%c0%afuser",
		"/rest/bug/%c0%ae%c0%ae/user", "/rest/flag_type%5C5", "/jsonrpc.cgi;a", "/editflagtypes.cgi%20", "/REST/bug%2F7/attachment",
		"/rest%2Fbug%2fattachment%2F", "/rest/%2562ug/attachment", "/rest/bug/%252561ttachment", "/rest/bug/x%2F..%2Fattachment", "/rest/bug%5Cattachment",
		"/rest/bug/%252525252525252525252561", "/rest/bug/attachment%3Fx", "/rest/bug/attachment%23x", "/rest/bug/attachment%2F%253Fx/5",
		"/rest/bug/x%3F%2F..%2Fattachment", "/rest/bug/%e0%80%ae./user", "/rest/bug/%f0%80%80%ae./user", "/rest/bug/7/attachment%09",
		"/rest/bug/attachment%c2%a0/1", "/rest/bug/attachment%ff/1", "/rest/bug/attachment%e2%80%8b/1", "/rest./flag_type", "/xmlrpc.cgi%2Fx",
		"/x/..%20/y", "/x/..%2Frest/bug/attachment", "/x/..%2F..%2Fetc", "/rest/flag_types%2FTestProduct", "/rest/flag_types;a/5", "/rest%2Fflag_types",
	} {
		for _, method := range []string{"GET", "PUT", "POST"} {
			a := ask{method: method, path: path, user: "admin"}
			if method != "GET" {
				a.body = `{"ids":[1],"summary":"s"}`
			}
			f.do(t, a).refused(t, 404, 32614)
		}
	}
	// A write to the collection of attachments would edit bugs (recorded as att.update.collection).
	for _, path := range []string{
		"/rest/bug/attachment", "/rest.cgi/bug/attachment", "/rest/bug/attachment/", "//rest//bug/./attachment", "/rest/bug/x/../attachment",
		"/rest/bug/%61ttachment", "/REST/bug/attachment",
	} {
		for _, method := range []string{"PUT", "POST", "PATCH", "DELETE", "put"} {
			f.do(t, ask{method: method, path: path, user: "admin", body: `{"ids":[1]}`}).refused(t, 404, 32614)
		}
	}
	if list := tape.all(); len(list) > 0 {
		t.Errorf("%s %s reached the tracker", list[0].method, list[0].uri)
	}
	for _, path := range []string{
		"/rest/bug/attachments", "/rest/bug/5", "/rest/bug/5%3Fattachment", "/rest/bug/attachments%3F", "/rest/user/a%2Fb", "/rest/product/a;b",
		"/rest/flag_type/a/b/c", "/jsonrpc.cgi/x", "/rest/bug/Gr%F6%DFe", "/show_bug.cgi/...", "/100%25", "/bug/attachment",
	} {
		if got := f.get(t, "admin", path); got.header.Get("Portico-Error") != "" {
			t.Errorf("%s does not pass: %d %s", path, got.status, got.body)
		}
	}
	// Escapes that mean nothing are removed, and names may hold what they like.
	f.get(t, "admin", "/rest/%66lag_type/TestProduct").ok(t, 200)
	f.get(t, "admin", "/rest/bug/%61ttachment/1").ok(t, 200)
	f.get(t, "admin", "/rest/user?match=dev").ok(t, 200)
	f.get(t, "admin", "/rest/flag_type/Product%2FWith%2FSlash").ok(t, 200)
}

// A path that holds a credential is refused, so that it gets neither into the log nor into Redis.
func TestCredentialsInPathsAreKeptNowhere(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	process.Redis(t, address)
	asked := &recording{}
	base := process.Listen(t, asked.over(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/version") {
			_, _ = io.WriteString(w, `{"version":"5.2+"}`)
			return
		}
		_, _ = io.WriteString(w, `{"bug":[],"attachment":[]}`)
	})))
	f := startFacade(t, base.String(), "CACHE_REDIS=redis://"+address, "TIMEOUTS_REDIS=10s")
	const secret = "LeakedInAPath"
	for _, path := range []string{
		"Bugzilla%5Fapi%5Fkey=", "Bugzilla_api_key=", "P%3FBugzilla_api_key%3D", "P%253FBugzilla%255Fapi_key=", "P;Bugzilla%5Ftoken=", "P/%61pi_key=",
		"BUGZILLA%5FPASSWORD=", "P;Bugzilla_password=", "P%23TOKEN%3d", "P&login=x&password=",
		"X-BUGZILLA-API-KEY:", "X-Bugzilla-Token:%20", "P/x-bugzilla-api-key%3A%20",
	} {
		f.get(t, "", "/rest/flag_type/"+path+secret).refused(t, 400, 32000)
		f.get(t, "", "/page/"+path+secret)
	}
	f.get(t, "", "/rest/flag_type/X-Bugzilla-Status:%20a%20product").ok(t, 200)
	f.get(t, "", "/rest/flag_type/Kept").ok(t, 200)
	reader := redisClient(t, address)
	kept := ""
	process.Eventually(t, "Redis keeps an answer", func() bool {
		names, err := reader.Keys(t.Context(), "*").Result()
		must(t, err)
		kept = strings.Join(names, " ")
		for _, name := range names {
			text, _ := reader.Dump(t.Context(), name).Result()
			kept += text
		}
		return strings.Contains(kept, "Kept")
	})
	process.Eventually(t, "the requests are in the log", func() bool { return strings.Contains(f.Err.String(), "/rest/flag_type/Kept") })
	for place, text := range map[string]string{"Redis": kept, "the log": f.Err.String()} {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds the credential", place)
		}
	}
}

// everywhere checks the operations and what passes through below a path of Portico.
func (f *client) everywhere(t *testing.T, below string) {
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

func TestATrackerBelowAPathIsThereAndAtTheRoot(t *testing.T) {
	t.Parallel()
	f := open(t, plan{program: true, below: "/bugzilla"})
	for _, below := range []string{"", "/bugzilla"} {
		f.everywhere(t, below)
		if page := f.get(t, "", below+"/show_bug.cgi?id=1"); page.status != 200 {
			t.Errorf("a page below %q/: status %d", below, page.status)
		}
	}
	for _, one := range f.tape.all() {
		if !strings.HasPrefix(one.uri, "/bugzilla/") || strings.HasPrefix(one.uri, "/bugzilla/bugzilla/") {
			t.Errorf("%s reached the tracker", one.uri)
		}
	}
}

// The address of the tracker names the host only: the tracker is found below /bugzilla.
func TestATrackerBelowAPathIsFound(t *testing.T) {
	t.Parallel()
	base := process.Listen(t, under("/bugzilla", process.Reference(t, tracker.Options{})))
	f := startFacade(t, base.String())
	f.everywhere(t, "")
	f.everywhere(t, "/bugzilla")
	for _, odd := range []string{"/bugzilla%2Frest/bug/attachment", "/bugzilla%2Frest%2Fbug%2Fattachment", "/bugzilla;a/rest/bug/attachment"} {
		f.put(t, "dev", odd, `{"ids":[1]}`).refused(t, 404, 32614)
	}
	if page := f.get(t, "", "/bugzilla/show_bug.cgi?id=1"); page.status != 200 {
		t.Errorf("a page: status %d", page.status)
	}
	code, out := portico(t, "check", "--probe", "--tracker", base.String())
	if code != 0 || !strings.Contains(out, "version 5.2+") || !strings.Contains(out, base.String()+"/bugzilla/") {
		t.Errorf("check --probe: exit %d: %s", code, out)
	}
	config := process.File(t, "portico.yaml", fmt.Sprintf("trackers: {main: {url: %q, dialect: bugzilla-5}}\n", base.String()))
	if code, out = portico(t, "check", "--probe", "--config", config); code == 0 || !strings.Contains(out, base.String()+"/bugzilla/") {
		t.Errorf("check --probe of a fixed dialect: exit %d: %s", code, out)
	}
}

// Cookies and redirects have the path that the client uses.
func TestCookiesAndLinksBelowAPath(t *testing.T) {
	t.Parallel()
	base := process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// Where JSON-RPC is refused, the error says that it is needed, and names are read by the REST forms that there are. Names in Latin-1 reach what
// they name, whatever the form that the tracker understands.
func TestNamesReachWhatTheyName(t *testing.T) {
	const utf8 = "/rest/flag_type/%C3%9Cn%C3%AFcode%20%E6%97%A5%E6%9C%AC"
	umlaut := tracker.Options{Product: "Größe"}
	withoutRPC := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/jsonrpc.cgi" {
				http.Error(w, "<html>Forbidden</html>", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	keep(t, "", []promise{
		{"Names", "in Latin-1", []plan{{tracker: umlaut}}, `
			- GET /rest/flag_type/<<Gr%F6%DFe|Gr%C3%B6%C3%9Fe>>
			- GET /rest/flag_type/TestProduct/%FCber -> 404 51
			editor POST /rest/flag_type {"name":"grün","description":"d"}
			editor PUT /rest/flag_type/gr%FCn {"sortkey":77} -> | flagtypes.0.changes.sortkey.added="77"
			- GET /rest/flag_type/a%00b -> !400 32000`},
		{"Names", "without JSON-RPC", []plan{{tracker: umlaut, before: withoutRPC}}, `
			- GET /rest/flag_type/<<Product%2FWith%2FSlash|%E6%97%A5%E6%9C%AC>> -> !403 200403 | .~JSON-RPC
			- GET /rest/flag_type/<<TestProduct|Gr%C3%B6%C3%9Fe|Gr%F6%DFe>>`},
		{"Names", "without JSON-RPC, of 5.0", []plan{{before: withoutRPC, tracker: tracker.Options{Version: "5.0.4.1+", Quirks: []tracker.Quirk{tracker.QuirkUTF8Path}}}},
			"- GET " + utf8},
	})
	code, out := portico(t, "check", "--probe", "--tracker", process.Listen(t, withoutRPC(process.Reference(t, umlaut))).String())
	if code != 0 || !strings.Contains(out, "/jsonrpc.cgi is refused (HTTP 403)") {
		t.Errorf("check --probe: exit %d: %s", code, out)
	}
}
