package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/process"
)

// startPassing serves a tracker that answers as handler says, by a configuration with more.
func startPassing(t *testing.T, more string, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	clients, _ := serveConfig(t, writeFile(t, "c.yaml", fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"+
		"trackers: {main: {url: %q, dialect: bugzilla-5}}\ncache: {scope: off}\n%s", server.URL, more)))
	return "http://" + clients
}

// beginCall makes a request; the answer's body is the caller's to read.
func beginCall(t *testing.T, method, address string) *http.Response {
	t.Helper()
	response, err := sendBy(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}, method, address, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// What passes through goes out as it comes, whether its length is known or not.
func TestPassingAnswersStream(t *testing.T) {
	client := make(chan struct{})
	address := startPassing(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rest/version" {
			_, _ = io.WriteString(w, `{"version":"5.2"}`)
			return
		}
		if r.URL.Query().Has("length") {
			w.Header().Set("Content-Length", "8")
		}
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-client: // has it
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "end")
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, query := range []string{"", "?length"} {
			response, first := beginCall(t, method, address+"/buglist.cgi"+query), make([]byte, 5)
			if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "first" {
				t.Fatalf("%s %q: %q, %v", method, query, first, err)
			}
			client <- struct{}{}
			if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "end" {
				t.Errorf("%s %q: then %q, %v", method, query, rest, err)
			}
		}
	}
}

// A link that changes flag types is sent once, and its outcome may be unknown. Other pages are asked for again.
func TestLinksThatChangeAreSentOnce(t *testing.T) {
	var sent atomic.Int64
	address := startPassing(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/rest/version" {
			sent.Add(1)
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"version":"5.2"}`)
	})
	response := beginCall(t, http.MethodGet, address+"/editflagtypes.cgi?action=deactivate&id=1")
	if reason := response.Header.Get("Portico-Error"); response.StatusCode != http.StatusGatewayTimeout || !strings.Contains(reason, "outcome=unknown") {
		t.Errorf("a link that changes something: %s, %s", response.Status, reason)
	}
	if n := sent.Swap(0); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	if response = beginCall(t, http.MethodGet, address+"/editflagtypes.cgi"); response.StatusCode != http.StatusBadGateway || sent.Load() < 2 {
		t.Errorf("a page: %s, sent %d times", response.Status, sent.Load())
	}
}

// No time to wait is none, and not the time that transport has for want of a word.
func TestNobodyWaitsForAnyTime(t *testing.T) {
	arrived, let := make(chan struct{}, 9), make(chan struct{})
	address := startPassing(t, "limits: {concurrency: 1, queue: 5, queue_wait: 0s}\n", func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-let
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if first, err := http.Post(address+"/x.cgi", "text/plain", http.NoBody); err == nil {
			_ = first.Body.Close()
		}
	}()
	<-arrived
	process.Eventually(t, "a call is refused before it could have waited", func() bool {
		begun := time.Now()
		if second := beginCall(t, http.MethodPost, address+"/x.cgi"); second.StatusCode != http.StatusServiceUnavailable {
			t.Error(second.Status)
		}
		return time.Since(begun) < 900*time.Millisecond
	})
	close(let)
	<-done
}
