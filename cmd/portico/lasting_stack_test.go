package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"portico/upstream/transport"
)

// TestReloadKeepsWhatIsKnownOfATracker: a breaker that is open stays open, and is shown so, unless something about the connections
// has changed.
func TestReloadKeepsWhatIsKnownOfATracker(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	kept, logger := newLasting(), newLogger(io.Discard, Default().Log)
	built := func(change func(*Config)) *house {
		t.Helper()
		cfg := Default()
		cfg.Primary, cfg.Trackers = "main", map[string]TrackerConfig{"main": {URL: away.URL, Dialect: "bugzilla-5", Timeout: time.Minute}}
		change(&cfg)
		rooms, err := build(cfg, noVariables, logger, kept)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(rooms.close)
		return rooms
	}
	metrics := func(rooms *house) string {
		answer := httptest.NewRecorder()
		rooms.operators.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil))
		return answer.Body.String()
	}
	first := built(func(*Config) {})
	reads := func(rooms *house) transport.State { return rooms.trackers["main"].stack.Breakers.Reads.State() }
	eventually(t, "an open breaker", func() bool {
		first.front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rest/bug/1/attachment", nil))
		return reads(first) == transport.Open
	})
	same := built(func(cfg *Config) { cfg.Responses = "interface" })
	const open = `portico_breaker_state{breaker="read",state="open",tracker="main"} 1`
	if text := metrics(same); reads(same) != transport.Open || !strings.Contains(text, open) {
		t.Errorf("after a reload the breaker is %s, and the metrics have no %s:\n%s", reads(same), open, text)
	}
	for name, change := range map[string]func(*Config){
		"another timeout": func(cfg *Config) {
			settings := cfg.Trackers["main"]
			settings.Timeout = time.Hour
			cfg.Trackers["main"] = settings
		},
		"another limit": func(cfg *Config) { cfg.Limits.Concurrency = 3 },
	} {
		if other := built(change); reads(other) != transport.Closed {
			t.Errorf("%s: the breaker is %s", name, reads(other))
		}
	}
}

// TestLastingStacksEnd with the last house that uses them, and tell those of all until then.
func TestLastingStacksEnd(t *testing.T) {
	kept := newLasting()
	var told []string
	user := func(name string) watchers {
		return watchers{changed: func(transport.Change) { told = append(told, name) }}
	}
	one, leaveOne, err := kept.stack("k", transport.Options{}, user("one"))
	if err != nil {
		t.Fatal(err)
	}
	two, leaveTwo, err := kept.stack("k", transport.Options{}, user("two"))
	if err != nil || one != two {
		t.Fatal("it was made anew: ", err)
	}
	one.changed(transport.Change{})
	leaveTwo() // as where the rest of the next house fails
	one.changed(transport.Change{})
	leaveOne()
	one.changed(transport.Change{})
	if strings.Join(told, " ") != "one two one" || len(kept.stacks) != 0 {
		t.Errorf("told %q, %d are left", told, len(kept.stacks))
	}
}
