package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
	"portico/proxy/admin"
	"portico/test/process"
	"portico/upstream/journal"
	"portico/upstream/switchover"
)

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log, level := app.NewLogger(&out, config.Log{Level: "warn", Format: "json"})
	log.InfoContext(context.Background(), "not shown")
	log.WarnContext(context.Background(), "shown", "url", config.RedactURL("https://me:hunter2@host/?api_key=hunter2"))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	if line["msg"] != "shown" || line["level"] != "WARN" || line["url"] != "https://REDACTED@host/?api_key=REDACTED" {
		t.Errorf("got %s", &out)
	}
	out.Reset()
	level.Set(slog.LevelError)
	log.WarnContext(context.Background(), "not shown")
	log, _ = app.NewLogger(&out, config.Log{Level: "debug", Format: "text"})
	log.DebugContext(context.Background(), "shown")
	if text := out.String(); !strings.Contains(text, "level=DEBUG msg=shown") || strings.Contains(text, "not shown") {
		t.Errorf("got %s", &out)
	}
}

func TestBuildVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"},
	}}
	for want, info := range map[string]*debug.BuildInfo{
		app.Version + ", commit 0123456789ab with local changes, go1.26": info, app.Version + ", go1.26": {GoVersion: "go1.26"}, app.Version: nil,
	} {
		if got := app.BuildVersion(info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestLibrariesKeepQuiet: nothing of what a library writes to the standard log is shown. It may be a response of the tracker.
func TestLibrariesKeepQuiet(t *testing.T) {
	var shown bytes.Buffer
	log.SetOutput(&shown)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	app.QuietLibraries()
	log.Printf("Unsolicited response starting with %q", "SECRET")
	if shown.Len() > 0 {
		t.Errorf("the log shows %s", &shown)
	}
}

var must = process.Must

// configured returns a configuration with trackers at an address, the first of them the primary one and the second, if any, the candidate.
func configured(t *testing.T, address string, names ...string) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Trackers, cfg.State = map[string]config.Tracker{}, "sqlite:"+filepath.Join(t.TempDir(), "p.db")
	for _, name := range names {
		cfg.Trackers[name] = config.Tracker{URL: address, Dialect: "bugzilla-5", Timeout: time.Minute}
	}
	if cfg.Primary = names[0]; len(names) > 1 {
		cfg.Candidate = names[1]
	}
	return cfg
}

// ask returns what the listener for operators has under a path.
func ask(t *testing.T, rt *app.Runtime, method, path, body string, into any) string {
	t.Helper()
	response, request := httptest.NewRecorder(), httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	rt.Operators.ServeHTTP(response, request)
	if into != nil {
		if err := json.Unmarshal(response.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v in %s", path, err, response.Body)
		}
	}
	return response.Body.String()
}

// isClosed reports whether reads of the tracker main are not held back.
func isClosed(t *testing.T, rt *app.Runtime) bool {
	t.Helper()
	var status admin.Status
	ask(t, rt, http.MethodGet, "/status", "", &status)
	return status.Trackers["main"].Breakers[0].State == "closed"
}

// fail makes reads until the breaker of the tracker main opens.
func fail(t *testing.T, rt *app.Runtime) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); isClosed(t, rt); {
		rt.Front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rest/bug/1/attachment", nil))
		if time.Now().After(deadline) {
			t.Error("the breaker never opens")
			return
		}
	}
}

// wantOpen looks at the breaker of the tracker main, which may be half-open by now, and at the metrics.
func wantOpen(t *testing.T, rt *app.Runtime) {
	t.Helper()
	metrics := ask(t, rt, http.MethodGet, "/metrics", "", nil)
	for _, want := range []string{`portico_breaker_state{breaker="read",state="closed",tracker="main"} 0`, `portico_tracker_calls_total{class="read",`} {
		if isClosed(t, rt) || !strings.Contains(metrics, want) {
			t.Errorf("the breaker is closed, or the metrics have no %s:\n%s", want, metrics)
		}
	}
}

// TestReloadKeepsWhatIsKnownOfATracker: a breaker that is open stays open, and is shown so, unless something about the connections
// has changed. A build that fails after it has opened changes nothing.
func TestReloadKeepsWhatIsKnownOfATracker(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	cfg := configured(t, away.URL, "main")
	s := app.New(io.Discard, cfg)
	defer s.Close()
	build := func(change func(*config.Config)) *app.Runtime {
		t.Helper()
		cfg := configured(t, away.URL, "main")
		change(&cfg)
		rt, err := s.Build(t.Context(), cfg)
		must(t, err)
		return rt
	}
	first := build(func(*config.Config) {})
	database, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go func() { // it lets its clients wait until the breaker is open
		conn, err := database.Accept()
		_ = database.Close()
		if err == nil {
			fail(t, first)
			_ = conn.Close()
		}
	}()
	broken := configured(t, away.URL, "main", "new")
	broken.State = "postgres://" + database.Addr().String() + "/portico?sslmode=disable"
	if _, err := s.Build(t.Context(), broken); err == nil {
		t.Fatal("it was built without its database")
	}
	wantOpen(t, first)
	wantOpen(t, build(func(cfg *config.Config) { cfg.Responses = "interface" }))
	for name, change := range map[string]func(*config.Config){
		"another timeout": func(cfg *config.Config) {
			cfg.Trackers["main"] = config.Tracker{URL: away.URL, Dialect: "bugzilla-5", Timeout: time.Hour}
		},
		"another limit": func(cfg *config.Config) { cfg.Limits.Concurrency = 3 },
		"a certificate": func(cfg *config.Config) {
			settings := cfg.Trackers["main"]
			settings.CertFile, settings.KeyFile = process.KeyPair(t)
			cfg.Trackers["main"] = settings
		},
	} {
		if !isClosed(t, build(change)) {
			t.Errorf("%s: the breaker is open", name)
		}
	}
}

// TestReloadFreesTheFormerRuntimes: what survives a reload keeps nothing of former configurations in memory.
func TestReloadFreesTheFormerRuntimes(t *testing.T) {
	for name, trackers := range map[string][]string{"one tracker": {"main"}, "two trackers": {"main", "new"}} {
		t.Run(name, func(t *testing.T) {
			away := httptest.NewServer(http.NotFoundHandler())
			away.Close()
			cfg := configured(t, away.URL, trackers...)
			s := app.New(io.Discard, cfg)
			defer s.Close()
			var freed atomic.Int64
			const reloads = 4
			for range reloads + 1 {
				rt, err := s.Build(t.Context(), cfg)
				must(t, err)
				rt.Front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rest/flag_type/P", nil))
				runtime.AddCleanup(rt.Front, func(int) { freed.Add(1) }, 0)
			}
			process.Eventually(t, "former runtimes are freed", func() bool {
				runtime.GC()
				return freed.Load() == reloads
			})
		})
	}
}

// TestJournalKeepsItsSettingsWhenAReloadFails: those of the configuration that could not be built are freed, and so is its journal where there was none.
func TestJournalKeepsItsSettingsWhenAReloadFails(t *testing.T) {
	for _, hasJournal := range []bool{true, false} {
		cfg := configured(t, "http://127.0.0.1:1/", "old", "new")
		cfg.Switchover.Journal.Spool = t.TempDir()
		s := app.New(io.Discard, cfg)
		defer s.Close()
		var freed atomic.Bool
		build := func(keyed bool, rules ...switchover.Rule) error {
			cfg := cfg
			if keyed {
				cfg.Switchover.Journal.Keys = new(journal.Keys)
				runtime.AddCleanup(cfg.Switchover.Journal.Keys, func(int) { freed.Store(true) }, 0)
			}
			cfg.Switchover.Rules = rules
			_, err := s.Build(t.Context(), cfg)
			return err
		}
		must(t, build(hasJournal))
		if err := build(true, switchover.Rule{Name: "rest", Callers: []string{"unknown"}, Reads: "old", Writes: "old"}); err == nil {
			t.Fatal("rules for an unknown caller were taken")
		}
		process.Eventually(t, "the settings are freed", func() bool {
			runtime.GC()
			return freed.Load()
		})
	}
}

// TestProbesGoOnAfterAReload: the former configuration leaves connections that are still in use alone.
func TestProbesGoOnAfterAReload(t *testing.T) {
	var probes atomic.Int64
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rest/version" {
			probes.Add(1)
		}
		http.Error(w, "sick", http.StatusServiceUnavailable)
	}))
	defer sick.Close()
	cfg := configured(t, sick.URL, "main")
	s := app.New(io.Discard, cfg)
	defer s.Close()
	var latest *app.Runtime
	for _, responses := range []string{cfg.Responses, "interface"} {
		var err error
		cfg.Responses = responses
		if latest, err = s.Build(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond) // the former runtime closes meanwhile
	before := probes.Load()
	process.Eventually(t, "a probe is sent", func() bool {
		latest.Front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rest/bug/1/attachment", nil))
		return probes.Load() > before
	})
}

// TestRuntimesShareOneSwitchover, which goes by the rules of the latest, and which a reload does not revive.
func TestRuntimesShareOneSwitchover(t *testing.T) {
	cfg := configured(t, "http://127.0.0.1:9/", "main", "new")
	s := app.New(io.Discard, cfg)
	defer s.Close()
	first, err := s.Build(t.Context(), cfg)
	must(t, err)
	ask(t, first, http.MethodPost, "/switchover/kill", `{"actor":"ann","reason":"it burns"}`, nil)
	cfg.Switchover.Rules = []switchover.Rule{{Name: "rest", Reads: "new", Writes: "new"}}
	second, err := s.Build(t.Context(), cfg)
	must(t, err)
	var status switchover.Status
	if ask(t, second, http.MethodGet, "/switchover/status.json", "", &status); status.Killed == nil || status.Table.Rules[0].Reads != "new" {
		t.Errorf("after a reload the rules are %+v", status)
	}
}

// TestThePlanIsNoClient: that it tries the key of each named caller does not make them callers that were seen.
func TestThePlanIsNoClient(t *testing.T) {
	cfg := configured(t, "http://127.0.0.1:9/", "main", "new")
	for name, tracker := range cfg.Trackers {
		tracker.Credentials = "mapped"
		cfg.Trackers[name] = tracker
	}
	key := config.Secret{Env: "KEY"}
	must(t, key.Read(config.Environment([]string{"KEY=KeyAtMainOnly000000000000000000000000000"})))
	cfg.Callers = map[string]config.Caller{"half": {Keys: map[string]config.Secret{"main": key}}}
	cfg.Switchover.Rules = []switchover.Rule{{Name: "all", Reads: "new-compare", Writes: "old-compare"}}
	s := app.New(io.Discard, cfg)
	defer s.Close()
	rt, err := s.Build(t.Context(), cfg)
	must(t, err)
	wantSeen := func(want bool) {
		plan := ask(t, rt, http.MethodGet, "/switchover/plan.json", "", nil)
		if strings.Contains(plan, "1 seen without a key at new: half") != want {
			t.Errorf("half was seen: %v, and the plan is %s", want, plan)
		}
	}
	wantSeen(false)
	wantSeen(false)
	request := httptest.NewRequest(http.MethodGet, "/rest/bug/1/attachment", nil)
	request.Header.Set("X-Bugzilla-Api-Key", "KeyAtMainOnly000000000000000000000000000")
	rt.Front.ServeHTTP(httptest.NewRecorder(), request)
	wantSeen(true)
}

// TestRuntimesLeaveNothingBehind builds and closes all components, and looks for what still runs.
func TestRuntimesLeaveNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	cfg := configured(t, "http://127.0.0.1:1/", "a", "b")
	cfg.Canary.Isolated, cfg.Canary.Marker = true, "x"
	for _, state := range []string{cfg.State, "sqlite:" + filepath.Join(t.TempDir(), "no", "folder.db")} {
		s := app.New(io.Discard, cfg)
		good := state == cfg.State
		cfg.State = state
		for range 2 {
			if _, err := s.Build(t.Context(), cfg); (err == nil) != good {
				t.Errorf("with the store %s: %v", state, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, before)
	}
}

// TestOptionsOfRedis: those of the configuration count for connections to Redis.
func TestOptionsOfRedis(t *testing.T) {
	cfg := config.Default()
	cfg.Timeouts.Connect, cfg.Timeouts.Redis = 7*time.Second, 70*time.Millisecond
	cfg.Cache.Redis = config.Redis{URL: "redis://redis.example/2"}
	if redis, err := app.RedisOptions(&cfg); err != nil || redis.DialTimeout != 7*time.Second || redis.Timeout != 70*time.Millisecond || redis.DB != 2 {
		t.Errorf("the cache waits %s for a connection to %s and %s for its reply (%v)", redis.DialTimeout, redis, redis.Timeout, err)
	}
}

// TestReloadEndsTheUseOfCachedResponses: what a tracker showed to the key of a service is not shown to a caller's own key, nor to
// one that has lost its name, nor is it what another host at the same address shows.
func TestReloadEndsTheUseOfCachedResponses(t *testing.T) {
	var seen []string
	tracker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/rest/flag_type/") {
			seen = append(seen, r.URL.Query().Get("Bugzilla_api_key"))
		}
		_, _ = io.WriteString(w, `{"bug":[],"attachment":[]}`)
	}))
	defer tracker.Close()
	load := func(trackerKeys, callers string) config.Config {
		t.Helper()
		file := filepath.Join(t.TempDir(), "portico.yaml")
		text := "trackers: {main: {url: \"" + tracker.URL + "\", dialect: bugzilla-5" + trackerKeys + "}}\nprimary: main\ncallers: {" + callers + "}\n"
		must(t, os.WriteFile(file, []byte(text), 0o600))
		cfg, problems := config.Load(nil, []string{"SERVICE=service-key", "OWN=own-key"}, file)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return cfg
	}
	const service, known = ", credentials: service, service_key_env: SERVICE", "bot: {key_env: OWN}"
	first := load(service, known)
	s := app.New(io.Discard, first)
	defer s.Close()
	for _, cfg := range []config.Config{first, first, load("", known), load(service, ""), load(service+", host: other.example", known)} {
		rt, err := s.Build(t.Context(), cfg)
		must(t, err)
		rt.Front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/rest/flag_type/P?api_key=own-key", nil))
	}
	if want := []string{"service-key", "own-key", "service-key"}; !slices.Equal(seen, want) {
		t.Errorf("the tracker was asked with %q, want %q", seen, want)
	}
}
