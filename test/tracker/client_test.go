package tracker_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"portico/test/tracker"
)

// front is a tracker behind a real socket.
type front struct {
	*tracker.Server
	t   *testing.T
	url string
}

func start(t *testing.T, o tracker.Options) front {
	t.Helper()
	s := tracker.New(o)
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		h.Close()
	})
	return front{Server: s, t: t, url: h.URL}
}

// answer is what came back: status, headers, raw body, and the body as JSON when it is that.
type answer struct {
	status int
	header http.Header
	raw    string
	body   any
}

// do sends a request; headers are given as "Name: value".
func (f front) do(method, path, body string, headers ...string) (answer, error) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	a := answer{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&a.body)
	return a, err
}

// must is do for requests that are to be answered.
func (f front) must(method, path, body string, headers ...string) answer {
	f.t.Helper()
	a, err := f.do(method, path, body, headers...)
	if err != nil {
		f.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// at walks into the JSON by member names and indexes.
func (a answer) at(t *testing.T, path ...any) any {
	t.Helper()
	v := a.body
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("no object at %v in %s", path, a.raw)
			}
			v = o[step]
		case int:
			l, ok := v.([]any)
			if !ok || step >= len(l) {
				t.Fatalf("no item %d at %v in %s", step, path, a.raw)
			}
			v = l[step]
		}
	}
	return v
}

// want checks a value in the JSON; numbers are compared as text.
func (a answer) want(t *testing.T, value any, path ...any) {
	t.Helper()
	got := a.at(t, path...)
	if n, ok := got.(json.Number); ok {
		got = n.String()
	}
	if got != value {
		t.Errorf("at %v: got %v, want %v in %s", path, got, value, a.raw)
	}
}

func (a answer) fails(t *testing.T, status int, code string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d: %s", a.status, status, a.raw)
	}
	a.want(t, code, "code")
}

const (
	editorKey = "api_key=EditorKey0000000000000000000000000000000"
	devKey    = "api_key=DevKey0000000000000000000000000000000000"
)

// patch is the body of a small attachment.
const patch = `{"data":"LS0tCg==","file_name":"f.patch","summary":"s","is_patch":true}`
