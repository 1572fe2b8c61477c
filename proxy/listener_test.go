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

// Nothing may follow a request that tells its length in both ways on its connection. A chunked one alone closes nothing, whatever came
// before it.
func TestTwoLengthsEndTheConnection(t *testing.T) {
	const head, chunks = "PUT /rest/flag_type/1?api_key=k HTTP/1.1\r\nHost: x\r\n", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
	k := dial(t, serve(t, proxy.Options{}))
	for _, text := range []string{head + "Content-Length: 2\r\n\r\n{}", head + chunks, head + chunks, head + "Content-Length: 9\r\n" + chunks} {
		if got := k.exchange(t, text); got.status != 200 {
			t.Fatalf("%q: %+v", text, got)
		}
		time.Sleep(10 * time.Millisecond) // net/http may still wait for the client to hang up, so that what it holds is not known
	}
	if _, err := k.reader.ReadByte(); err == nil {
		t.Error("the connection stays open")
	}
}

// A second length ends the connection also where its head comes in two reads, or after empty lines.
func TestTwoLengthsInPieces(t *testing.T) {
	base := serve(t, proxy.Options{})
	for _, pieces := range [][2]string{
		{"POST /rest/flag_type?api_key=k HTTP/1.1\r\nHost: x\r\n", "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
		{"\r\n\r\nPOST /rest/flag_type?api_key=k HTTP/1.1\r\nHost: x\r\n", "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
	} {
		k := dial(t, base)
		k.exchange(t, "POST /rest/flag_type?api_key=k HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		time.Sleep(10 * time.Millisecond) // net/http may still wait for the client to hang up
		_, _ = io.WriteString(k, pieces[0])
		time.Sleep(50 * time.Millisecond) // so that the pieces are read one by one
		k.exchange(t, pieces[1])
		if _, err := k.reader.ReadByte(); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("%q: the connection stays open: %v", pieces[0], err)
		}
	}
}
