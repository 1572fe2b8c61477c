package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
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
	if err != nil {
		t.Fatal(err)
	}
	response, err := straight().Do(request)
	if err != nil {
		t.Fatal(err)
	}
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

// at walks into the answer by names and positions.
func (r *reply) at(t testing.TB, path ...any) any {
	t.Helper()
	return walk(t, r.tree(t), path...)
}

func walk(t testing.TB, value any, path ...any) any {
	t.Helper()
	for i, step := range path {
		var ok bool
		switch step := step.(type) {
		case string:
			var object map[string]any
			if object, ok = value.(map[string]any); ok {
				value, ok = object[step]
			}
		case int:
			var array []any
			if array, ok = value.([]any); ok && step < len(array) {
				value = array[step]
			} else {
				ok = false
			}
		}
		if !ok {
			t.Fatalf("there is nothing at %v of %v", path[:i+1], path)
		}
	}
	return value
}

// member gives a member that may be absent.
func member(value any, name string) (any, bool) {
	object, _ := value.(map[string]any)
	found, ok := object[name]
	return found, ok
}

// is demands that a value has the JSON text want, whatever the order of members.
func is(t testing.TB, got any, want string) {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var wanted any
	decoder := json.NewDecoder(strings.NewReader(want))
	decoder.UseNumber()
	if err := decoder.Decode(&wanted); err != nil {
		t.Fatalf("the test wants %s: %v", want, err)
	}
	canonical, err := json.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, canonical) {
		t.Errorf("got %.400s, want %s", text, canonical)
	}
}

// integer demands a JSON integer and gives it.
func integer(t testing.TB, value any) int {
	t.Helper()
	number, ok := value.(json.Number)
	n, err := strconv.Atoi(number.String())
	if !ok || err != nil {
		t.Fatalf("%v (%T) is no integer", value, value)
	}
	return n
}

// text demands a JSON string and gives it.
func text(t testing.TB, value any) string {
	t.Helper()
	s, ok := value.(string)
	if !ok {
		t.Fatalf("%v (%T) is no string", value, value)
	}
	return s
}

// flagType finds a flag type of a list by its name, or by its id written as a text.
func (r *reply) flagType(t testing.TB, name string) (flagType any, found bool) {
	t.Helper()
	for _, kind := range []string{"bug", "attachment"} {
		list, ok := r.at(t, kind).([]any)
		if !ok {
			t.Fatalf("%s is no array: %.300s", kind, r.body)
		}
		i := slices.IndexFunc(list, func(one any) bool {
			id, _ := member(one, "id")
			called, _ := member(one, "name")
			return called == name || id == json.Number(name)
		})
		if i >= 0 {
			return list[i], true
		}
	}
	return nil, false
}

// field gives one field of a flag type that has to be in a list.
func (r *reply) field(t testing.TB, flagType, name string) any {
	t.Helper()
	found, ok := r.flagType(t, flagType)
	if !ok {
		t.Fatalf("there is no flag type %s in %.300s", flagType, r.body)
	}
	return walk(t, found, name)
}
