package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"portico/cmd/portico/config"
	"strings"
	"testing"
	"time"
)

// TestReloadOfLogAndTimeouts: keys about the log and the end take effect at a reload; those that need a restart are logged and in the status.
const withTracker = "trackers: {main: {url: 'http://tracker.example/'}}\n"

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReloadOfLogAndTimeouts(t *testing.T) {
	const least = "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n" + withTracker
	file := writeFile(t, "c.yaml", least)
	flags := &config.Flags{File: file}
	cfg, problems := config.Load(nil, nil, file)
	if config.Fatal(problems) {
		t.Fatal(problems)
	}
	var log bytes.Buffer
	f := Service{Stderr: &log, Cfg: cfg, Reload: flags}
	f.open()
	reload := func(more string) config.Timeouts {
		t.Helper()
		if err := os.WriteFile(file, []byte(least+more), 0o600); err != nil {
			t.Fatal(err)
		}
		rt, err := f.rebuild(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rt.Close()
		if text := fmt.Sprint(rt.status().NeedRestart); !strings.Contains(log.String(), "need a restart") != (text == "[]") {
			t.Errorf("the status has %s, and the log is\n%s", text, &log)
		}
		return rt.cfg.Timeouts
	}
	got := reload("log: {level: debug}\ntimeouts: {drain: 3s, shutdown_delay: 2s}\n")
	if f.level.Level() != slog.LevelDebug || got.Drain != 3*time.Second || got.ShutdownDelay != 2*time.Second {
		t.Errorf("the log is at %s, the end has %+v", f.level.Level(), got)
	}
	if strings.Contains(log.String(), "next start") {
		t.Errorf("there is nothing that must wait, but the log says\n%s", &log)
	}
	reload("log: {format: text}\ntimeouts: {header: 3s, idle: 3s}\nlimits: {header: 8KiB}\n")
	if want := fmt.Sprintf(`"keys":[%q,%q,%q,%q]`, "limits.header", "timeouts.header", "timeouts.idle", "log.format"); !strings.Contains(log.String(), want) {
		t.Errorf("the log has no %s:\n%s", want, &log)
	}
}

// TestReloadTellsProblemsInTheLog: a program that reads the log of a running process is not shown lines of another form.
func TestReloadTellsProblemsInTheLog(t *testing.T) {
	file := writeFile(t, "c.yaml", withTracker+"trackers: {}\n")
	cfg := config.Default()
	var log bytes.Buffer
	f := Service{Stderr: &log, Cfg: cfg, Reload: &config.Flags{File: file}}
	f.open()
	if _, err := f.rebuild(t.Context()); !errors.Is(err, ErrNotGood) {
		t.Errorf("the reload gives %v", err)
	}
	if want := `"level":"ERROR","msg":"the configuration has a problem","problem":"` + file + `:`; !strings.Contains(log.String(), want) {
		t.Errorf("the log has no %s:\n%s", want, &log)
	}
}

// TestReloadKeepsOperatorsAsked: what the listener is open to does not change before the next start, so what asks for a
// token does not go before it either.
func TestReloadKeepsOperatorsAsked(t *testing.T) {
	file := writeFile(t, "c.yaml", "admin: {listen: 127.0.0.1:9080}\n"+withTracker)
	cfg, problems := config.Load(nil, nil, file)
	if config.Fatal(problems) {
		t.Fatal(problems)
	}
	for address, want := range map[string]error{"0.0.0.0:9080": errOpenToAll, "127.0.0.1:9080": nil} {
		cfg.Admin.Listen = address
		f := Service{Stderr: io.Discard, Cfg: cfg, Reload: &config.Flags{File: file}}
		f.open()
		rt, err := f.rebuild(t.Context())
		if !errors.Is(err, want) {
			t.Errorf("at %s: %v, want %v", address, err, want)
		}
		if err == nil {
			rt.Close()
		}
	}
}

// TestSocketsOfClientsAndOperators: operators have a bound of their own, and neither socket stays open when the other one cannot be opened.
func TestSocketsOfClientsAndOperators(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	f := Service{Stderr: io.Discard, Cfg: config.Default()}
	f.Cfg.Listen, f.Cfg.Admin.Listen, f.Cfg.Limits.Connections = "127.0.0.1:0", "127.0.0.1:0", 1000
	f.open()
	clients, operators, err := f.listen()
	if err != nil {
		t.Fatal(err)
	}
	if operators.bound.limit > maxOperatorConnections {
		t.Errorf("operators may have %d connections", operators.bound.limit)
	}
	if err := errors.Join(clients.Close(t.Context()), operators.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	f.Cfg.Listen, f.Cfg.Admin.Listen = clients.Address(), taken.Addr().String()
	if _, _, err := f.listen(); err == nil {
		t.Error("the operators' address is taken, but it was opened")
	}
	again, err := net.Listen("tcp", clients.Address())
	if err != nil {
		t.Fatalf("the clients' socket is still open: %v", err)
	}
	again.Close()
}
