package migration

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

const keyHeader = "X-BUGZILLA-API-KEY"

// response is what came back of a request.
type response struct {
	status int
	header http.Header
	text   []byte
}

// into reads JSON. What passes through may be a page, of which nothing is read.
func (r response) into(v any) { _ = json.Unmarshal(r.text, v) }

// request makes a request with headers that are given as names and values. A body that is no text is sent as JSON.
func request(ctx context.Context, client *http.Client, method, address string, body any, header ...string) (response, error) {
	text, isText := body.(string)
	if body != nil && !isText {
		encoded, err := json.Marshal(body)
		if err != nil {
			return response{}, err
		}
		text = string(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(text))
	if err != nil {
		return response{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := client.Do(r)
	if err != nil {
		return response{}, err
	}
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	return response{got.StatusCode, got.Header, content}, err
}

// send is request for what gets a response.
func send(t testing.TB, method, address string, body any, header ...string) response {
	t.Helper()
	got, err := request(t.Context(), http.DefaultClient, method, address, body, header...)
	must(t, err)
	return got
}

// admin is the key of the demo's administrator, which no tracker of the fixture has.
func admin() string { return tracker.Keys(tracker.SeedDemo)["admin@demo.example"] }

// asAdmin adds the key of the demo's administrator to an address, where every tracker takes it.
func asAdmin(address string) string {
	return address + map[bool]string{true: "&", false: "?"}[strings.Contains(address, "?")] + "Bugzilla_api_key=" + admin()
}

// ask makes a request by the administrator of the demo.
func ask(t testing.TB, method, address string, body any, header ...string) (got response, answer map[string]any) {
	t.Helper()
	got = send(t, method, asAdmin(address), body, header...)
	got.into(&answer)
	return got, answer
}

var must = process.Must

// listen serves a tracker until the test ends.
func listen(t testing.TB, server *tracker.Server, handler http.Handler) (base string) {
	t.Helper()
	listener := httptest.NewServer(handler)
	t.Cleanup(func() { listener.Close(); _ = server.Close() })
	return listener.URL
}

// listenBoth serves two trackers.
func listenBoth(t testing.TB, old, next *tracker.Server) [2]string {
	t.Helper()
	return [2]string{listen(t, old, old), listen(t, next, next)}
}

// run runs a command of Portico that has to succeed, and returns what it prints.
func run(t testing.TB, args ...string) string {
	t.Helper()
	status, printed, all := process.Run(t, args...)
	if status != 0 {
		t.Fatalf("portico %s exits with %d:\n%s", strings.Join(args, " "), status, all)
	}
	return printed
}
