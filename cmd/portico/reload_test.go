package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startProcess runs the program until the test ends and gives what the pattern
// finds in its output, standard output and error alike.
func startProcess(t *testing.T, program, pattern string, args ...string) (process *os.Process, found []string) {
	t.Helper()
	command := exec.Command(program, args...)
	output, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt) // it may have ended already, which Wait tells
		if err := command.Wait(); err != nil {
			t.Errorf("portico %s: %v", args[0], err)
		}
		_ = writer.Close()
	})
	lines, seen := bufio.NewScanner(output), ""
	for found == nil && lines.Scan() {
		seen += lines.Text() + "\n"
		found = regexp.MustCompile(pattern).FindStringSubmatch(lines.Text())
	}
	if found == nil {
		t.Fatalf("portico %s says only\n%s", args[0], seen)
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	return command.Process, found[1:]
}

func get(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("GET %s gives %d and %q (%v)", address, response.StatusCode, text, err)
	}
	return string(text)
}

// reload lets a process read its configuration again, and waits until another runtime is the current one.
func reload(t *testing.T, process *os.Process, operators string) {
	t.Helper()
	started := func() string {
		_, after, _ := strings.Cut(get(t, operators+"/status"), `"started"`)
		return after[:40]
	}
	before := started()
	if err := process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the configuration is read again", func() bool { return started() != before })
}

// TestReload changes the configuration of a running Portico under load: no
// request fails, and a configuration with a mistake changes nothing.
func TestReload(t *testing.T) {
	program, file := buildPortico(t), filepath.Join(t.TempDir(), "portico.yaml")
	_, tracker := startProcess(t, program, `listens on (\S+)`, "tracker", "--listen", "127.0.0.1:0", "--seed", "fixture")
	configure := func(responses string) {
		text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntrackers: {main: {url: %q}}\nresponses: %s\n", tracker[0], responses)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("tracker")
	process, at := startProcess(t, program, `"clients":"([^"]+)"`, "serve", "--config", file)
	address := "http://" + at[0] + "/rest/bug/5/attachment?include_fields=is_patch"
	showsIn := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !strings.Contains(get(t, address), want); {
			if time.Now().After(deadline) {
				t.Fatalf("the answer never shows %s", want)
			}
		}
	}
	showsIn(`"is_patch":0`)
	var load sync.WaitGroup
	ended := make(chan struct{})
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					get(t, address)
				}
			}
		})
	}
	hangUp := func() {
		t.Helper()
		if err := process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	configure("interface")
	hangUp()
	showsIn(`"is_patch":false`)
	configure("nonsense")
	hangUp()
	for range 20 {
		if text := get(t, address); !strings.Contains(text, `"is_patch":false`) {
			t.Fatalf("a configuration with a mistake took effect: %s", text)
		}
	}
	configure("tracker")
	hangUp()
	showsIn(`"is_patch":0`)
	close(ended)
	load.Wait()
}
