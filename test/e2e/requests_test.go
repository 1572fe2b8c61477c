package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// served starts the real program before a reference tracker in this process, whose exchanges are recorded.
func through(t testing.TB, options tracker.Options, env ...string) (*facade, *recording) {
	t.Helper()
	return throughBelow(t, "", options, env...)
}

// throughBelow is through for a tracker below a path such as /bugzilla.
func throughBelow(t testing.TB, path string, options tracker.Options, env ...string) (*facade, *recording) {
	t.Helper()
	var handler http.Handler = reference(t, options)
	if path != "" {
		handler = under(path, handler)
	}
	tape := &recording{}
	base := listenOn(t, tape.over(handler))
	base.Path = path + "/"
	return startFacade(t, base.String(), env...), tape
}

// headers of credentials that no tracker accepts.
func wrongHeaders() map[string]http.Header {
	return map[string]http.Header{
		"login":  {"X-Bugzilla-Login": {"admin@example.com"}, "X-Bugzilla-Password": {"wrong"}},
		"token":  {"X-Bugzilla-Token": {"1-wrong"}},
		"key":    {"X-Bugzilla-Api-Key": {"WrongKey00000000000000000000000000000000"}},
		"bearer": {"Authorization": {"Bearer WrongKey00000000000000000000000000000000"}},
	}
}

// A complete credential in the query or the body beats headers of every kind, as a stock tracker ignores headers.
func TestRequests_QueryAndBodyBeatHeadersOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{tracker.DialectBugzilla5, tracker.DialectBMO} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			f, _ := through(t, tracker.Options{Dialect: dialect})
			key := f.keys["admin"]
			login := "login=admin%40example.com&password=" + adminPassword
			for name, wrong := range wrongHeaders() {
				for _, a := range []ask{
					{method: "GET", path: "/rest/bug/4/attachment?api_key=" + key},
					{method: "GET", path: "/rest/bug/4/attachment?" + login},
					{method: "GET", path: "/rest/flag_type/SecretProduct?Bugzilla_api_key=" + key},
					{method: "GET", path: "/rest/bug/4?api_key=" + key},
					{method: "GET", path: "/rest/bug/4?" + login},
					{method: "PUT", path: "/rest/bug/attachment/8?api_key=" + key, body: `{"summary":"s"}`},
					{method: "PUT", path: "/rest/bug/attachment/8", body: `{"summary":"s","Bugzilla_api_key":"` + key + `"}`},
					{method: "PUT", path: "/rest/bug/4", body: `{"summary":"s","api_key":"` + key + `"}`},
				} {
					a.header = wrong
					if got := f.do(t, a); got.status != 200 {
						t.Errorf("%s %s with a wrong %s in headers: status %d, %.200s", a.method, a.path, name, got.status, got.body)
					}
				}
			}
		})
	}
}

// A login without a password is no complete credential: the headers count.
func TestRequests_AnIncompleteCredentialLeavesTheHeaders(t *testing.T) {
	t.Parallel()
	f, _ := through(t, tracker.Options{})
	f.get(t, "admin", "/rest/bug/4/attachment?login=admin%40example.com").ok(t, 200)
	f.get(t, "admin", "/rest/bug/4?api_key=").ok(t, 200)
}

// The bearer token of a gateway is no API key, so that what works straight at a tracker works.
func TestRequests_BearerTokensOfAGateway(t *testing.T) {
	t.Parallel()
	f, tape := through(t, tracker.Options{})
	for name, token := range map[string]string{
		"of another length":   "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
		"of another alphabet": "WrongKey-0000000000000000000000000000000",
		"like a key":          "WrongKey00000000000000000000000000000000",
	} {
		head := http.Header{"Authorization": {"Bearer " + token}}
		for _, path := range []string{
			"/rest/flag_type/TestProduct", "/rest/bug/5/attachment", "/rest/bug/attachment/1", "/rest/bug/1?include_fields=id", "/rest/version",
		} {
			f.do(t, ask{method: "GET", path: path, header: head}).ok(t, 200)
			last := tape.last(t)
			if path != "/rest/version" && (len(last.query(t)["Bugzilla_api_key"]) > 0 || last.header.Get("Authorization") != "Bearer "+token) {
				t.Errorf("%s with a token %s reached the tracker as %s with %q", path, name, last.uri, last.header["Authorization"])
			}
		}
		f.do(t, ask{method: "GET", path: "/rest/bug/4/attachment", header: head}).fails(t, 401, 102)
	}
	// A key as a bearer token is a key, and a bad key in any other form stays a bad key.
	f.do(t, ask{method: "GET", path: "/rest/bug/4/attachment", header: http.Header{"Authorization": {"Bearer " + f.keys["admin"]}}}).ok(t, 200)
	f.do(t, ask{method: "GET", path: "/rest/bug/4", header: http.Header{"Authorization": {"Bearer " + f.keys["admin"]}}}).ok(t, 200)
	bad := wrongHeaders()["key"]
	f.do(t, ask{method: "GET", path: "/rest/bug/5/attachment", header: bad}).fails(t, 400, 306)
	f.do(t, ask{method: "GET", path: "/rest/bug/1", header: bad}).fails(t, 400, 306)
	// A write is never sent twice: a token that could be a key is judged as one.
	write := ask{method: "PUT", path: "/rest/bug/attachment/1", body: `{"summary":"s"}`, header: wrongHeaders()["bearer"]}
	f.do(t, write).fails(t, 400, 306)
}

// Odd spellings of a path of the interface are refused, or handled as the plain path. None reaches the tracker as something else.
func TestRequests_OddSpellingsOfPathsAreRefused(t *testing.T) {
	t.Parallel()
	f, tape := through(t, tracker.Options{})
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
		"/x/..%20/y", "/x/..%2Frest/bug/attachment", "/x/..%2F..%2Fetc",
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
func TestRequests_CredentialsInPathsAreKeptNowhere(t *testing.T) {
	t.Parallel()
	address := process.FreeAddress(t)
	process.Redis(t, address)
	asked := &recording{}
	base := listenOn(t, asked.over(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	} {
		f.get(t, "", "/rest/flag_type/"+path+secret).refused(t, 400, 32000)
		f.get(t, "", "/page/"+path+secret)
	}
	f.get(t, "", "/rest/flag_type/Kept").ok(t, 200)
	reader := redisClient(t, address)
	kept := ""
	process.Eventually(t, "Redis keeps an answer", func() bool {
		names, err := reader.Keys(t.Context(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
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
