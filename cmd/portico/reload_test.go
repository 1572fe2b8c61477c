package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"portico/test/process"
)

// startProcess runs the program until the test ends and gives what the pattern
// finds in its output, standard output and error alike.
func startProcess(t *testing.T, pattern string, args ...string) (p *process.Process, found []string) {
	t.Helper()
	expression := regexp.MustCompile(pattern)
	p = process.Launch(t, process.Spec{Program: process.Portico(t), Args: args, Ready: func(p *process.Process) bool {
		found = expression.FindStringSubmatch(p.Out.String() + p.Err.String())
		return found != nil
	}})
	return p, found[1:]
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
func reload(t *testing.T, p *process.Process, operators string) {
	t.Helper()
	started := func() string {
		_, after, _ := strings.Cut(get(t, operators+"/status"), `"started"`)
		return after[:40]
	}
	before := started()
	p.Signal(t, syscall.SIGHUP)
	process.Eventually(t, "the configuration is read again", func() bool { return started() != before })
}

// TestReload changes the configuration of a running Portico under load: no
// request fails, and a configuration with a mistake changes nothing.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "portico.yaml")
	_, tracker := startProcess(t, `listens on (\S+)`, "tracker", "--listen", "127.0.0.1:0", "--seed", "fixture")
	configure := func(responses string) {
		text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntrackers: {main: {url: %q}}\nresponses: %s\n", tracker[0], responses)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("tracker")
	p, at := startProcess(t, `"clients":"([^"]+)"`, "serve", "--config", file)
	shows := func(want string) func() bool {
		return func() bool {
			return strings.Contains(get(t, "http://"+at[0]+"/rest/bug/5/attachment?include_fields=is_patch"), want)
		}
	}
	process.Eventually(t, "the tracker's form is shown", shows(`"is_patch":0`))
	stop := keepAsking(t, "http://"+at[0])
	configure("interface")
	p.Signal(t, syscall.SIGHUP)
	process.Eventually(t, "the other form is shown", shows(`"is_patch":false`))
	configure("nonsense")
	p.Signal(t, syscall.SIGHUP)
	for range 20 {
		if !shows(`"is_patch":false`)() {
			t.Fatal("a configuration with a mistake took effect")
		}
	}
	configure("tracker")
	p.Signal(t, syscall.SIGHUP)
	process.Eventually(t, "the tracker's form is shown again", shows(`"is_patch":0`))
	stop()
}
