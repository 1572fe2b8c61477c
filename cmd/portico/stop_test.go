package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// served runs the program on a configuration to its end, and shows each line of its log to somebody who may signal it.
func served(t *testing.T, file string, see func(line string, program *os.Process)) error {
	t.Helper()
	command := exec.Command(buildPortico(t), "serve", "--config", file)
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		see(lines.Text(), command.Process)
	}
	return command.Wait()
}

// While the program turns clients away, a SIGHUP that comes late changes nothing, least of all ends it at once.
func TestHangupWhileTurningAway(t *testing.T) {
	file := writeFile(t, "portico.yaml", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"+
		"trackers: {main: {url: http://127.0.0.1:1/}}\ntimeouts: {shutdown_delay: 2s}\n")
	hung := false
	err := served(t, file, func(line string, program *os.Process) {
		if strings.Contains(line, `"listening"`) {
			if err := program.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
		if strings.Contains(line, `"waiting for load balancers"`) {
			hung = true
			if err := program.Signal(syscall.SIGHUP); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || !hung {
		t.Errorf("turned away: %v, ended with %v", hung, err)
	}
}

// A second signal ends the program at once, an interrupt too where a shell has it ignored, as for what it runs in the background.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	file := writeFile(t, "portico.yaml", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"+
		"trackers: {main: {url: http://127.0.0.1:1/}}\ntimeouts: {shutdown_delay: 20s}\n")
	command := exec.Command("sh", "-c", `trap "" INT; exec "$0" serve --config "$1"`, buildPortico(t), file)
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines, told := bufio.NewScanner(output), time.Time{}
	for lines.Scan() {
		switch text := lines.Text(); {
		case strings.Contains(text, `"listening"`):
			err = command.Process.Signal(syscall.SIGTERM)
		case strings.Contains(text, `"waiting for load balancers"`):
			told = time.Now()
			err = command.Process.Signal(os.Interrupt)
		}
		if err != nil {
			t.Error(err)
		}
	}
	_ = command.Wait() // its exit code is looked at
	if took := time.Since(told); command.ProcessState.ExitCode() != exitFailed || took > 10*time.Second {
		t.Errorf("ended after %s with %s", took, command.ProcessState)
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
