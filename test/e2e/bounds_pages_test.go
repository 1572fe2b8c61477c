package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"

	"portico/test/process"
)

// lyingGateway stands before a tracker. It passes every request on and, while a status is set, responds to writes with an error of
// its own after the tracker has carried them out.
type lyingGateway struct {
	status   atomic.Int64
	asJSON   atomic.Bool
	executed atomic.Int64
}

func (g *lyingGateway) start(t *testing.T, tracker string) (base string) {
	t.Helper()
	behind := parsed(t, tracker)
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.ModifyResponse = func(response *http.Response) error {
		status := int(g.status.Load())
		if response.Request.Method == http.MethodGet || status == 0 {
			return nil
		}
		if response.StatusCode/100 == 2 {
			g.executed.Add(1)
		}
		text, kind := fmt.Sprintf("<html><body>%d</body></html>", status), "text/html"
		if g.asJSON.Load() {
			text, kind = `{"error":true,"code":100500,"message":"Sending mail failed."}`, "application/json"
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body = io.NopCloser(strings.NewReader(text))
		response.StatusCode, response.ContentLength = status, int64(len(text))
		response.Header = http.Header{"Content-Type": {kind}, "Content-Length": {fmt.Sprint(len(text))}}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// An error that comes after the tracker has carried a create out does not lead to a second one where the client repeats it
// with its Idempotency-Key. And what docs/reference/errors.md says of errors holds: only those that Portico makes itself, other than
// web-server, and without outcome=unknown, prove that nothing was done.
func TestErrorsAfterExecution(t *testing.T) {
	t.Parallel()
	_, tracker := startTracker(t, process.FreeAddress(t))
	gateway := &lyingGateway{}
	p := startFacade(t, gateway.start(t, tracker), "TRACKERS_MAIN_DIALECT=bugzilla-5")
	creates := map[string]string{
		"/rest/flag_type":        `{"name":"NAME","description":"made by a test","target_type":"bug"}`,
		"/rest/bug/1/attachment": upload(`"content_type":"text/plain","comment":"NAME"`),
	}
	for _, c := range []struct {
		status int
		asJSON bool
	}{
		{400, false}, {401, false}, {403, false}, {404, false}, {409, false}, {413, false}, {422, false},
		{500, false}, {502, false}, {503, false}, {504, false}, {500, true}, {503, true},
	} {
		for path, body := range creates {
			name := fmt.Sprintf("%s %d %v", path, c.status, c.asJSON)
			key := fmt.Sprintf("%d-%v", c.status, c.asJSON)
			send := func() *reply {
				return p.do(t, ask{
					method: http.MethodPost, path: path, user: "admin", body: strings.Replace(body, "NAME", "n"+key, 1),
					header: http.Header{"Idempotency-Key": {key}},
				})
			}
			gateway.executed.Store(0)
			gateway.status.Store(int64(c.status))
			gateway.asJSON.Store(c.asJSON)
			first := send()
			verdict := first.header.Get("Portico-Error")
			if first.status < 400 || gateway.executed.Load() != 1 {
				t.Fatalf("%s: status %d, carried out %d times: %s", name, first.status, gateway.executed.Load(), first.body)
			}
			if verdict != "" && verdict != "web-server" && !strings.Contains(verdict, "outcome=unknown") {
				t.Errorf("%s: %d %q although it was carried out", name, first.status, verdict)
			}
			second := send()
			gateway.status.Store(0)
			third := send()
			if gateway.executed.Load() != 1 || second.status < 400 || third.status < 400 {
				t.Errorf("%s: carried out %d times; statuses %d, %d, %d", name, gateway.executed.Load(), first.status, second.status, third.status)
			}
			if third.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: the repeated request got %d %v", name, third.status, third.header)
			}
		}
	}
}
