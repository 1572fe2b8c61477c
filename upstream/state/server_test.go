package state

import (
	"context"
	"database/sql"
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
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// password is that of the server's only user. It is in every address that tests
// use, so an error that shows one shows it.
const password = "s3cr%t/ &word"

// sharedServer starts a PostgreSQL server for all tests of a run.
var sharedServer = sync.OnceValues(startServer)

// databases counts those that were made in it.
var databases atomic.Int64

func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(runJob(job))
	}
	code := m.Run()
	if databases.Load() > 0 {
		if s, err := sharedServer(); err == nil {
			s.stop()
			_ = os.RemoveAll(s.dir)
		}
	}
	os.Exit(code)
}

// server is a real PostgreSQL server, a process of its own.
type server struct {
	dir, binaries, addr string
	account             *syscall.Credential
	cmd                 *exec.Cmd
	stdin               io.Closer
}

// startServer makes a database cluster in a new folder, and starts it.
func startServer() (*server, error) {
	binaries, err := findBinaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "portico-postgres-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, binaries: binaries}
	if err := s.findAccount(); err != nil {
		return nil, err
	}
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(password), 0o644); err != nil {
		return nil, err
	}
	out, err := s.command("initdb", "--no-sync", "--auth=scram-sha-256", "--username=portico", "--pwfile="+secret,
		"--encoding=UTF8", "--no-locale", "-D", filepath.Join(dir, "data")).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if s.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	return s, s.start()
}

// findBinaries looks where Debian puts the server, too: not in the PATH.
func findBinaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", fmt.Errorf("these tests need a real PostgreSQL server: initdb and postgres, in the PATH or below /usr/lib/postgresql")
	}
	return filepath.Dir(slices.Max(found)), nil
}

// findAccount finds somebody who is not root, who may not run the server.
func (s *server) findAccount() error {
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
		s.account = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(s.dir, uid, gid)
	}
	return fmt.Errorf("there is neither a user postgres nor nobody to run the server")
}

func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.binaries, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	return cmd
}

// start starts the server, which ends with its standard input: also when the test
// dies without a word.
func (s *server) start() error {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	const script = `"$@" & server=$!; cat; kill -QUIT $server; wait $server`
	s.cmd = s.command("postgres")
	s.cmd.Args = append([]string{"sh", "-c", script, "sh", s.cmd.Path}, "-D", filepath.Join(s.dir, "data"), "-p", port,
		"-c", "listen_addresses="+host, "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=200")
	s.cmd.Path = "/bin/sh"
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return s.wait()
}

// wait waits until the server answers.
func (s *server) wait() error {
	db, err := sql.Open("pgx", s.dsn("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err = db.Ping(); err == nil {
			return nil
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the PostgreSQL server does not answer: %w\n%s", err, log)
		}
	}
}

func (s *server) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}

// dsn is the address of a database of the server.
func (s *server) dsn(database string) string {
	address := url.URL{Scheme: "postgres", User: url.UserPassword("portico", password), Host: s.addr, Path: "/" + database, RawQuery: "sslmode=disable"}
	return address.String()
}

// newDatabase makes an empty database and gives its address.
func newDatabase(t testing.TB) string {
	t.Helper()
	s, err := sharedServer()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", s.dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if _, err := db.ExecContext(context.Background(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return s.dsn(name)
}

// freeAddr gives an address that nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
