package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"portico/test/process"
)

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

// startDemo runs portico demo on free ports and gives what it prints first.
func startDemo(t *testing.T) string {
	t.Helper()
	_, found := startProcess(t, `(?s)^(.*)\nStop it`, "demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	return found[0]
}

// shell runs a script and gives what it prints.
func shell(t *testing.T, script string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script).CombinedOutput()
	if err != nil {
		t.Errorf("%s\n%v\n%s", script, err, output)
	}
	return string(output)
}

// TestDemoTour runs the commands that portico demo prints, as they stand.
func TestDemoTour(t *testing.T) {
	t.Parallel()
	tour := startDemo(t)
	_, script, found := strings.Cut(tour, "/demo:\n\n")
	if !found {
		t.Fatalf("the demo prints no tour: %q", tour)
	}
	output := shell(t, script)
	for _, want := range []string{
		"Cache-Status: Portico; fwd=miss", "Cache-Status: Portico; hit", "404 Not Found", `"ranking-impact"`,
		`"flag_id":`, `"ids":[`, `"file_name":"hello.txt"`, `"code":1104`, `"tracker_version"`,
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the tour shows nothing of %s:\n%s", want, output)
		}
	}
}
