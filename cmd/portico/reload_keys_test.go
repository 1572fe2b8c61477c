package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
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
