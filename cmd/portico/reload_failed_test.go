package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"portico/upstream/transport"
)

// TestReloadThatFailsMidway: what changed while a house was built that came to nothing is shown by the one that stays.
func TestReloadThatFailsMidway(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	kept, logger := newLasting(), newLogger(io.Discard, Default().Log)
	cfg := Default()
	cfg.Primary, cfg.Trackers = "main", map[string]TrackerConfig{"main": {URL: away.URL, Dialect: "bugzilla-5", Timeout: time.Minute}}
	stays, err := build(cfg, noVariables, logger, kept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stays.close)
	database, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // it lets whoever comes wait until the breaker is open
		conn, err := database.Accept()
		_ = database.Close()
		for err == nil && stays.trackers["main"].stack.Breakers.Reads.State() != transport.Open {
			stays.front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rest/bug/1/attachment", nil))
		}
		if err == nil {
			_ = conn.Close()
		}
	}()
	cfg.Candidate, cfg.State = "new", "postgres://"+database.Addr().String()+"/portico?sslmode=disable"
	cfg.Trackers = map[string]TrackerConfig{"main": cfg.Trackers["main"], "new": cfg.Trackers["main"]}
	if rooms, err := build(cfg, noVariables, logger, kept); err == nil {
		rooms.close()
		t.Fatal("it was built without its database")
	}
	answer := httptest.NewRecorder()
	stays.operators.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil))
	const calls = `portico_tracker_calls_total{class="read",`
	const open = `portico_breaker_state{breaker="read",state="open",tracker="main"} 1`
	if state := stays.trackers["main"].stack.Breakers.Reads.State(); state != transport.Open || !strings.Contains(answer.Body.String(), open) || !strings.Contains(answer.Body.String(), calls) {
		t.Errorf("the breaker is %s, and the metrics have no %s or no %s", state, open, calls)
	}
}
