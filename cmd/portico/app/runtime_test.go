package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"portico/cmd/portico/app"
	"portico/cmd/portico/config"
)

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log := app.NewLogger(&out, config.Log{Level: "warn", Format: "json"})
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
	app.NewLogger(&out, config.Log{Level: "debug", Format: "text"}).DebugContext(context.Background(), "shown")
	if !strings.Contains(out.String(), "level=DEBUG msg=shown") {
		t.Errorf("got %s", &out)
	}
}

func TestBuildVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got, want := app.BuildVersion(info), app.Version+", commit 0123456789ab with local changes, go1.26"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := app.BuildVersion(&debug.BuildInfo{GoVersion: "go1.26"}), app.Version+", go1.26"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := app.BuildVersion(nil); got != app.Version {
		t.Errorf("got %q", got)
	}
}

// TestLibrariesKeepQuiet holds that nothing of what a library writes to the
// standard log is shown: it may be an answer of the tracker.
func TestLibrariesKeepQuiet(t *testing.T) {
	var shown bytes.Buffer
	app.QuietLibraries(app.NewLogger(&shown, config.Log{Level: "debug", Format: "json"}))
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	log.Printf("Unsolicited response starting with %q", "SECRET")
	if text := shown.String(); strings.Contains(text, "SECRET") || !strings.Contains(text, "a library complained") {
		t.Errorf("the log shows %s", text)
	}
}

// TestRuntimesLeaveNothingBehind builds and closes all components, and looks for what
// still runs.
func TestRuntimesLeaveNothingBehind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "trackers: {a: {url: 'http://127.0.0.1:1/'}, b: {url: 'http://127.0.0.1:2/'}}\nprimary: a\ncandidate: b\n" +
		"state: sqlite:" + filepath.Join(t.TempDir(), "p.db") + "\ncanary: {isolated: true, marker: x}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	cfg, problems := config.Load(nil, nil, file)
	if config.Fatal(problems) {
		t.Fatal(problems)
	}
	var log bytes.Buffer
	kept, logger := app.NewResources(), app.NewLogger(&log, cfg.Log)
	none := func(string) (string, bool) { return "", false }
	rt, err := app.Build(t.Context(), cfg, none, logger, kept)
	if err != nil {
		t.Fatal(err)
	}
	again, err := app.Build(t.Context(), cfg, none, logger, kept)
	if err != nil {
		t.Fatal(err)
	}
	rt.Close()
	again.Close()
	if err := kept.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
	cfg.State = "sqlite:" + filepath.Join(t.TempDir(), "no", "folder.db")
	fresh := app.NewResources()
	if _, err := app.Build(t.Context(), cfg, none, logger, fresh); err == nil {
		t.Error("a runtime without its store was built")
	}
	if err := fresh.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}
