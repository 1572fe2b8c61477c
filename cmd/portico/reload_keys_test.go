package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReloadOfKeysOutsideTheRooms: what is about the log and about the end takes effect at
// a reload, and what cannot is told.
func TestReloadOfKeysOutsideTheRooms(t *testing.T) {
	const least = "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n" + withTracker
	file := writeFile(t, "c.yaml", least)
	flags := &configFlags{file: file}
	cfg, problems := Load(nil, nil, file)
	if fatal(problems) {
		t.Fatal(problems)
	}
	f := facade{cfg: cfg, reload: flags, lasting: newLasting()}
	var log bytes.Buffer
	reload := func(more string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(least+more), 0o600); err != nil {
			t.Fatal(err)
		}
		rooms, err := f.rebuild(newLoggerAt(&log, cfg.Log, &f.level))
		if err != nil {
			t.Fatal(err)
		}
		rooms.close()
	}
	reload("log: {level: debug}\ntimeouts: {drain: 3s, shutdown_delay: 2s}\n")
	if got := f.stopping.Load(); f.level.Level() != slog.LevelDebug || got.Drain != 3*time.Second || got.ShutdownDelay != 2*time.Second {
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
	cfg := Default()
	var log, stderr bytes.Buffer
	f := facade{env: environment{stderr: &stderr}, cfg: cfg, reload: &configFlags{file: file}, lasting: newLasting()}
	if _, err := f.rebuild(newLogger(&log, cfg.Log)); !errors.Is(err, errNotGood) {
		t.Errorf("the reload gives %v", err)
	}
	if want := `"level":"ERROR","msg":"the configuration has a problem","problem":"` + file + `:`; !strings.Contains(log.String(), want) || stderr.Len() > 0 {
		t.Errorf("besides the log stands %q, and the log has no %s:\n%s", &stderr, want, &log)
	}
}

// TestReloadKeepsOperatorsAsked: what the listener is open to does not change before the next start, so what asks for a
// token does not go before it either.
func TestReloadKeepsOperatorsAsked(t *testing.T) {
	file := writeFile(t, "c.yaml", "admin: {listen: 127.0.0.1:9080}\n"+withTracker)
	cfg, problems := Load(nil, nil, file)
	if fatal(problems) {
		t.Fatal(problems)
	}
	for address, want := range map[string]error{"0.0.0.0:9080": errOpenToAll, "127.0.0.1:9080": nil} {
		cfg.Admin.Listen = address
		f := facade{cfg: cfg, reload: &configFlags{file: file}, lasting: newLasting()}
		rooms, err := f.rebuild(slog.New(slog.DiscardHandler))
		if !errors.Is(err, want) {
			t.Errorf("at %s: %v, want %v", address, err, want)
		}
		if err == nil {
			rooms.close()
		}
	}
}

// TestNothingIsBuiltBeforeTheSocketsAreOpen: a second process in the place of one that runs stores no rules in its state.
func TestNothingIsBuiltBeforeTheSocketsAreOpen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	store := filepath.Join(t.TempDir(), "state.db")
	file := writeFile(t, "c.yaml", "listen: "+taken.Addr().String()+"\nadmin: {listen: 127.0.0.1:0}\nstate: sqlite:"+store+"\n"+withTwo)
	code, _, stderr := portico(t, nil, "serve", "--config", file)
	if _, err := os.Stat(store); code != exitFailed || !strings.Contains(stderr, "address already in use") || !os.IsNotExist(err) {
		t.Errorf("exit %d, the store: %v, said %s", code, err, stderr)
	}
}
