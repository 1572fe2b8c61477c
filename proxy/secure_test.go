package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"portico/proxy"
)

// serveTLS is serve with TLS, and gives the settings of a client that trusts it.
func serveTLS(t *testing.T, options proxy.Options, patience time.Duration) (address string, client *tls.Config) {
	t.Helper()
	if options.Tracker == nil {
		options.Tracker = &fakeTracker{}
	}
	handler, err := proxy.New(options)
	if err != nil {
		t.Fatal(err)
	}
	made := httptest.NewTLSServer(nil)
	made.Close()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: made.TLS.Certificates, NextProtos: []string{"http/1.1"}}
	server := &http.Server{Handler: handler, ConnState: proxy.ConnState, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(proxy.SecureListener(inner, config, patience))
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	roots := x509.NewCertPool()
	roots.AddCert(made.Certificate())
	return inner.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "example.com"}
}

// Over TLS as without it, what net/http says by itself has the tracker's shape, on every request of a connection.
func TestSecureListener(t *testing.T) {
	address, config := serveTLS(t, proxy.Options{}, time.Minute)
	config.NextProtos = []string{"h2", "http/1.1"}
	connection, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if got := connection.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("agreed on %q", got)
	}
	reader := bufio.NewReader(connection)
	for _, c := range []struct {
		line, code string
		status     int
	}{{"GET /rest/flag_type/P", "", 200}, {"GET /rest/nothing", "32614", 404}, {"GET /%", "32000", 400}} {
		_, _ = io.WriteString(connection, c.line+" HTTP/1.1\r\nHost: x\r\n\r\n")
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.line, err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status || c.code != "" && !strings.HasPrefix(string(text), `{"error":true,"code":`+c.code+",") {
			t.Errorf("%s: %s %s", c.line, response.Status, text)
		}
	}
}

// The tracker learns that the client came over TLS.
func TestSecureListenerTellsTheScheme(t *testing.T) {
	seen := make(chan string, 1)
	pass := passTo(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("X-Forwarded-Proto") })
	address, config := serveTLS(t, proxy.Options{Passthrough: pass}, time.Minute)
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	request, err := http.NewRequest("GET", "https://"+address+"/show_bug.cgi", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
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
