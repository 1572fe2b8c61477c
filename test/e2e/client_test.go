package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client makes requests as a script does, by net/http and nothing else.
type client struct {
	base string
	keys map[string]string
}

// ask is one request. The zero value of each member leaves it out.
type ask struct {
	method, path string
	// user is a user of the fixture, whose key is sent in a header.
	user   string
	header http.Header
	body   string
}

// straight follows no redirect, so that a test sees one.
func straight() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (c *client) request(ctx context.Context, a ask) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, cmp.Or(a.method, http.MethodGet), c.base+a.path, strings.NewReader(a.body))
	if err != nil {
		return nil, err
	}
	for name, values := range a.header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Host = request.Header.Get("Host")
	if a.body != "" && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if a.user != "" {
		request.Header.Set("X-BUGZILLA-API-KEY", c.keys[a.user])
	}
	return request, nil
}

func (c *client) do(t testing.TB, a ask) *reply {
	t.Helper()
	request, err := c.request(t.Context(), a)
	must(t, err)
	response, err := straight().Do(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	return &reply{ask: a, status: response.StatusCode, header: response.Header, body: text}
}

// try makes a request on a connection of its own, as a script does, and gives its status, 0 where there is no response in time.
func (c *client) try(limit time.Duration, a ask) (status int, took time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	request, err := c.request(ctx, a)
	if err != nil {
		return 0, 0
	}
	request.Close = true
	begun := time.Now()
	response, err := straight().Do(request)
	if err != nil {
		return 0, time.Since(begun)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, time.Since(begun)
	}
	return response.StatusCode, time.Since(begun)
}

// get, post and put send what the interface shows: JSON, and a key where there is a user.
func (c *client) get(t testing.TB, user, path string) *reply {
	t.Helper()
	return c.do(t, ask{method: http.MethodGet, path: path, user: user})
}

func (c *client) post(t testing.TB, user, path, body string) *reply {
	t.Helper()
	return c.do(t, ask{method: http.MethodPost, path: path, user: user, body: body})
}

func (c *client) put(t testing.TB, user, path, body string) *reply {
	t.Helper()
	return c.do(t, ask{method: http.MethodPut, path: path, user: user, body: body})
}

// reply is what came back.
type reply struct {
	ask    ask
	status int
	header http.Header
	body   []byte
}

// ok demands a status, and JSON that is no error.
func (r *reply) ok(t testing.TB, status int) *reply {
	t.Helper()
	if err := r.succeeds(status); err != nil {
		t.Fatalf("%s %s: %v", r.ask.method, r.ask.path, err)
	}
	return r
}

func (r *reply) succeeds(status int) error {
	var object map[string]any
	err := json.Unmarshal(r.body, &object)
	if r.status != status || err != nil || object == nil || object["error"] != nil {
		return fmt.Errorf("status %d, want %d and an object that is no error: %.300s", r.status, status, r.body)
	}
	return nil
}

// fails demands an error in the tracker's shape (tracker-behaviour.md section 1, Errors).
func (r *reply) fails(t testing.TB, status, code int) *reply {
	t.Helper()
	if err := r.hasFailed(status, code); err != nil {
		t.Fatalf("%s %s: %v", r.ask.method, r.ask.path, err)
	}
	return r
}

func (r *reply) hasFailed(status, code int) error {
	var body struct {
		Error         bool
		Code          int
		Message       string
		Documentation string
	}
	err := json.Unmarshal(r.body, &body)
	if err != nil || r.status != status || body.Code != code || !body.Error || body.Message == "" || body.Documentation == "" {
		return fmt.Errorf("status %d, want %d and an error of code %d with all of its members: %.300s", r.status, status, code, r.body)
	}
	return nil
}

// refused demands an error that Portico made itself, before it asked the tracker.
func (r *reply) refused(t testing.TB, status, code int) *reply {
	t.Helper()
	if r.header.Get("Portico-Error") == "" {
		t.Fatalf("%s %s: the header that tells Portico's own errors is missing: %d %.300s", r.ask.method, r.ask.path, r.status, r.body)
	}
	return r.fails(t, status, code)
}

// tree reads the whole answer, numbers as they are written.
func (r *reply) tree(t testing.TB) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		t.Fatalf("%s %s: status %d and no JSON: %v: %.300s", r.ask.method, r.ask.path, r.status, err, r.body)
	}
	return tree
}

// want demands what a check of a step says (script).
func (r *reply) want(t testing.TB, check string) *reply {
	t.Helper()
	if err := r.check(t, check); err != nil {
		t.Errorf("%s %s: %s: %v in %.400s", r.ask.method, r.ask.path, check, err, r.body)
	}
	return r
}

// value gives a value of the response as text.
func (r *reply) value(t testing.TB, path string) string {
	t.Helper()
	values := lookup(r.tree(t), path)
	if len(values) == 0 {
		t.Fatalf("%s %s: there is no %s in %.400s", r.ask.method, r.ask.path, path, r.body)
	}
	return strings.Trim(asJSON(values[0]), `"`)
}
