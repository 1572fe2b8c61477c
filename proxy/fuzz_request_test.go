package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"portico/mapping"
	"portico/proxy"
)

// guardedTracker stands for the tracker behind the passthrough. It fails where it gets what must never reach one.
type guardedTracker struct{ t *testing.T }

// RoundTrip implements http.RoundTripper.
func (b *guardedTracker) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.URL.EscapedPath()
	plain, err := url.PathUnescape(sent)
	if err != nil || !strings.HasPrefix(sent, "/tracker/") || slices.Contains(strings.Split(plain, "/"), "..") {
		b.t.Errorf("the tracker is asked for %q", sent)
	}
	if r.Method == http.MethodPut && strings.Trim(plain, "/") == "tracker/rest/bug/attachment" {
		b.t.Errorf("the tracker would edit bugs: %q", sent)
	}
	if r.Method == http.MethodTrace || r.ContentLength < 0 || len(r.TransferEncoding) > 0 {
		b.t.Errorf("the tracker gets %s with length %d", r.Method, r.ContentLength)
	}
	if r.Body != nil {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil || n != r.ContentLength {
			b.t.Errorf("the tracker gets %d bytes instead of %d: %v", n, r.ContentLength, err)
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{}`)), ContentLength: 2, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// requests are seeds: request line, headers and body.
var requests = [][3]string{
	{"GET /rest/flag_type/P/C%2FD?component=x&callback=f", "Accept: text/html", ""},
	{"POST /rest/flag_type?api_key=k", "Content-Type: application/json", `{"name":"a","description":"b","inclusions":{"P":["c"]}}`},
	{"PUT /rest/flag_type/7", "X-BUGZILLA-API-KEY: k", `{"ids":[8],"names":["n"],"sortkey":5}`},
	{"GET /rest/bug/5/attachment?ids=6&include_fields=id,flags", "If-None-Match: *", ""},
	{"GET /rest/bug/attachment/5?attachment_ids=6", "Cookie: a=b", ""},
	{"POST /rest/bug/5/attachment?token=t", "", `{"data":"c29tZQ==","file_name":"f","summary":"s","content_type":"text/plain","flags":[{"name":"r","status":"?"}]}`},
	{"PUT /rest/bug/attachment/5", "Authorization: Bearer k", `{"ids":[5],"is_patch":0,"comment":"c","flags":[]}`},
	{"POST /rest/bug/5/attachment?token=t", "Content-Type: application/x-www-form-urlencoded", "data=YQ&summary=s&file_name=f&is_patch=1"},
	{"POST /rest/bug/5/attachment?token=t", "Content-Type: multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\nYQ\r\n--b--\r\n"},
	{"OPTIONS /rest.cgi/flag_type", "Access-Control-Request-Method: POST", ""},
	{"PUT /rest/bug/attachment/", "", `{"ids":[1]}`}, {"PUT /rest/bug/%2561ttachment", "", `{}`}, {"HEAD /rest/bug/5/attachment", "", ""},
	{"POST /jsonrpc.cgi", "Content-Type: application/json", `{"method":"FlagType.update","params":[{}]}`},
	{"POST /xmlrpc.cgi", "Transfer-Encoding: chunked", "3\r\n<a>\r\n0\r\n\r\n"}, {"TRACE /", "", ""}, {"DELETE //rest/../x", "Expect: 100-continue", ""},
	{"GET http://other/rest/flag_type/%zz", "Accept: application/javascript;q=1", ""}, {"GET *", "", ""}, {"CONNECT host:1", "", ""},
}

// FuzzRequest holds that no request whatsoever makes Portico fail: it is responded with success, or with an error in the
// tracker's shape that blames the client.
func FuzzRequest(f *testing.F) {
	for _, each := range requests {
		f.Add(each[0], each[1], []byte(each[2]))
	}
	f.Fuzz(func(t *testing.T, line, headers string, body []byte) {
		base := &url.URL{Scheme: "http", Host: "tracker.example.com", Path: "/tracker"}
		through := proxy.Passthrough{Target: proxy.Target{Base: base, Transport: &guardedTracker{t}}, Prefixes: []string{"/"}, FlagTypesChanging: nil}
		for _, options := range []proxy.Options{
			{Tracker: &fakeTracker{}, Limits: proxy.Limits{IDs: 20}},
			{Tracker: &fakeTracker{}, Passthrough: through, Responses: proxy.ResponsesInterface},
		} {
			request, ok := readRequest(line, headers, body)
			if !ok {
				return
			}
			server, err := proxy.New(options)
			must(t, err)
			response := httptest.NewRecorder()
			server.ServeHTTP(response, request)
			checkResponse(t, request, response)
		}
	})
}

// readRequest reads a request as net/http would; what that refuses never reaches Portico.
func readRequest(line, headers string, body []byte) (*http.Request, bool) {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s HTTP/1.1\r\nHost: portico.example.com\r\n", line)
	if headers != "" {
		text.WriteString(headers + "\r\n")
	}
	if !strings.Contains(strings.ToLower(headers), "transfer-encoding") {
		fmt.Fprintf(&text, "Content-Length: %d\r\n", len(body))
	}
	text.WriteString("\r\n")
	text.Write(body)
	request, err := http.ReadRequest(bufio.NewReader(&text))
	if err != nil {
		return nil, false
	}
	request.RemoteAddr = "192.0.2.1:5"
	return request, true
}

func checkResponse(t *testing.T, request *http.Request, response *httptest.ResponseRecorder) {
	t.Helper()
	body := response.Body.Bytes()
	switch {
	case response.Code >= 500 || response.Code < 200:
		t.Fatalf("%d %s", response.Code, body)
	case request.Method == http.MethodHead || response.Code == http.StatusNotModified:
		return
	}
	kind := response.Header().Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "text/html"):
		if !bytes.HasPrefix(body, []byte("<!DOCTYPE html>")) {
			t.Fatalf("no page: %q", body)
		}
		return
	case strings.HasPrefix(kind, "text/javascript") && bytes.HasPrefix(body, []byte("/**/")):
		body = bytes.TrimSuffix(body[bytes.IndexByte(body, '(')+1:], []byte(")"))
	}
	members, err := mapping.ParseMembers(body)
	if err != nil {
		t.Fatalf("%d with %q: %v", response.Code, body, err)
	}
	if response.Code >= 400 {
		checkError(t, body, members)
	} else if members.Get("error") != nil {
		t.Fatalf("%d with an error: %s", response.Code, body)
	}
}

// checkError holds an error to the tracker's shape (tracker-behaviour.md section 1, Errors).
func checkError(t *testing.T, body []byte, members mapping.Members) {
	t.Helper()
	code, ok := mapping.Int(members.Get("code"))
	if !ok || code == 0 || string(members.Get("error")) != "true" || !bytes.HasPrefix(body, []byte(`{"error":true`)) {
		t.Fatalf("not the shape of an error: %s", body)
	}
	for _, name := range []string{"message", "documentation"} {
		if value := members.Get(name); value.Kind() != jsontext.KindString || len(value) < 3 {
			t.Fatalf("no %s: %s", name, body)
		}
	}
}
