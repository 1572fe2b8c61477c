package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
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
	return server.DSN, sync.OnceFunc(server.End)
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
	d, err := StartDatabase(FreeAddress(t), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Remove)
	return d
}

// StartDatabase runs a PostgreSQL server at an address until Remove is called, for tests that share one. Its only user is portico, who has
// to show the password unless that is empty.
func StartDatabase(address, password string) (*Database, error) {
	binaries, err := postgresBinaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "portico-postgres-")
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "postgres", User: url.User("portico"), Host: address, Path: "/postgres", RawQuery: "sslmode=disable&connect_timeout=30"}
	d := &Database{binary: filepath.Join(binaries, "postgres"), data: filepath.Join(dir, "data")}
	auth := []string{"--auth=trust"}
	if password != "" {
		dsn.User = url.UserPassword("portico", password)
		secret := filepath.Join(dir, "password")
		if err := os.WriteFile(secret, []byte(password), 0o644); err != nil {
			return nil, err
		}
		auth = []string{"--auth=scram-sha-256", "--pwfile=" + secret}
	}
	d.DSN = dsn.String()
	if d.account, err = PostgresAccount(dir); err == nil {
		d.host, d.port, err = net.SplitHostPort(address)
	}
	if err != nil {
		return nil, err
	}
	args := append(auth, "--no-sync", "--username=portico", "--encoding=UTF8", "--no-locale", "-D", d.data)
	if out, err := d.command(filepath.Join(binaries, "initdb"), args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return d, d.Begin()
}

// Remove ends the server and removes its files.
func (d *Database) Remove() {
	d.End()
	_ = os.RemoveAll(filepath.Dir(d.data))
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
			"-c", "listen_addresses="+d.host, "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=200")
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
		d.End()
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
	d.End()
	return err
}

// End ends the server at once. Begin starts it again.
func (d *Database) End() {
	if d.stdin != nil {
		_ = d.stdin.Close()
		_ = d.server.Wait()
		d.stdin = nil
	}
}

// postgresBinaries finds the folder of the server's programs. Debian does not put it into the PATH.
func postgresBinaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("these tests need a real PostgreSQL server: initdb and postgres, in the PATH or below /usr/lib/postgresql")
	}
	return filepath.Dir(slices.Max(found)), nil
}

// PostgresProgram gives the path of a program of PostgreSQL, such as psql.
func PostgresProgram(t testing.TB, name string) string {
	t.Helper()
	binaries, err := postgresBinaries()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(binaries, name)
}

// PostgresAccount finds an account for the server, which refuses to run as root, and gives it the folder.
func PostgresAccount(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
	}
	return nil, errors.New("there is neither a user postgres nor nobody to run the PostgreSQL server")
}
