package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"portico/proxy"
	"portico/test/process"
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
	must(t, err)
	go func() { _ = server.Serve(proxy.Listener(inner, slog.New(slog.DiscardHandler))) }()
	defer server.Close()
	response := ask(t, "GET", "http://"+inner.Addr().String()+"/", "")
	if response.body != fake {
		t.Errorf("got %s", response.body)
	}
}

// A request that net/http refuses by itself has a line in the log, by which the id that the client got can be found.
func TestUnreadableRequestsHaveALine(t *testing.T) {
	var log logBuffer
	base := serve(t, proxy.Options{Logger: log.logger()})
	for text, want := range map[string]string{
		"GET /% HTTP/1.1\r\nHost: x\r\n\r\n": "client=127.0.0.1 status=400 reason=invalid-request",
		"GET / HTTP/1.1\r\n\r\n":             "client=127.0.0.1 status=400 reason=invalid-request",
		"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 21<<10) + "\r\n\r\n": "client=127.0.0.1 status=431 reason=too-large",
	} {
		response := raw(t, base, text)
		_, id, _ := strings.Cut(response, "X-Request-Id: ")
		id, _, _ = strings.Cut(id, "\r\n")
		process.Eventually(t, "a line with "+want, func() bool { return strings.Contains(log.String(), "msg=request id="+id+" "+want+"\n") })
	}
}

// The time that a client has for one response must not run into the next.
func TestWriteDeadlineDoesNotOutliveAResponse(t *testing.T) {
	const pause = 50 * time.Millisecond
	base := serve(t, proxy.Options{ClientPause: proxy.ClientPause{Taking: pause}})
	k := dial(t, base)
	for _, c := range []struct {
		line   string
		status int
	}{{"GET /rest/flag_type/P", 200}, {"GET /%", 400}} {
		if got := k.exchange(t, c.line+" HTTP/1.1\r\nHost: x\r\n\r\n"); got.status != c.status {
			t.Errorf("%s: %d", c.line, got.status)
		}
		time.Sleep(2 * pause) // time itself is under test
	}
}

// An expectation that the tracker fails is the tracker's to tell.
func TestListenerLeavesTheTrackersExpectationFailedAlone(t *testing.T) {
	long := strings.Repeat("a", 5000)
	pass := passTo(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Long", long[:len(r.URL.RawQuery)*len(long)])
		w.WriteHeader(http.StatusExpectationFailed)
	})
	for query, want := range map[string]string{"": "", "?x": long} {
		response := ask(t, "GET", serve(t, proxy.Options{Passthrough: pass})+"/show_bug.cgi"+query, "")
		if response.status != http.StatusExpectationFailed || response.body != "" || response.header.Get("Long") != want {
			t.Errorf("%s: %d %q %v", query, response.status, response.body, response.header)
		}
	}
}

// net/http reads the body of a request whose expectation it has refused for as long as that takes.
func TestARefusedExpectationEndsTheConnection(t *testing.T) {
	base := serve(t, proxy.Options{})
	for _, version := range []string{"HTTP/1.1\r\n", "HTTP/1.0\r\nConnection: keep-alive\r\n"} {
		k := dial(t, base)
		k.exchange(t, "POST /rest/bug/1/attachment "+version+"Host: x\r\nExpect: wonders\r\nContent-Length: 9\r\n\r\n").wantError(t, 417, "200417")
		if _, err := k.reader.ReadByte(); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("%q: the connection stays open: %v", version, err)
		}
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

// serveTLS is serve with TLS, and gives the settings of a client that trusts it.
func serveTLS(t *testing.T, options proxy.Options, patience time.Duration) (address string, client *tls.Config) {
	t.Helper()
	made := httptest.NewTLSServer(nil)
	made.Close()
	server := start(t, options, func(server *httptest.Server, _ *proxy.Server) {
		config := &tls.Config{Certificates: made.TLS.Certificates, NextProtos: []string{"http/1.1"}}
		server.Listener = proxy.SecureListener(server.Listener, logger(options), config, patience)
	})
	roots := x509.NewCertPool()
	roots.AddCert(made.Certificate())
	return server.Listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "example.com"}
}

// Over TLS as without it, what net/http says by itself has the tracker's shape, on every request of a connection.
func TestSecureListener(t *testing.T) {
	address, config := serveTLS(t, proxy.Options{}, time.Minute)
	config.NextProtos = []string{"h2", "http/1.1"}
	connection, err := tls.Dial("tcp", address, config)
	must(t, err)
	defer connection.Close()
	if got := connection.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("agreed on %q", got)
	}
	k := &kept{connection, bufio.NewReader(connection)}
	for _, c := range []struct {
		line, code string
		status     int
	}{{"GET /rest/flag_type/P", "", 200}, {"GET /rest/nothing", "32614", 404}, {"GET /%", "32000", 400}} {
		got := k.exchange(t, c.line+" HTTP/1.1\r\nHost: x\r\n\r\n")
		if got.status != c.status || c.code != "" && !strings.HasPrefix(got.body, `{"error":true,"code":`+c.code+",") {
			t.Errorf("%s: %d %s", c.line, got.status, got.body)
		}
	}
}

// The tracker learns that the client came over TLS.
func TestSecureListenerTellsTheScheme(t *testing.T) {
	seen := make(chan string, 1)
	pass := passTo(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("X-Forwarded-Proto") })
	address, config := serveTLS(t, proxy.Options{Passthrough: pass}, time.Minute)
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	request := newRequest(t, "GET", "https://"+address+"/show_bug.cgi", http.NoBody)
	response, err := transport.RoundTrip(request)
	must(t, err)
	response.Body.Close()
	if got := <-seen; got != "https" {
		t.Errorf("the tracker was told %q", got)
	}
}

// A client that speaks plain HTTP to a TLS port is told so in the shape of every error, and one that says nothing is cut.
func TestSecureListenerAndClientsWithoutTLS(t *testing.T) {
	address, _ := serveTLS(t, proxy.Options{}, 200*time.Millisecond)
	response := raw(t, "http://"+address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if !strings.HasPrefix(response, "HTTP/1.1 400 ") || !strings.Contains(response, `{"error":true,"code":32000,`) {
		t.Errorf("got %q", response)
	}
	start := time.Now()
	if response := raw(t, "http://"+address, "\x16\x03"); strings.Contains(response, "HTTP/") || time.Since(start) > 10*time.Second {
		t.Errorf("after %v: %q", time.Since(start), response)
	}
}
