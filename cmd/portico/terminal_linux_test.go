package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"portico/test/process"
)

// terminal is a pseudo terminal, and what has been shown on it.
func terminal(t *testing.T) (screen *os.File, shown func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	must(t, err)
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = screen.Close() })
	var out process.Output
	go func() { _, _ = io.Copy(&out, master) }() // it ends with an error when both ends are closed
	return screen, out.String
}

// TestTerminal: on a terminal a verdict has a colour, unless that is not wanted, and what takes longer than two seconds says so.
func TestTerminal(t *testing.T) {
	t.Parallel()
	screen, shown := terminal(t)
	answer := make(chan struct{}, 1)
	operators := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		<-answer
		fmt.Fprint(w, `{"verdict":"PASS"}`)
	})
	verdict := []string{"canary", "verdict", "--admin", operators}
	for environ, want := range map[string]string{"NO_COLOR=": "\x1b[32mPASS\x1b", "NO_COLOR=1": "PASS: 0 compared"} {
		before := len(shown())
		answer <- struct{}{}
		code := run(t.Context(), environment{stdout: screen, stderr: io.Discard, environ: []string{environ}}, verdict)
		process.Eventually(t, "the verdict is shown", func() bool { return strings.HasSuffix(shown()[before:], "(target 0 %)\r\n") })
		if text := shown()[before:]; code != exitOK || !strings.HasPrefix(text, want) {
			t.Errorf("%s: exit %d, %q", environ, code, text)
		}
	}
	before, done := len(shown()), make(chan int)
	go func() { done <- run(t.Context(), environment{stdout: io.Discard, stderr: screen}, verdict) }()
	process.Eventually(t, "it says that it waits", func() bool { return strings.HasPrefix(shown()[before:], clearLine+"waiting for the admin listener") })
	answer <- struct{}{}
	if code := <-done; code != exitOK {
		t.Errorf("exit %d", code)
	}
	process.Eventually(t, "the line is cleared", func() bool { return strings.HasSuffix(shown(), clearLine) })
}
