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

// A handler's own bytes are never touched, even if they look like net/http's.
func TestListenerLeavesResponsesAlone(t *testing.T) {
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
	response := ask(t, "GET", "http://"+inner.Addr().String()+"/", "")
	if response.body != fake {
		t.Errorf("got %s", response.body)
	}
}

// The time that a client has for one response must not run into the next.
func TestWriteDeadlineDoesNotOutliveAResponse(t *testing.T) {
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
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.line, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s: %s", c.line, response.Status)
		}
		time.Sleep(2 * pause) // time itself is under test
	}
}

// An expectation that the tracker fails is the tracker's to tell.
func TestListenerLeavesTheTrackersExpectationFailedAlone(t *testing.T) {
	pass := passTo(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusExpectationFailed) })
	response := ask(t, "GET", serve(t, proxy.Options{Passthrough: pass})+"/show_bug.cgi", "")
	if response.status != http.StatusExpectationFailed || response.body != "" {
		t.Errorf("%d %q", response.status, response.body)
	}
}

// Nothing may follow a request that may have told its length in both ways on its connection. net/http drops a Content-Length beside chunks.
func TestChunksEndTheConnection(t *testing.T) {
	const head, chunks = "PUT /rest/flag_type/1?api_key=k HTTP/1.1\r\nHost: x\r\n", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
	base := serve(t, proxy.Options{})
	for _, last := range []string{head + chunks, head + "Content-Length: 9\r\n" + chunks} {
		k := dial(t, base)
		for _, text := range []string{head + "Content-Length: 2\r\n\r\n{}", last} {
			if got := k.exchange(t, text); got.status != 200 {
				t.Fatalf("%q: %+v", text, got)
			}
		}
		if _, err := k.reader.ReadByte(); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("%q: the connection stays open: %v", last, err)
		}
	}
}
