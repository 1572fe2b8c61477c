package main

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStopWhileReloading: a database that does not answer holds up no clients that have to be sent elsewhere.
func TestStopWhileReloading(t *testing.T) {
	database, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	const one = "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nprimary: main\ntrackers: {main: {url: http://127.0.0.1:1/}"
	file := writeFile(t, "portico.yaml", one+"}\n")
	var told time.Time
	err = served(t, file, func(line string, program *os.Process) {
		if !strings.Contains(line, `"listening"`) {
			return
		}
		two := one + ", new: {url: http://127.0.0.1:2/}}\ncandidate: new\nstate: postgres://" + database.Addr().String() + "/portico?sslmode=disable\n"
		if err := os.WriteFile(file, []byte(two), 0o600); err != nil {
			t.Error(err)
		}
		if err := program.Signal(syscall.SIGHUP); err != nil {
			t.Error(err)
		}
		if _, err := database.Accept(); err != nil { // and there it stays
			t.Error(err)
		}
		told = time.Now()
		if err := program.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	if err != nil || time.Since(told) > 3*time.Second {
		t.Errorf("it ended %s after it was told, with %v", time.Since(told), err)
	}
}
