package proxy_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portico/proxy"
)

// TestResponsesToHTTP10ThatBreakOff: a client that speaks HTTP/1.0 takes the end of a connection for the end of a response, so one
// that broke off must not end like that.
func TestResponsesToHTTP10ThatBreakOff(t *testing.T) {
	var broken atomic.Bool
	half := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		if broken.Load() {
			panic(http.ErrAbortHandler)
		}
	}
	plain := strings.TrimPrefix(serve(t, proxy.Options{Passthrough: passTo(t, half)}), "http://")
	secure, client := serveTLS(t, proxy.Options{Passthrough: passTo(t, half)}, time.Second)
	for way, dial := range map[string]func() (net.Conn, error){
		"plain": func() (net.Conn, error) { return net.Dial("tcp", plain) },
		"TLS":   func() (net.Conn, error) { return tls.Dial("tcp", secure, client) },
	} {
		broken.Store(false)
		if text, err := askOld(t, dial); err != nil || !strings.HasSuffix(text, "\r\n\r\nhalf") {
			t.Errorf("%s: a whole response: %q, %v", way, text, err)
		}
		broken.Store(true)
		if text, err := askOld(t, dial); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: a response that broke off: %q, %v", way, text, err)
		}
	}
}

// askOld asks with HTTP/1.0 and reads until the connection ends.
func askOld(t *testing.T, dial func() (net.Conn, error)) (string, error) {
	t.Helper()
	connection, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "GET /page.cgi HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(connection)
	return string(text), err
}
