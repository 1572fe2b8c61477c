package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"portico/test/tracker"
)

// gatedTracker is a reference tracker that carries out no write before it is let.
type gatedTracker struct {
	*tracker.Server
	// waiting gets a value when a write has come.
	waiting, let chan struct{}
	reads        atomic.Int64
}

func (g *gatedTracker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body) // a body that breaks off is the tracker's to refuse
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		g.waiting <- struct{}{}
		<-g.let
	case strings.Contains(r.URL.Path, "/flag_type/"):
		g.reads.Add(1)
	}
	g.Server.ServeHTTP(w, r)
}

// TestReloadKeepsTheCache: answers outlive a reload, and a write that is under way
// meanwhile ends in the former runtime and counts for the present one.
func TestReloadKeepsTheCache(t *testing.T) {
	t.Parallel()
	gate := &gatedTracker{Server: tracker.New(tracker.Options{Seed: tracker.SeedDemo}), waiting: make(chan struct{}, 1), let: make(chan struct{})}
	server := httptest.NewServer(gate)
	t.Cleanup(func() { _ = gate.Close(); server.Close() })
	file := filepath.Join(t.TempDir(), "c.yaml")
	configure := func(dialect string) {
		t.Helper()
		text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntrackers: {main: {url: %q, dialect: %s}}\n", server.URL, dialect)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("auto")
	process, at := startProcess(t, `"clients":"([^"]+)","operators":"([^"]+)"`, "serve", "--config", file)
	clients, operators := "http://"+at[0], "http://"+at[1]
	read := func() (status, text string) {
		t.Helper()
		response, text := send(t, http.MethodGet, clients+"/rest/flag_type/WebShop", "")
		return response.Header.Get("Cache-Status"), text
	}
	read()
	reload(t, process, operators)
	if status, _ := read(); !strings.Contains(status, "hit") || gate.reads.Load() != 1 {
		t.Errorf("after a reload the answer says %q, and the tracker was asked %d times", status, gate.reads.Load())
	}
	done := make(chan string, 1)
	go func() {
		_, text := send(t, http.MethodPut, clients+"/rest/flag_type/1?api_key="+tracker.Keys(tracker.SeedDemo)["editor@demo.example"], `{"description": "said anew"}`)
		done <- text
	}()
	<-gate.waiting
	configure("bugzilla-5") // which begins another cache
	reload(t, process, operators)
	if _, text := read(); strings.Contains(text, "said anew") {
		t.Fatal("the write was carried out before its time")
	}
	close(gate.let)
	written := <-done
	if status, text := read(); !strings.Contains(text, "said anew") {
		t.Errorf("after %s the answer says %q: %s", written, status, text)
	}
}
