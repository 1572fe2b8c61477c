package proxy_test

import (
	"io"
	"net/http"
	"slices"
	"testing"
)

// A read whose bearer token a tracker refuses as an API key is sent again without it: the token may be that of a gateway. Nothing else
// is sent twice, and the client gets what the tracker responded to the last request.
func TestBearerTokenThatIsNoKey(t *testing.T) {
	const badKey, otherError = `{"error":true,"code":306,"message":"no such key"}`, `{"error":true,"code":101,"message":"no such bug"}`
	for name, c := range map[string]struct {
		method, header, value, refusal string
		status                         int
		queries                        []string
		want                           int
	}{
		"bearer token":      {"GET", "Authorization", "Bearer " + bearerKey, badKey, 400, []string{"x=1&Bugzilla_api_key=" + bearerKey, "x=1"}, 200},
		"write":             {"POST", "Authorization", "Bearer " + bearerKey, badKey, 400, []string{"x=1&Bugzilla_api_key=" + bearerKey}, 400},
		"API key":           {"GET", "X-Bugzilla-Api-Key", bearerKey, badKey, 400, []string{"x=1&Bugzilla_api_key=" + bearerKey}, 400},
		"another error":     {"GET", "Authorization", "Bearer " + bearerKey, otherError, 400, []string{"x=1&Bugzilla_api_key=" + bearerKey}, 400},
		"another status":    {"GET", "Authorization", "Bearer " + bearerKey, badKey, 401, []string{"x=1&Bugzilla_api_key=" + bearerKey}, 401},
		"no JSON":           {"GET", "Authorization", "Bearer " + bearerKey, "306", 400, []string{"x=1&Bugzilla_api_key=" + bearerKey}, 400},
		"token that is not": {"GET", "Authorization", "Bearer short", badKey, 400, []string{"x=1"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			tracker, base := behind(t, "", unreading)
			var queries []string
			tracker.response = func(w http.ResponseWriter, r *http.Request) {
				queries = append(queries, r.URL.RawQuery)
				if r.URL.Query().Has("Bugzilla_api_key") {
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.refusal)
				}
			}
			got := ask(t, c.method, base+"/rest/bug/1?x=1", "", c.header, c.value)
			if got.status != c.want || !slices.Equal(queries, c.queries) || c.want != 200 && got.body != c.refusal {
				t.Errorf("%d %q after %q", got.status, got.body, queries)
			}
		})
	}
}
