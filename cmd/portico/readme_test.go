package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portico/test/demo"
	"portico/test/process"
)

// readmeCommands gives the commands of README.md's shell blocks, comments and
// continuation lines taken care of.
func readmeCommands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		joined := strings.ReplaceAll(block[1], "\\\n", "")
		for line := range strings.SplitSeq(joined, "\n") {
			line, _, _ = strings.Cut(line, "  #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				commands = append(commands, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	return commands
}

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

// TestDemoTour runs the commands that portico demo prints, and those of the
// README's worked example, as they stand.
func TestDemoTour(t *testing.T) {
	tour := startDemo(t, buildPortico(t))
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
	clients := regexp.MustCompile(`Portico is at (\S+),`).FindStringSubmatch(tour)[1]
	example := ""
	for _, command := range readmeCommands(t) {
		if strings.HasPrefix(command, "curl") {
			example += command + "\n"
		}
	}
	example = strings.ReplaceAll(example, "http://127.0.0.1:8080", clients)
	example = strings.ReplaceAll(example, "…", demo.Key("editor"))
	example = strings.ReplaceAll(example, `"name": "qa"`, `"name": "qa2"`)
	output = shell(t, example)
	if !strings.Contains(output, `"flag_id":`) || !strings.Contains(output, `"name":"qa2"`) {
		t.Errorf("the worked example gives\n%s", output)
	}
}

// TestReadmeCommands holds the other commands of the README against the program.
func TestReadmeCommands(t *testing.T) {
	known := []string{
		"go run ./cmd/portico demo", // as in TestDemoTour
		"go build -o bin/ ./cmd/portico",
		"bin/portico serve --tracker https://tracker.example/ --redis redis://127.0.0.1:6379/0",
		"bin/portico check --config portico.yaml",
		"bin/portico serve --config portico.yaml",
		"make test",
		"make lint",
		"make help",
	}
	for _, command := range readmeCommands(t) {
		if !slices.Contains(known, command) && !strings.HasPrefix(command, "curl") {
			t.Errorf("no test runs the README's command %q", command)
		}
	}
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
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"test:", "lint:", "help:"} {
		if !strings.Contains(string(makefile), "\n"+target) {
			t.Errorf("the Makefile has no target %s", target)
		}
	}
}
