package app

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portico/cmd/portico/config"
	"portico/upstream/switchover"
	"portico/upstream/transport"
)

// TestReloadKeepsWhatIsKnownOfATracker: a breaker that is open stays open, and is shown so, unless something about the connections
// has changed.
func TestReloadKeepsWhatIsKnownOfATracker(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	kept, logger := NewResources(), slog.New(slog.DiscardHandler)
	built := func(change func(*config.Config)) *Runtime {
		t.Helper()
		cfg := config.Default()
		cfg.Primary, cfg.Trackers = "main", map[string]config.Tracker{"main": {URL: away.URL, Dialect: "bugzilla-5", Timeout: time.Minute}}
		change(&cfg)
		rt, err := Build(t.Context(), cfg, noVariables, logger, kept)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(rt.Close)
		return rt
	}
	metrics := func(rt *Runtime) string {
		answer := httptest.NewRecorder()
		rt.Operators.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil))
		return answer.Body.String()
	}
	first := built(func(*config.Config) {})
	reads := func(rt *Runtime) transport.State { return rt.trackers["main"].stack.Reads.State() }
	for deadline := time.Now().Add(20 * time.Second); reads(first) != transport.Open; {
		first.Front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rest/bug/1/attachment", nil))
		if time.Now().After(deadline) {
			t.Fatal("the breaker never opens")
		}
	}
	same := built(func(cfg *config.Config) { cfg.Responses = "interface" })
	const open = `portico_breaker_state{breaker="read",state="closed",tracker="main"} 0` // it may be half-open by now
	if text := metrics(same); reads(same) == transport.Closed || !strings.Contains(text, open) {
		t.Errorf("after a reload the breaker is %s, and the metrics have no %s:\n%s", reads(same), open, text)
	}
	for name, change := range map[string]func(*config.Config){
		"another timeout": func(cfg *config.Config) {
			settings := cfg.Trackers["main"]
			settings.Timeout = time.Hour
			cfg.Trackers["main"] = settings
		},
		"another limit": func(cfg *config.Config) { cfg.Limits.Concurrency = 3 },
	} {
		if other := built(change); reads(other) != transport.Closed {
			t.Errorf("%s: the breaker is %s", name, reads(other))
		}
	}
}

// TestReloadThatFailsMidway: what changed while a runtime was built that came to nothing is shown by the one that stays.
func TestReloadThatFailsMidway(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	kept, logger := NewResources(), slog.New(slog.DiscardHandler)
	cfg := config.Default()
	cfg.Primary, cfg.Trackers = "main", map[string]config.Tracker{"main": {URL: away.URL, Dialect: "bugzilla-5", Timeout: time.Minute}}
	stays, err := Build(t.Context(), cfg, noVariables, logger, kept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stays.Close)
	database, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // it lets whoever comes wait until the breaker is open
		conn, err := database.Accept()
		_ = database.Close()
		for err == nil && stays.trackers["main"].stack.Reads.State() == transport.Closed {
			stays.Front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rest/bug/1/attachment", nil))
		}
		if err == nil {
			_ = conn.Close()
		}
	}()
	cfg.Candidate, cfg.State = "new", "postgres://"+database.Addr().String()+"/portico?sslmode=disable"
	cfg.Trackers = map[string]config.Tracker{"main": cfg.Trackers["main"], "new": cfg.Trackers["main"]}
	if rt, err := Build(t.Context(), cfg, noVariables, logger, kept); err == nil {
		rt.Close()
		t.Fatal("it was built without its database")
	}
	answer := httptest.NewRecorder()
	stays.Operators.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil))
	const calls = `portico_tracker_calls_total{class="read",`
	const open = `portico_breaker_state{breaker="read",state="closed",tracker="main"} 0` // it may be half-open by now
	if state := stays.trackers["main"].stack.Reads.State(); state == transport.Closed || !strings.Contains(answer.Body.String(), open) || !strings.Contains(answer.Body.String(), calls) {
		t.Errorf("the breaker is %s, and the metrics have no %s or no %s", state, open, calls)
	}
}

// TestRuntimesShareOneSwitchover, which goes by the rules of the latest.
func TestRuntimesShareOneSwitchover(t *testing.T) {
	logger, kept := slog.New(slog.DiscardHandler), NewResources()
	cfg := config.Default()
	cfg.Trackers = map[string]config.Tracker{}
	for _, name := range []string{"main", "new"} {
		cfg.Trackers[name] = config.Tracker{URL: "http://127.0.0.1:9/", Dialect: "bugzilla-5", Timeout: time.Minute}
	}
	cfg.Primary, cfg.Candidate, cfg.State = "main", "new", "sqlite:"+filepath.Join(t.TempDir(), "p.db")
	first, err := Build(t.Context(), cfg, noVariables, logger, kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.switchover.Kill(t.Context(), "ann", "it burns"); err != nil {
		t.Fatal(err)
	}
	cfg.Switchover.Rules = []switchover.Rule{{Name: "rest", Reads: "new", Writes: "new"}}
	second, err := Build(t.Context(), cfg, noVariables, logger, kept)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	status := second.switchover.Status(t.Context())
	if status.Killed == nil || status.Table.Rules[0].Reads != "new" {
		t.Errorf("after a reload the rules are %+v", status)
	}
	second.Close()
	if err := kept.Close(); err != nil {
		t.Error(err)
	}
}
