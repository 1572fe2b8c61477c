package main

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
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
		if strings.Contains(line, `"turning away"`) {
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

// A connection on which nobody has asked anything is nothing to wait for.
func TestSilentConnectionsAreClosed(t *testing.T) {
	var log bytes.Buffer
	l, err := listen("clients", "127.0.0.1:0", http.NotFoundHandler(), Default(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.run() }()
	client, err := net.Dial("tcp", l.address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, text := send(t, http.MethodGet, "http://"+l.address(), ""); text == "" { // connections are accepted in their order
		t.Fatal("no answer")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than the five seconds of Shutdown
	defer cancel()
	if err := l.close(ctx); err != nil || log.Len() != 0 {
		t.Errorf("%v %s", err, &log)
	}
	if err := <-ended; err != nil {
		t.Error(err)
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
		case strings.Contains(text, `"turning away"`):
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
