// Package deploy checks what ships with the program: units, alerts, dashboards, descriptions for machines and the upgrade.
package deploy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portico/test/process"
)

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// socket is a listening socket of 127.0.0.1 in the hands of a service manager.
func socket(t *testing.T) (file *os.File, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	file, err = listener.(*net.TCPListener).File()
	must(t, err)
	address = listener.Addr().String()
	must(t, listener.Close())
	t.Cleanup(func() { _ = file.Close() })
	return file, address
}

// activate starts the program with inherited sockets, as a service manager does.
func activate(t *testing.T, config string, names []string, files ...*os.File) (*exec.Cmd, *process.Output) {
	t.Helper()
	command := exec.CommandContext(context.Background(), "sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, process.Portico(t), "serve", "--config", config)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), fmt.Sprint("LISTEN_FDS=", len(files)), "LISTEN_FDNAMES=" + strings.Join(names, ":")}
	command.ExtraFiles, command.Dir = files, t.TempDir()
	log := &process.Output{}
	command.Stderr = log
	must(t, command.Start())
	return command, log
}

// end stops a program by SIGTERM and returns its exit status.
func end(t *testing.T, command *exec.Cmd) int {
	t.Helper()
	_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	_ = command.Wait()                          // its exit status is returned
	return command.ProcessState.ExitCode()
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "portico.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestRestartRefusesNoConnection: with inherited sockets each connection that is made during a restart gets its response afterwards.
func TestRestartRefusesNoConnection(t *testing.T) {
	t.Parallel()
	_, base := process.Tracker(t, process.FreeAddress(t))
	client, address := socket(t)
	admin, adminAddress := socket(t)
	// The addresses of the file are taken: to open them would be an error.
	config := write(t, "listen: "+address+"\nadmin: {listen: "+adminAddress+"}\ntrackers: {main: {url: "+base+"/}}\n")
	first, log := activate(t, config, []string{"client", "admin"}, client, admin)
	get(t, "http://"+adminAddress+"/readyz")
	const requests = 40
	results := make(chan error, requests)
	ask := func() {
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}).Get("http://" + address + "/rest/version")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				err = fmt.Errorf("status %d", response.StatusCode)
			}
		}
		results <- err
	}
	for range requests / 2 {
		go ask()
	}
	if status := end(t, first); status != 0 {
		t.Errorf("exit %d: %s", status, log)
	}
	for range requests / 2 { // nothing runs now, and the socket takes them
		go ask()
	}
	second, log := activate(t, config, []string{"admin", "client"}, admin, client)
	for range requests {
		if err := <-results; err != nil {
			t.Errorf("a request during the restart: %v\n%s", err, log)
		}
	}
	if status := end(t, second); status != 0 || !strings.Contains(log.String(), address) {
		t.Errorf("exit %d: %s", status, log)
	}
}

// TestAcceptedConnectionIsServedAtTheStop: a client that has connected before the stop, and sends its request at once when the stop has
// begun, gets its response. A busy machine may be too slow for that at times, so that one of several rounds is enough.
func TestAcceptedConnectionIsServedAtTheStop(t *testing.T) {
	t.Parallel()
	_, base := process.Tracker(t, process.FreeAddress(t))
	const rounds = 10
	for range rounds {
		facade := process.Serve(t, nil, "serve", "--tracker", base)
		get(t, facade.Operators+"/readyz")
		conn, err := net.Dial("tcp", strings.TrimPrefix(facade.Clients, "http://"))
		must(t, err)
		get(t, facade.Clients+"/rest/version") // the earlier connection is accepted now
		facade.Signal(t, syscall.SIGTERM)
		process.Eventually(t, "the stop has begun", func() bool { return strings.Contains(facade.Err.String(), `"draining"`) })
		_, _ = io.WriteString(conn, "GET /rest/version HTTP/1.1\r\nHost: a\r\n\r\n") // what comes back tells
		answer, _ := io.ReadAll(conn)
		_ = conn.Close()
		if code := facade.Wait(t, time.Minute); code != 0 {
			t.Errorf("exit %d: %s", code, &facade.Err)
		}
		if strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
			return
		}
	}
	t.Errorf("no request was served in %d rounds", rounds)
}

// TestInheritedSocketsAreChecked: a socket without a known name, or one for operators that is open to other machines without
// authentication, ends the program.
func TestInheritedSocketsAreChecked(t *testing.T) {
	t.Parallel()
	open, err := net.Listen("tcp", ":0")
	must(t, err)
	defer open.Close()
	openFile, err := open.(*net.TCPListener).File()
	must(t, err)
	defer openFile.Close()
	closed, _ := socket(t)
	config := write(t, "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntrackers: {main: {url: http://127.0.0.1:1/}}\n")
	for _, tt := range []struct {
		names []string
		files []*os.File
		says  string
	}{
		{[]string{"portico.socket"}, []*os.File{closed}, `is named \"portico.socket\"`},
		{nil, []*os.File{closed}, "FileDescriptorName"},
		{[]string{"client", "client"}, []*os.File{closed, closed}, "at most one"},
		{[]string{"admin"}, []*os.File{openFile}, "reachable from other hosts"},
		{[]string{"client"}, []*os.File{os.Stderr}, "take over the inherited socket"},
	} {
		command, log := activate(t, config, tt.names, tt.files...)
		ended := make(chan error, 1)
		go func() { ended <- command.Wait() }()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = command.Process.Kill()
			t.Errorf("%v: the program runs", tt.names)
		}
		if !strings.Contains(log.String(), tt.says) {
			t.Errorf("%v: said %s", tt.names, log)
		}
	}
}

// get waits until an address responds with 200, and returns the body.
func get(t *testing.T, address string) string {
	t.Helper()
	body := ""
	client := &http.Client{Timeout: 5 * time.Second}
	process.Eventually(t, address+" responds", func() bool {
		response, err := client.Get(address)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		body = string(text)
		return err == nil && response.StatusCode == http.StatusOK
	})
	return body
}
