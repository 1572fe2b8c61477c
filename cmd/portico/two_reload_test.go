package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// TestReloadMovesCallers moves reads to the other tracker and back by SIGHUP, under
// load: no request fails, and rules with a mistake change nothing.
func TestReloadMovesCallers(t *testing.T) {
	t.Parallel()
	_, oldURL := startTracker(t, tracker.Options{Seed: tracker.SeedDemo})
	candidate, newURL := startTracker(t, tracker.Options{Seed: tracker.SeedDemo, Product: "OnlyNew"})
	dir := t.TempDir()
	file := filepath.Join(dir, "portico.yaml")
	configure := func(state, rules string) {
		t.Helper()
		text := pairConfig(oldURL, newURL, filepath.Join(dir, state), "switchover: {rules: ["+rules+"]}\n")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("one.db", "{name: rest, reads: old}")
	program, at := startProcess(t, `"clients":"([^"]+)","operators":"([^"]+)"`, "serve", "--config", file)
	clients, p := "http://"+at[0], &pair{operators: "http://" + at[1]}
	answers := func() bool {
		t.Helper()
		response, _ := send(t, http.MethodGet, clients+"/rest/flag_type/OnlyNew", "")
		return response.StatusCode == http.StatusOK
	}
	if answers() {
		t.Fatal("the old tracker has the product of the new one")
	}
	stop := keepAsking(t, clients)
	configure("one.db", "{name: rest, reads: new}")
	program.Signal(t, syscall.SIGHUP)
	process.Eventually(t, "the new tracker answers", answers)
	configure("one.db", "{name: rest, reads: old, writes: new}")
	program.Signal(t, syscall.SIGHUP)
	for range 20 {
		if !answers() {
			t.Fatal("rules with a mistake took effect")
		}
	}
	configure("two.db", "{name: rest, reads: old}") // another store needs a restart; the rules take effect at once
	program.Signal(t, syscall.SIGHUP)
	process.Eventually(t, "the old tracker answers again", func() bool { return !answers() })
	p.commandWants(t, exitOK, "version 3, from the configuration", "migrate", "status")
	stop()
	if candidate.Requests()["attachment.list"] == 0 {
		t.Error("the new tracker was never asked")
	}
}

// keepAsking reads attachments until it is stopped; every read must succeed.
func keepAsking(t *testing.T, clients string) (stop func()) {
	t.Helper()
	var load sync.WaitGroup
	ended := make(chan struct{})
	for i := range 4 {
		load.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					if text := get(t, clients+fmt.Sprintf("/rest/bug/%d/attachment", i%2+1)); !strings.Contains(text, `"bugs"`) {
						t.Errorf("a read gives %s", text)
					}
				}
			}
		})
	}
	return func() {
		close(ended)
		load.Wait()
	}
}
