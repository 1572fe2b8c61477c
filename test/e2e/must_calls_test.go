package e2e

import (
	"net/http"
	"testing"

	"portico/test/process"
)

// vainCalls are requests that would change flag types if they were let in. None of them shows a credential that is one.
func vainCalls() map[string]ask {
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	post := func(path, body string) ask { return ask{method: http.MethodPost, path: path, body: body, header: form} }
	madeUp := xmlMember("Bugzilla_api_key", "<string>made-up</string>")
	return map[string]ask{
		"the page":                post("/editflagtypes.cgi", "x=1"),
		"the page, by a link":     {method: http.MethodGet, path: "/editflagtypes.cgi?action=delete&id=1"},
		"the page, made-up login": {method: http.MethodPost, path: "/editflagtypes.cgi", body: "x=1", header: http.Header{"Cookie": {"Bugzilla_logincookie=x"}}},
		"JSON-RPC":                post("/jsonrpc.cgi", `{"method":"FlagType.update","params":[{"ids":[1],"description":"vain"}],"id":1}`),
		"JSON-RPC, made-up key":   post("/jsonrpc.cgi", `{"method":"FlagType.update","params":[{"ids":[1],"Bugzilla_api_key":"made-up"}],"id":1}`),
		"JSON-RPC, made-up token": post("/jsonrpc.cgi", `{"method":"FlagType.create","params":[{"name":"n","token":"1-made-up"}],"id":1}`),
		"no JSON-RPC":             post("/jsonrpc.cgi", "x=1"),
		"XML-RPC":                 post("/xmlrpc.cgi", xmlCall("FlagType.update", xmlMember("description", "<string>vain</string>"))),
		"XML-RPC, made-up key":    post("/xmlrpc.cgi", xmlCall("FlagType.create", madeUp)),
		"no XML-RPC":              post("/xmlrpc.cgi", "x=1"),
	}
}

// Whoever is not let in leaves the cache of every process as it is, and so does a call that no tracker gets: reads go on
// while the tracker is away.
func TestMust_CallsInVainKeepTheCache(t *testing.T) {
	t.Parallel()
	redis := process.FreeAddress(t)
	process.Redis(t, redis)
	tracker, base := startTracker(t, process.FreeAddress(t))
	// On a busy machine Redis may take longer than usual, which is another reason for a miss.
	patient := []string{"CACHE_REDIS=redis://" + redis, "TIMEOUTS_REDIS=10s"}
	one, two := startFacade(t, base, patient...), startFacade(t, base, patient...)
	read := ask{method: http.MethodGet, path: "/rest/flag_type/TestProduct", user: "granter"}
	for _, f := range []*facade{one, two} {
		process.Eventually(t, "a read is answered from the cache", func() bool { return f.do(t, read).ok(t, 200).cacheStatus() == "hit" })
	}
	keep := func(when string) {
		t.Helper()
		for name, call := range vainCalls() {
			got := one.do(t, call)
			for _, f := range []*facade{one, two} {
				if status := f.do(t, read).ok(t, 200).cacheStatus(); status != "hit" {
					t.Errorf("%s: after %s, answered %d %.80s, a read is %q", when, name, got.status, got.body, status)
				}
			}
		}
	}
	keep("while the tracker is there")
	tracker.Kill(t)
	keep("while it is away")
	keep("while the breaker is open")
}
