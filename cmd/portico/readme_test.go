package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"portico/test/process"
)

// buildPortico builds the program into a folder of the test.
func buildPortico(t *testing.T) string {
	t.Helper()
	program, err := process.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// startDemo runs portico demo on free ports and gives what it prints first.
func startDemo(t *testing.T, program string) string {
	t.Helper()
	demo := exec.Command(program, "demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	var failures bytes.Buffer
	demo.Stderr = &failures
	output, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = demo.Process.Signal(os.Interrupt) // it may have ended already, which Wait tells
		if err := demo.Wait(); err != nil {
			t.Errorf("portico demo: %v\n%s", err, failures.String())
		}
	})
	var tour strings.Builder
	lines := bufio.NewScanner(output)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Stop it") {
		tour.WriteString(lines.Text() + "\n")
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	return tour.String()
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
	tour := startDemo(t, buildPortico(t))
	_, script, found := strings.Cut(tour, "\n\n")
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

// TestExamplesAreGood checks what the pages offer as a beginning: a tracker alone, and the example file.
func TestExamplesAreGood(t *testing.T) {
	for _, args := range [][]string{
		{"check", "--tracker", "https://tracker.example/", "--redis", "redis://127.0.0.1:6379/0"},
		{"check", "--config", "../../config.example.yaml"},
	} {
		var stdout, stderr bytes.Buffer
		env := environment{stdout: &stdout, stderr: &stderr}
		if code := run(t.Context(), env, args); code != exitOK {
			t.Errorf("portico %s exits with %d: %s", strings.Join(args, " "), code, stderr.String())
		}
	}
}
