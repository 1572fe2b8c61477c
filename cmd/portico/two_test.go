package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"portico/test/demo"
	"portico/test/tracker"
)

// pair is two reference trackers with Portico before them, all in this process.
type pair struct {
	old, new           *tracker.Server
	clients, operators string
	// file is the configuration, state where its store is.
	file, state string
}

// startTracker serves a reference tracker until the test ends.
func startTracker(t *testing.T, options tracker.Options) (*tracker.Server, string) {
	t.Helper()
	made := tracker.New(options)
	server := httptest.NewServer(made)
	t.Cleanup(func() {
		_ = made.Close()
		server.Close()
	})
	return made, server.URL + "/"
}

// pairConfig is the least that a configuration of two trackers says.
func pairConfig(old, candidate, state, more string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntrackers: {main: {url: %q}, new: {url: %q}}\n"+
		"primary: main\ncandidate: new\nstate: sqlite:%s\ntimeouts: {drain: 5s}\n%s", old, candidate, state, more)
}

// startPair serves two trackers by a configuration.
func startPair(t *testing.T, candidate tracker.Options, more string, environ ...string) *pair {
	t.Helper()
	p := &pair{state: filepath.Join(t.TempDir(), "portico.db")}
	var oldURL, newURL string
	p.old, oldURL = startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	candidate.Seed = tracker.SeedDemo
	p.new, newURL = startTracker(t, candidate)
	p.file = writeFile(t, "c.yaml", pairConfig(oldURL, newURL, p.state, more))
	p.clients, p.operators = serveConfig(t, p.file, environ...)
	p.clients, p.operators = "http://"+p.clients, "http://"+p.operators
	return p
}

// command runs a command that asks the admin listener.
func (p *pair) command(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	code, stdout, stderr := portico(t, nil, append(args, "--admin", p.operators)...)
	return code, stdout + stderr
}

// commandsWant runs a command and looks at its exit code and output.
func (p *pair) commandWants(t *testing.T, want int, text string, args ...string) {
	t.Helper()
	if code, output := p.command(t, args...); code != want || !strings.Contains(output, text) {
		t.Errorf("portico %s exits with %d, want %d, and does not say %q:\n%s", strings.Join(args, " "), code, want, text, output)
	}
}

// sendBy makes a request with headers; the answer's body is the caller's.
func sendBy(t *testing.T, client *http.Client, method, address, body string, header ...string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return client.Do(request)
}

// send makes a request with headers and gives the answer, its body read.
func send(t *testing.T, method, address, body string, header ...string) (*http.Response, string) {
	t.Helper()
	response, err := sendBy(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, method, address, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// key is the header that shows the key of a user of the demo.
func key(user string) []string { return []string{"X-BUGZILLA-API-KEY", demo.Key(user)} }
