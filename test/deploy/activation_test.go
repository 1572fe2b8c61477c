// Package deploy checks what ships with the program: units, alerts, dashboards, descriptions for machines and the upgrade.
package deploy

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"database/sql"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"go.yaml.in/yaml/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"portico/test/process"
)

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

var must = process.Must

// socket is a listening socket of a host in the hands of a service manager.
func socket(t *testing.T, host string) (file *os.File, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", host+":0")
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

// TestRestartRefusesNoConnection: with inherited sockets each connection that is made during a restart gets its response afterwards.
func TestRestartRefusesNoConnection(t *testing.T) {
	t.Parallel()
	_, base := process.Tracker(t, process.FreeAddress(t))
	client, address := socket(t, "127.0.0.1")
	admin, adminAddress := socket(t, "127.0.0.1")
	// The addresses of the file are taken: to open them would be an error.
	config := process.File(t, "portico.yaml", "listen: "+address+"\nadmin: {listen: "+adminAddress+"}\ntrackers: {main: {url: "+base+"/}}\n")
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

// TestTheUnitStartsAgainUntilItSucceeds: with the limit of systemd, five failures in a row, as while PostgreSQL is not there yet, end the
// service and its socket for good.
func TestTheUnitStartsAgainUntilItSucceeds(t *testing.T) {
	unit := read(t, "../../deploy/systemd/portico.service")
	before, _, _ := strings.Cut(unit, "\n[Service]\n")
	if !strings.Contains(before, "\nStartLimitIntervalSec=0\n") || !strings.Contains(unit, "\nRestart=always\n") {
		t.Error("systemd gives up on Portico")
	}
}

// TestInheritedSocketsAreChecked: a socket without a known name, or one for operators that is open to other machines without
// authentication, ends the program.
func TestInheritedSocketsAreChecked(t *testing.T) {
	t.Parallel()
	openFile, _ := socket(t, "")
	closed, _ := socket(t, "127.0.0.1")
	config := process.File(t, "portico.yaml", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\ntrackers: {main: {url: http://127.0.0.1:1/}}\n")
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

// store is a database of Portico, as docs/how-to/back-up-and-restore.md backs it up.
type store struct {
	// url is the key state, driver and dsn lead to the same database.
	url, driver, dsn string
	// backup copies the database while Portico runs, restore puts the copy back while it does not.
	backup, restore func(t *testing.T)
}

func sqliteStore(t *testing.T) store {
	file := filepath.Join(t.TempDir(), "portico.db")
	copied := filepath.Join(t.TempDir(), "backup.db")
	return store{
		url: "sqlite:" + file, driver: "sqlite", dsn: "file:" + file + "?_pragma=busy_timeout(10000)",
		backup: func(t *testing.T) { execute(t, "sqlite", "file:"+file, "VACUUM INTO '"+copied+"'") },
		restore: func(t *testing.T) {
			for _, old := range []string{file, file + "-wal", file + "-shm"} {
				if err := os.Remove(old); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			must(t, os.WriteFile(file, []byte(read(t, copied)), 0o600))
		},
	}
}

func postgresStore(t *testing.T) store {
	dsn := process.Postgres(t)
	server, err := url.Parse(dsn)
	must(t, err)
	name := strings.TrimPrefix(server.Path, "/")
	server.Path = "/template1"
	dump := filepath.Join(t.TempDir(), "portico.sql")
	run := func(t *testing.T, name string, args ...string) {
		t.Helper()
		if output, err := exec.CommandContext(t.Context(), process.PostgresProgram(t, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, output)
		}
	}
	return store{
		url: dsn, driver: "pgx", dsn: dsn,
		backup: func(t *testing.T) {
			run(t, "pg_dump", "--file", dump, dsn)
			execute(t, "pgx", dsn, "CREATE TABLE portico_later (signature TEXT REFERENCES portico_findings (signature))") // by a newer version
		},
		restore: func(t *testing.T) {
			run(t, "dropdb", "--maintenance-db", server.String(), name)
			run(t, "createdb", "--maintenance-db", server.String(), name)
			run(t, "psql", "--set", "ON_ERROR_STOP=1", "--single-transaction", "--file", dump, dsn)
		},
	}
}

func execute(t *testing.T, driver, dsn, statement string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	must(t, err)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// serveTwo runs Portico before two trackers with a store.
func serveTwo(t *testing.T, state, one, other string) *process.Facade {
	t.Helper()
	facade := process.Serve(t, nil, "serve", "--config", twoTrackers(t, state, one, other))
	get(t, facade.Operators+"/readyz")
	return facade
}

// twoTrackers writes a configuration without a cache, which several processes would have to share.
func twoTrackers(t *testing.T, state, one, other string) string {
	t.Helper()
	return process.File(t, "portico.yaml", "state: "+state+"\nprimary: main\ncandidate: next\ncache: {scope: off}\n"+
		"trackers: {main: {url: "+one+"/}, next: {url: "+other+"/}}\n")
}

func trackers(t *testing.T) (one, other string) {
	t.Helper()
	_, one = process.Tracker(t, process.FreeAddress(t))
	_, other = process.Tracker(t, process.FreeAddress(t))
	return one, other
}

// migrate runs a command that changes or shows the rules.
func migrate(t *testing.T, facade *process.Facade, args ...string) string {
	t.Helper()
	args = append([]string{"migrate", args[0], "--admin", facade.Operators}, args[1:]...)
	output, err := exec.CommandContext(t.Context(), process.Portico(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("portico %v: %v\n%s", args, err, output)
	}
	return string(output)
}

// TestBackupAndRestore: what operators decided before a backup holds after it was restored, and what they decided later does not.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	one, other := trackers(t)
	for name, s := range map[string]store{"SQLite": sqliteStore(t), "PostgreSQL": postgresStore(t)} {
		t.Run(name, func(t *testing.T) {
			facade := serveTwo(t, s.url, one, other)
			migrate(t, facade, "kill", "--actor", "an operator", "--reason", "before the backup")
			s.backup(t)
			migrate(t, facade, "revive", "--actor", "an operator", "--reason", "after the backup")
			facade.Stop(t)
			s.restore(t)
			facade = serveTwo(t, s.url, one, other)
			history := migrate(t, facade, "history")
			if !strings.Contains(history, "before the backup") || strings.Contains(history, "after the backup") {
				t.Errorf("the history is\n%s", history)
			}
			if metrics := get(t, facade.Operators+"/metrics"); !strings.Contains(metrics, "\nportico_switchover_killed 1\n") {
				t.Error("the kill switch is not on again")
			}
			migrate(t, facade, "revive", "--actor", "an operator", "--reason", "the store can be written")
		})
	}
}

// TestNewerStore: a process that runs goes on when a later version has brought the store to a newer form. One that starts is refused,
// and says why.
func TestNewerStore(t *testing.T) {
	t.Parallel()
	one, other := trackers(t)
	for name, s := range map[string]store{"SQLite": sqliteStore(t), "PostgreSQL": postgresStore(t)} {
		t.Run(name, func(t *testing.T) {
			facade := serveTwo(t, s.url, one, other)
			execute(t, s.driver, s.dsn, "INSERT INTO portico_schema (version) VALUES (99)")
			migrate(t, facade, "kill", "--actor", "an operator", "--reason", "beside a later version")
			if answer, err := (&http.Client{Timeout: time.Minute}).Get(facade.Clients + "/rest/version"); err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("the process that runs gives %v, %v", answer, err)
			} else {
				_ = answer.Body.Close()
			}
			older := exec.CommandContext(t.Context(), process.Portico(t), "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
				"--config", twoTrackers(t, s.url, one, other))
			output, err := older.CombinedOutput()
			if err == nil || older.ProcessState.ExitCode() != 1 || !strings.Contains(string(output), "its version is 99") {
				t.Errorf("exit %v: %s", err, output)
			}
		})
	}
}

// TestRelease checks a release that .ci/release-check has built.
func TestRelease(t *testing.T) {
	folder := os.Getenv("PORTICO_RELEASE")
	if folder == "" {
		t.Skip("there is no release to check: make release-check builds one")
	}
	archives, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(archives) != 5 {
		t.Errorf("there are the archives %v: %v", archives, err)
	}
	for _, archive := range archives {
		program := filepath.Join(t.TempDir(), "portico")
		names := unpack(t, archive, program)
		for _, want := range []string{"LICENSE", "README.md", "config.example.yaml", "completion/portico.bash"} {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "/"+want) }) {
				t.Errorf("%s has no %s", archive, want)
			}
		}
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		settings := map[string]string{}
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
		platform := settings["GOOS"] + "-" + settings["GOARCH"]
		if settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" || !strings.HasSuffix(archive, platform+".tar.gz") {
			t.Errorf("%s was built with %v", archive, settings)
		}
		if platform == "linux-amd64" {
			checkSBOM(t, folder, info)
		}
	}
}

// unpack writes the program of an archive to a file, and returns the names in the archive.
func unpack(t *testing.T, archive, program string) (names []string) {
	t.Helper()
	file, err := os.Open(archive)
	must(t, err)
	defer file.Close()
	plain, err := gzip.NewReader(file)
	must(t, err)
	for entries := tar.NewReader(plain); ; {
		entry, err := entries.Next()
		if err == io.EOF {
			return names
		}
		must(t, err)
		names = append(names, entry.Name)
		if name := filepath.Base(entry.Name); entry.Typeflag == tar.TypeReg && (name == "portico" || name == "portico.exe") {
			text, err := io.ReadAll(entries)
			must(t, err)
			must(t, os.WriteFile(program, text, 0o700))
		}
	}
}

// checkSBOM: each module in the program is in the list, and no other.
func checkSBOM(t *testing.T, folder string, info *buildinfo.BuildInfo) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.spdx.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("there are the lists %v: %v", files, err)
	}
	var list struct {
		SPDXVersion   string
		Packages      []struct{ SPDXID, Name, VersionInfo string }
		Relationships []struct{ RelatedSPDXElement string }
	}
	must(t, json.Unmarshal([]byte(read(t, files[0])), &list))
	var have, want []string
	for _, p := range list.Packages {
		have = append(have, p.Name+" "+p.VersionInfo)
	}
	for _, module := range info.Deps {
		want = append(want, module.Path+" "+module.Version)
	}
	if list.SPDXVersion != "SPDX-2.3" || len(have) < 2 || !slices.Equal(have[2:], want) || len(list.Relationships) != len(have) {
		t.Errorf("the list has %q, the program %q", have, want)
	}
}

// TestComposeConfiguration: Portico takes the file and the variables of deploy/compose.yaml, and no image floats.
func TestComposeConfiguration(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Image       string
			Environment map[string]string
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, "../../deploy/compose.yaml")), &compose))
	for name, service := range compose.Services {
		if _, tag, _ := strings.Cut(service.Image, ":"); strings.Count(tag, ".") < 1 || strings.Contains(tag, "latest") {
			t.Errorf("the image of %s is %q, which is no full version", name, service.Image)
		}
	}
	token := process.File(t, "portico.yaml", "sixteen bytes or more")
	command := exec.CommandContext(t.Context(), process.Portico(t), "check", "--config", "../../deploy/compose/portico.yaml")
	for name, value := range compose.Services["portico"].Environment {
		value = strings.ReplaceAll(value, "${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD}", "secret")
		command.Env = append(command.Env, name+"="+strings.ReplaceAll(value, "/run/secrets/admin_token", token))
	}
	if output, err := command.CombinedOutput(); err != nil || len(command.Env) < 4 {
		t.Errorf("%v: %s", err, output)
	}
}
