package deploy

import (
	"database/sql"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"portico/test/process"
)

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
	url := process.Postgres(t)
	dump := filepath.Join(t.TempDir(), "portico.sql")
	run := func(t *testing.T, name string, args ...string) {
		t.Helper()
		if output, err := exec.CommandContext(t.Context(), client(t, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, output)
		}
	}
	return store{
		url: url, driver: "pgx", dsn: url,
		backup: func(t *testing.T) { run(t, "pg_dump", "--clean", "--if-exists", "--file", dump, url) },
		restore: func(t *testing.T) {
			run(t, "psql", "--set", "ON_ERROR_STOP=1", "--single-transaction", "--file", dump, url)
		},
	}
}

// client finds a program of PostgreSQL, which Debian may keep out of the PATH.
func client(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		t.Fatalf("these tests need %s, in the PATH or below /usr/lib/postgresql", name)
	}
	return slices.Max(found)
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
	return write(t, "state: "+state+"\nprimary: main\ncandidate: next\ncache: {scope: off}\n"+
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
