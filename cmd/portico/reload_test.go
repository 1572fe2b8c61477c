package main

import (
	"io"
	"net/http"
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
