package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/test/process"
)

// turningAway is a program that has been told to end, and waits for load balancers.
func turningAway(t *testing.T, delay string) *process.Process {
	t.Helper()
	file := writeFile(t, "portico.yaml", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"+
		"trackers: {main: {url: http://127.0.0.1:1/}}\ntimeouts: {shutdown_delay: "+delay+"}\n")
	says := func(what string) func(*process.Process) bool {
		return func(p *process.Process) bool { return strings.Contains(p.Err.String(), what) }
	}
	p := process.Launch(t, process.Spec{
		Program: "/bin/sh", Args: []string{"-c", `trap "" INT; exec "$0" serve --config "$1"`, process.Portico(t), file},
		Fails: true, Ready: says(`"listening"`),
	})
	p.Signal(t, syscall.SIGTERM)
	process.Eventually(t, "it waits for load balancers", func() bool { return says(`"waiting for load balancers"`)(p) })
	return p
}

// While the program turns clients away, a SIGHUP that comes late changes nothing, least of all ends it at once.
func TestHangupWhileTurningAway(t *testing.T) {
	t.Parallel()
	p := turningAway(t, "2s")
	p.Signal(t, syscall.SIGHUP)
	if code := p.Wait(t, time.Minute); code != exitOK || !strings.Contains(p.Err.String(), `"stopped"`) {
		t.Errorf("ended with %d\n%s", code, &p.Err)
	}
}

// A second signal ends the program at once, an interrupt too where a shell has it ignored, as for what it runs in the background.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p, told := turningAway(t, "60s"), time.Now()
	p.Signal(t, os.Interrupt)
	if code := p.Wait(t, time.Minute); code != exitFailed || time.Since(told) > 30*time.Second {
		t.Errorf("ended after %s with %d", time.Since(told), code)
	}
}

// TestNothingIsBuiltBeforeTheSocketsAreOpen: a second process in the place of one that runs stores no rules in its state, and leaves no
// empty recording, which would be in the way of the next try.
func TestNothingIsBuiltBeforeTheSocketsAreOpen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	store, recording := filepath.Join(t.TempDir(), "state.db"), filepath.Join(t.TempDir(), "a.jsonl")
	file := writeFile(t, "c.yaml", "listen: "+taken.Addr().String()+"\nadmin: {listen: 127.0.0.1:0}\nstate: sqlite:"+store+"\n"+withTwo)
	for made, args := range map[string][]string{store: {"serve"}, recording: {"record", "--out", recording}} {
		code, stdout, stderr := portico(t, nil, append(args, "--config", file)...)
		if args[0] == "serve" && !strings.HasPrefix(stderr, `{"time":`) {
			t.Errorf("programs that read the log get %s", stderr)
		}
		if _, err := os.Stat(made); code != exitFailed || stdout != "" || !strings.Contains(stderr, "address already in use; choose another address") || !os.IsNotExist(err) {
			t.Errorf("%s: exit %d, %s: %v, said %s%s", args, code, made, err, stdout, stderr)
		}
	}
}
