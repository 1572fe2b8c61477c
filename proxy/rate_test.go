package proxy_test

import (
	"net/http"
	"testing"
	"time"

	"portico/proxy"
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
			if most := 4 + int(time.Since(start)/time.Second); through < 3 || through > most {
				t.Errorf("%d came through, at most %d should", through, most)
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
