package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Postgres runs a real PostgreSQL server until the test ends and gives the URL of an empty database. It takes connections of
// this machine only, without a password.
func Postgres(t testing.TB) (dsn string) {
	t.Helper()
	dsn, _ = PostgresToKill(t)
	return dsn
}

// PostgresToKill is Postgres with a function that ends the server at once.
func PostgresToKill(t testing.TB) (dsn string, kill func()) {
	t.Helper()
	server := PostgresServer(t)
	return server.DSN, sync.OnceFunc(server.end)
}

// Database is a PostgreSQL server that a test kills and starts again.
type Database struct {
	// DSN is the URL of an empty database.
	DSN string

	binary, data, host, port string
	account                  *syscall.Credential
	log                      Output
	server                   *exec.Cmd
	stdin                    io.WriteCloser
}

// PostgresServer is Postgres with the server itself.
func PostgresServer(t testing.TB) *Database {
	t.Helper()
	dir, err := os.MkdirTemp("", "portico-postgres-") //nolint:usetesting // another account cannot get into the folders of t
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binaries, address := postgresBinaries(t), FreeAddress(t)
	d := &Database{
		DSN:    "postgres://portico@" + address + "/postgres?sslmode=disable",
		binary: filepath.Join(binaries, "postgres"), data: filepath.Join(dir, "data"), account: postgresAccount(t, dir),
	}
	if d.host, d.port, err = net.SplitHostPort(address); err != nil {
		t.Fatal(err)
	}
	out, err := d.command(filepath.Join(binaries, "initdb"), "--no-sync", "--auth=trust", "--username=portico", "--encoding=UTF8", "--no-locale", "-D", d.data).CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	t.Cleanup(d.end)
	if err := d.Begin(); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *Database) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir, cmd.SysProcAttr = filepath.Dir(d.data), &syscall.SysProcAttr{Credential: d.account}
	return cmd
}

// Begin starts the server after Kill, and waits until it serves.
func (d *Database) Begin() error {
	// The server ends with the standard input of the shell, also when the test is killed.
	const script = `"$@" & server=$!; cat; kill -QUIT $server; wait $server`
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		d.server = d.command("/bin/sh", "-c", script, "sh", d.binary, "-D", d.data, "-p", d.port,
			"-c", "listen_addresses="+d.host, "-c", "unix_socket_directories=", "-c", "fsync=off")
		d.server.Stdout, d.server.Stderr = &d.log, &d.log
		began := len(d.log.String())
		stdin, err := d.server.StdinPipe()
		if err == nil {
			d.stdin, err = stdin, d.server.Start()
		}
		if err != nil {
			return err
		}
		for time.Now().Before(end) {
			said := d.log.String()[began:]
			if strings.Contains(said, "ready to accept connections") {
				return nil
			}
			if strings.Contains(said, "FATAL:  pre-existing") || strings.Contains(said, "FATAL:  lock file") {
				break // backends of the killed server have not ended yet
			}
			time.Sleep(5 * time.Millisecond)
		}
		d.end()
	}
	return fmt.Errorf("the PostgreSQL server does not get ready:\n%s", &d.log)
}

// Kill ends the server by SIGKILL. Its backends end when they see that.
func (d *Database) Kill() error {
	text, err := os.ReadFile(filepath.Join(d.data, "postmaster.pid"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	d.end()
	return err
}

// end ends the server at once.
func (d *Database) end() {
	if d.stdin != nil {
		_ = d.stdin.Close()
		_ = d.server.Wait()
		d.stdin = nil
	}
}

// postgresBinaries finds the folder of the server's programs. Debian does not put it into the PATH.
func postgresBinaries(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Fatal("these tests need a real PostgreSQL server: initdb and postgres, in the PATH or below /usr/lib/postgresql")
	}
	return filepath.Dir(slices.Max(found))
}

// postgresAccount finds an account for the server, which refuses to run as root, and gives it the folder.
func postgresAccount(t testing.TB, dir string) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	t.Fatal("there is neither a user postgres nor nobody to run the PostgreSQL server")
	return nil
}
