package wire_test

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"portico/test/wire"
)

const recordings = "testdata/bugzilla-5.2.jsonl"

// TestLoad counts what the recordings hold and checks that bodies are restored in full.
func TestLoad(t *testing.T) {
	exchanges, err := wire.Load(recordings)
	must(t, err)
	answered, resets, largest := 0, 0, 0
	for _, e := range exchanges {
		if e.Response != nil {
			answered++
		}
		if e.Reset {
			resets++
		}
		largest = max(largest, len(e.Request.Body))
	}
	if len(exchanges) != 1593 || answered != 957 || resets != 14 || largest != 12_000_088 {
		t.Errorf("%d exchanges, %d answered, %d resets, largest body %d", len(exchanges), answered, resets, largest)
	}
}

// TestRecordingsHoldNoTexts: the texts of messages are not ours to copy.
func TestRecordingsHoldNoTexts(t *testing.T) {
	f, err := os.Open(recordings)
	must(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r struct {
			Name     string
			Response *struct{ Body string }
		}
		must(t, json.Unmarshal(lines.Bytes(), &r))
		if r.Response == nil {
			continue
		}
		for _, part := range strings.Split(r.Response.Body, `"message":"`)[1:] {
			if !strings.HasPrefix(part, `(text)"`) {
				t.Errorf("%s holds a message text", r.Name)
			}
		}
	}
	must(t, lines.Err())
}

func TestLoadRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"no JSON":          `{`,
		"a wrong digest":   `{"request":{"body":"aaaa…aaaa","body_elided":{"chars":20,"bytes":20,"sha256":"00"}}}`,
		"a body too long":  `{"request":{"body":"aaaa…aaaa","body_elided":{"chars":2,"bytes":2,"sha256":"00"}}}`,
		"a body not coded": `{"request":{"body_base64":"!"}}`,
	} {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		must(t, os.WriteFile(path, []byte(line), 0o600))
		if _, err := wire.Load(path); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
	if _, err := wire.Load("testdata/none.jsonl"); err == nil {
		t.Error("a missing file was loaded")
	}
}

// TestSendIsLiteral: the bytes arrive as they were recorded.
func TestSendIsLiteral(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, 4096)
		n, _ := conn.Read(b)
		got <- string(b[:n])
		_, _ = conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nX-Odd: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"))
	}()
	answer, err := wire.Send(t.Context(), "http://"+l.Addr().String()+"/below/", wire.Request{Method: "get", Path: "/rest/5%/x?a=%zz;b",
		Headers: map[string]string{"Expect": "100-continue", "if-none-match": `W/"x"`}, Body: []byte("hi")})
	must(t, err)
	want := "get /below/rest/5%/x?a=%zz;b HTTP/1.1\r\nHost: " + l.Addr().String() +
		"\r\nExpect: 100-continue\r\nif-none-match: W/\"x\"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
	if sent := <-got; sent != want {
		t.Errorf("sent %q\nwant %q", sent, want)
	}
	if answer.Status != http.StatusNotFound || answer.Headers["x-odd"] != "1" || answer.Headers["transfer-encoding"] != "chunked" || string(answer.Body) != "{}" {
		t.Errorf("got %+v", answer)
	}
}

func response(status int, body string, headers ...string) wire.Response {
	r := wire.Response{Status: status, Headers: map[string]string{"content-type": "application/json"}, Body: []byte(body)}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Headers[name] = value
	}
	return r
}

// TestDiff: what counts as a difference, and what does not.
func TestDiff(t *testing.T) {
	page := wire.Response{Status: 404, Headers: map[string]string{}, HTML: true}
	long := response(200, "{…", "etag: x")
	long.Length = 7
	cases := []struct {
		name          string
		recorded, got wire.Response
		want          []string
	}{
		{"same", response(200, `{"a":1,"b":[true,null]}`), response(200, `{"b":[true,null],"a":1}`), nil},
		{"status", response(200, `{}`), response(201, `{}`), []string{"status"}},
		{"type of a value", response(200, `{"a":1}`), response(200, `{"a":"1"}`), []string{"body .a"}},
		{"missing and extra", response(200, `{"a":{"x":1}}`), response(200, `{"a":{"y":1}}`), []string{"body .a.x", "body .a.y"}},
		{"order of an array", response(200, `{"a":[1,2]}`), response(200, `{"a":[2,1]}`), []string{"body .a[0]", "body .a[1]"}},
		{"length of an array", response(200, `{"a":[1]}`), response(200, `{"a":[1,2]}`), []string{"body .a"}},
		{"array and object", response(200, `{"a":[]}`), response(200, `{"a":{}}`), []string{"body .a"}},
		{"inclusions in any order", response(200, `{"inclusions":["a","b"]}`), response(200, `{"inclusions":["b","a"]}`), nil},
		{"flag types in any order", response(200, `{"flagtypes":[{"id":2},{"id":10}]}`), response(200, `{"flagtypes":[{"id":10},{"id":2}]}`), nil},
		{"time of the recording", response(200, `{"t":"2026-11-21T05:46:19Z"}`), response(200, `{"t":"2031-01-01T00:00:00Z"}`), nil},
		{"other time", response(200, `{"t":"2020-01-02T03:04:05Z"}`), response(200, `{"t":"2020-01-02T03:04:06Z"}`), []string{"body .t"}},
		{"address", response(200, `{"n":"ARRAY(0x1)"}`), response(200, `{"n":"ARRAY(0x2)"}`), nil},
		{"message", response(400, `{"error":true,"code":50,"message":"(text)"}`), response(400, `{"error":true,"code":50,"message":"other"}`), nil},
		{"message of a success", response(200, `{"message":"a"}`), response(200, `{"message":"b"}`), []string{"body .message"}},
		{"callback", response(200, `/**/cb({"a":1})`), response(200, `/**/cb({"a":1})`), nil},
		{"other callback", response(200, `/**/cb({"a":1})`), response(200, `{"a":1}`), []string{"body frame"}},
		{"page", page, wire.Response{Status: 404, Body: []byte("<!doctype html><HTML>")}, nil},
		{"no page", page, wire.Response{Status: 404, Body: []byte("{}")}, []string{"body"}},
		{"no body", response(304, ""), response(304, "{}"), []string{"body"}},
		{"no JSON", response(200, "{}"), response(200, "<p>"), []string{"body"}},
		{"headers", response(200, "{}", "allow: GET, PUT", "etag: a", "set-cookie: x=1"), response(200, "{}", "allow: PUT, GET", "etag: b", "set-cookie: x=2"), nil},
		{"other headers", response(200, "{}", "allow: GET"), response(200, "{}", "content-type: text/plain", "etag: \"q\"", "vary: *"),
			[]string{"header content-type", "header etag", "header vary", "header allow", "header etag"}},
		{"shortened", long, response(200, "12345☃7", "etag: x"), nil},
		{"shortened, other length", long, response(200, "123456", "etag: x"), []string{"body length"}},
	}
	for _, c := range cases {
		diffs := wire.Diff(c.recorded, c.got)
		if !slices.EqualFunc(diffs, c.want, func(d, about string) bool { return strings.HasPrefix(d, about+":") || strings.HasPrefix(d, about+" ") }) {
			t.Errorf("%s: got %q, want %q", c.name, diffs, c.want)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
