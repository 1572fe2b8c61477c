package process

import (
	"context"
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
	dir, err := os.MkdirTemp("", "portico-postgres-") //nolint:usetesting // another account cannot get into the folders of t
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	account := postgresAccount(t, dir)
	binaries := postgresBinaries(t)
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(context.Background(), name, args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: account}
		return cmd
	}
	data, address := filepath.Join(dir, "data"), FreeAddress(t)
	out, err := command(filepath.Join(binaries, "initdb"), "--no-sync", "--auth=trust", "--username=portico", "--encoding=UTF8", "--no-locale", "-D", data).CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	// The server ends with the standard input of the shell, also when the test is killed.
	const script = `"$@" & server=$!; cat; kill -QUIT $server; wait $server`
	var log Output
	server := command("/bin/sh", "-c", script, "sh", filepath.Join(binaries, "postgres"), "-D", data, "-p", port,
		"-c", "listen_addresses="+host, "-c", "unix_socket_directories=", "-c", "fsync=off")
	server.Stdout, server.Stderr = &log, &log
	stdin, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = stdin.Close()
		_ = server.Wait()
	})
	t.Cleanup(kill)
	Eventually(t, "the PostgreSQL server is ready", func() bool { return strings.Contains(log.String(), "ready to accept connections") })
	return "postgres://portico@" + address + "/postgres?sslmode=disable", kill
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
