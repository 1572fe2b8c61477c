package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"portico/proxy"
)

// What net/http says by itself comes out as an error of the tracker's shape.
func TestUnreadableRequests(t *testing.T) {
	base := serve(t, proxy.Options{})
	for name, c := range map[string]struct{ text, status, code string }{
		"stray percent":  {"GET /rest/bug/5%/attachment HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request", "32000"},
		"garbage":        {"garbage\r\n\r\n", "400 Bad Request", "32000"},
		"no host":        {"GET /rest/flag_type/P HTTP/1.1\r\n\r\n", "400 Bad Request", "32000"},
		"bad header":     {"GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", "400 Bad Request", "32000"},
		"version":        {"GET /rest/flag_type/P HTTP/3.7\r\nHost: x\r\n\r\n", "505 HTTP Version Not Supported", "200505"},
		"huge header":    {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 32<<10) + "\r\n\r\n", "431 Request Header Fields Too Large", "200431"},
		"transfer":       {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: weird\r\n\r\n", "501 Not Implemented", "200501"},
		"blank in path":  {"GET /rest/flag_type/a b HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request", "32000"},
		"expectation":    {"POST / HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\nContent-Length: 1\r\n\r\nx", "417 Expectation Failed", "200417"},
		"second request": {"GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\n\r\nGET /% HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request", "32000"},
	} {
		answer := raw(t, base, c.text)
		if name == "second request" {
			_, answer, _ = strings.Cut(answer, noFlagTypes)
		}
		if !strings.HasPrefix(answer, "HTTP/1.1 "+c.status+"\r\n") || !strings.Contains(answer, `{"error":true,"code":`+c.code+`,`) {
			t.Errorf("%s: %s", name, answer)
		}
		response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := io.ReadAll(response.Body)
		if err != nil || !response.Close || response.ContentLength != int64(len(text)) ||
			response.Header.Get("Content-Type") != "application/json; charset=UTF-8" || response.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %v %v %s", name, err, response.Header, text)
		}
	}
}

// A handler's own bytes are never touched, even if they look like net/http's.
func TestListenerLeavesAnswersAlone(t *testing.T) {
	const fake = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	server := &http.Server{ConnState: proxy.ConnState, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(fake)))
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, fake)
	})}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(proxy.Listener(inner)) }()
	defer server.Close()
	answer := ask(t, "GET", "http://"+inner.Addr().String()+"/", "")
	if answer.body != fake {
		t.Errorf("got %s", answer.body)
	}
}

// The time that a client has for one answer must not run into the next.
func TestWriteDeadlineDoesNotOutliveAnAnswer(t *testing.T) {
	const pause = 50 * time.Millisecond
	base := serve(t, proxy.Options{ClientPause: proxy.ClientPause{Taking: pause}})
	connection, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for _, c := range []struct {
		line   string
		status int
	}{{"GET /rest/flag_type/P", 200}, {"GET /%", 400}} {
		_, _ = io.WriteString(connection, c.line+" HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.line, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.status {
			t.Errorf("%s: %s", c.line, answer.Status)
		}
		time.Sleep(2 * pause) // time itself is under test
	}
}

// An expectation that the tracker fails is the tracker's to tell.
func TestListenerLeavesTheTrackersExpectationFailedAlone(t *testing.T) {
	pass := passTo(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusExpectationFailed) })
	answer := ask(t, "GET", serve(t, proxy.Options{Passthrough: pass})+"/show_bug.cgi", "")
	if answer.status != http.StatusExpectationFailed || answer.body != "" {
		t.Errorf("%d %q", answer.status, answer.body)
	}
}
