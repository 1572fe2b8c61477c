package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"portico/proxy"
)

// A body that stops arriving ends the request, whether a handler reads it or not.
func TestPatient(t *testing.T) {
	server := httptest.NewServer(proxy.Patient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			if _, err := io.ReadAll(r.Body); err == nil {
				t.Error("a body came to its end that was never sent")
			}
		}
		_, _ = io.WriteString(w, "response")
	}), proxy.ClientPause{Sending: 50 * time.Millisecond, Taking: time.Minute}))
	defer server.Close()
	for _, path := range []string{"/read", "/leave"} {
		got := dial(t, server.URL).exchange(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na")
		if got.status != 200 || !strings.HasSuffix(got.body, "response") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
