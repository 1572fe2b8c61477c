package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestInterimResponsesAreForClientsThatKnowThem: one that speaks HTTP/1.0 would take the first for the response.
func TestInterimResponsesAreForClientsThatKnowThem(t *testing.T) {
	tracker, base := behind(t, "", nil)
	tracker.response = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProcessing)
		_, _ = io.WriteString(w, "done")
	}
	for version, interim := range map[string]bool{"1.0": false, "1.1": true} {
		client, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_ = client.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(client, "POST /post_bug.cgi HTTP/"+version+"\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		text, err := io.ReadAll(client)
		if err != nil || strings.Contains(string(text), " 102 ") != interim || !strings.HasSuffix(string(text), "done") {
			t.Errorf("HTTP/%s: %v\n%s", version, err, text)
		}
	}
}
