package proxy_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

// Every kind of request is counted, whichever way its credential comes, and a refused one does not reach the tracker.
func TestRateLimit(t *testing.T) {
	const body = `{"name":"n","description":"d"`
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
	}{
		"anonymous read":       {"GET", "/rest/flag_type/P", "", nil},
		"keyed read":           {"GET", "/rest/flag_type/P?api_key=k", "", nil},
		"key in a header":      {"POST", "/rest/flag_type", body + "}", []string{"X-Bugzilla-Api-Key", "k"}},
		"key in the body":      {"POST", "/rest/flag_type", body + `,"api_key":"k"}`, nil},
		"what passes through":  {"GET", "/show_bug.cgi", "", nil},
		"remote call":          {"POST", "/jsonrpc.cgi", "{}", nil},
		"write without a key":  {"POST", "/rest/flag_type", body + "}", nil},
		"unreadable parameter": {"GET", "/rest/version?api_key=k&api_key=k", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			tracker, passed := &fakeTracker{}, make(chan struct{}, 100)
			pass := passTo(t, func(http.ResponseWriter, *http.Request) { passed <- struct{}{} })
			few := proxy.Rate{PerSecond: 1, Burst: 3}
			base := serve(t, proxy.Options{Tracker: tracker, Passthrough: pass, Rates: proxy.RateLimits{Anonymous: few, Keyed: few}})
			start, through, refused := time.Now(), 0, 0
			for range 12 {
				got := ask(t, c.method, base+c.path, c.body, c.header...)
				if got.status != http.StatusTooManyRequests {
					through++
					continue
				}
				refused++
				got.wantError(t, 429, "200429")
				if got.header.Get("Portico-Error") != "rate-limited" || got.header.Get("Retry-After") != "1" {
					t.Errorf("headers %v", got.header)
				}
			}
			if limit := 4 + int(time.Since(start)/time.Second); through < 3 || through > limit {
				t.Errorf("%d came through, at most %d should", through, limit)
			}
			if reached := len(tracker.asked()) + len(passed); reached > through {
				t.Errorf("%d calls reached the tracker and %d came through", reached, through)
			}
		})
	}
}

// Neither kind of caller uses up what belongs to another.
func TestRateLimitKeepsCallersApart(t *testing.T) {
	base := serve(t, proxy.Options{Rates: proxy.RateLimits{Anonymous: proxy.Rate{PerSecond: 1, Burst: 20}, Keyed: proxy.Rate{PerSecond: 1, Burst: 2}}})
	path := base + "/rest/flag_type/P"
	refused := false
	for range 50 {
		refused = refused || ask(t, "GET", path, "", "Authorization", "Bearer one").status == http.StatusTooManyRequests
	}
	if !refused {
		t.Error("50 calls at once came through")
	}
	ask(t, "GET", path, "").wantStatus(t, 200)
	ask(t, "GET", path, "", "Authorization", "Bearer two").wantStatus(t, 200)
	ask(t, "OPTIONS", path, "").wantStatus(t, 200)
}

// A credential has calls of its own only once the tracker has accepted it; until then it counts against its address.
func TestCredentialsAreProvedByTheTracker(t *testing.T) {
	const create = `{"name":"n","description":"d"}`
	for name, c := range map[string]struct {
		method, path, body, name, value string
		proved                          bool
	}{
		"accepted read":            {"GET", "/rest/flag_type/P", "", "X-Bugzilla-Api-Key", "good", true},
		"refused read":             {"GET", "/rest/flag_type/P", "", "X-Bugzilla-Api-Key", "bad", false},
		"ignored cookies":          {"GET", "/rest/flag_type/P", "", "Cookie", "Bugzilla_login=1; Bugzilla_logincookie=good", false},
		"accepted write":           {"POST", "/rest/flag_type", create, "X-Bugzilla-Api-Key", "good", true},
		"refused write":            {"POST", "/rest/flag_type", create, "X-Bugzilla-Api-Key", "bad", false},
		"key in the body":          {"POST", "/rest/flag_type", `{"api_key":"good",` + create[1:], "X-Bugzilla-Api-Key", "bad", true},
		"accepted passing":         {"GET", "/rest/bug/1", "", "X-Bugzilla-Api-Key", "good", true},
		"refused passing":          {"GET", "/rest/bug/1", "", "X-Bugzilla-Api-Key", "bad", false},
		"passing for every caller": {"GET", "/rest/version", "", "X-Bugzilla-Api-Key", "good", false},
		"page":                     {"GET", "/show_bug.cgi", "", "X-Bugzilla-Api-Key", "good", false},
	} {
		t.Run(name, func(t *testing.T) {
			pass := passTo(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Bugzilla-Api-Key") == "bad" {
					w.WriteHeader(http.StatusBadRequest)
				}
			})
			base := serve(t, proxy.Options{Tracker: pickyTracker(), Passthrough: pass, Rates: proxy.RateLimits{Anonymous: proxy.Rate{PerSecond: 1, Burst: 1}}})
			start, through := time.Now(), 0
			for range 20 {
				if ask(t, c.method, base+c.path, c.body, c.name, c.value).status != http.StatusTooManyRequests {
					through++
				}
			}
			if limit := 1 + int(time.Since(start)/time.Second); c.proved && through != 20 || !c.proved && through > limit {
				t.Errorf("%d of 20 came through", through)
			}
		})
	}
}

// pickyTracker refuses the key "bad".
func pickyTracker() *fakeTracker {
	check := func(caller upstream.Caller) error {
		if caller.Credentials.APIKey == "bad" {
			return mapping.Refuse(mapping.CodeBadKey, "no such key")
		}
		return nil
	}
	return &fakeTracker{
		flagTypes: func(_ context.Context, caller upstream.Caller, _ mapping.FlagTypesRequest) (mapping.Reply, error) {
			return mapping.Reply{Document: document(noFlagTypes)}, check(caller)
		},
		createFlagType: func(_ context.Context, caller upstream.Caller, _ mapping.FlagTypeCreate) (mapping.Reply, error) {
			return mapping.Reply{Document: document(`{"id":1,"flag_id":1}`)}, check(caller)
		},
	}
}
