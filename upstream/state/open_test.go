package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	processes "portico/test/process"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "text"), []byte(strings.Repeat("no database ", 100)), 0o600))
	for _, tt := range []struct{ dsn, says string }{
		{"", "neither"},
		{"portico.db", "neither"},
		{"mysql://root@127.0.0.1/x", "neither"},
		{"postgres:host=127.0.0.1", "neither"},
		{"sqlite:", "neither"},
		{"sqlite://portico.db", "neither"},
		{"sqlite:" + filepath.Join(dir, "absent", "portico.db"), "the folder " + filepath.Join(dir, "absent") + " is not there"},
		{"sqlite:" + filepath.Join(dir, "text", "portico.db"), "not a directory"},
		{"sqlite:" + dir, "is a folder"},
		{"sqlite:" + filepath.Join(dir, "text"), "not a database"},
	} {
		s, err := Open(t.Context(), tt.dsn)
		if err == nil {
			must(t, s.Close())
			t.Errorf("%q was opened", tt.dsn)
		} else if !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(err.Error(), "state: opening the ") {
			t.Errorf("%q: %v, want something with %q", tt.dsn, err, tt.says)
		}
	}
}

func TestPasswordIsInNoError(t *testing.T) {
	free := processes.FreeAddress(t)
	good, err := url.Parse(newDatabase(t))
	must(t, err)
	with := func(change func(*url.URL)) string {
		address := *good
		change(&address)
		return address.String()
	}
	escaped := url.UserPassword("", password).String()[1:]
	for name, dsn := range map[string]string{
		"nobody listens":  with(func(u *url.URL) { u.Host = free }),
		"no such user":    with(func(u *url.URL) { u.User = url.UserPassword("other", password) }),
		"no database":     with(func(u *url.URL) { u.Path = "/absent" }),
		"bad option":      with(func(u *url.URL) { u.RawQuery = "sslmode=" + url.QueryEscape(password) }),
		"bad port":        "postgres://portico:" + escaped + "@127.0.0.1:x" + escaped + "/a",
		"not escaped":     "postgres://portico:" + password + "@127.0.0.1/a",
		"looks like port": "postgres://portico:" + strings.TrimPrefix(password, "s3") + "/@127.0.0.1:1/a",
		"not a number":    with(func(u *url.URL) { u.RawQuery = "connect_timeout=" + url.QueryEscape(password) }),
		"in the query":    "postgres://127.0.0.1:1/a?connect_timeout=x&password=" + url.QueryEscape(password),
		"of a key":        "postgres://127.0.0.1:1/a?target_session_attrs=" + url.QueryEscape(password) + "&sslpassword=" + url.QueryEscape(password),
		"no URL":          "postgres:host=127.0.0.1 password='" + password + "'",
	} {
		_, err := Open(t.Context(), dsn)
		if err == nil {
			t.Fatalf("%s: it was opened", name)
		}
		for cause := err; cause != nil; cause = errors.Unwrap(cause) {
			for _, text := range []string{cause.Error(), fmt.Sprintf("%+v", cause), fmt.Sprintf("%#v", cause)} {
				if strings.Contains(text, "cr%t") || strings.Contains(text, "cr%25t") || strings.Contains(text, "&word") {
					t.Errorf("%s: the error shows the password: %s", name, text)
				}
			}
		}
		t.Log(err)
	}
}

func TestFileIsForItsOwnerOnly(t *testing.T) {
	dsn := newFile(t)
	s := open(t, dsn)
	must(t, s.Append(t.Context(), Record{Actor: "somebody"}))
	files, err := os.ReadDir(filepath.Dir(strings.TrimPrefix(dsn, "sqlite:")))
	must(t, err)
	if len(files) != 3 {
		t.Errorf("there are %d files, want the database, its journal and its index", len(files))
	}
	for _, file := range files {
		info, err := file.Info()
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", file.Name(), info.Mode())
		}
	}
}

// TestNothingIsReadFromARemovedFile: what it says is not what the next process finds.
func TestNothingIsReadFromARemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "portico.db")
	s, err := Open(t.Context(), "sqlite:"+path)
	must(t, err)
	defer s.Close()
	_, err = s.Audit(t.Context(), 1)
	must(t, err)
	must(t, os.Rename(path, path+".removed"))
	if _, err = s.Audit(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "removed or replaced") {
		t.Errorf("a removed database is read, with the error %v", err)
	}
	must(t, os.Rename(path+".removed", path))
	_, err = s.Audit(t.Context(), 1)
	must(t, err)
}

func TestSQLiteIsSetUp(t *testing.T) {
	s := open(t, newFile(t))
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "100"} {
		var got string
		must(t, s.writer.QueryRow("PRAGMA "+pragma).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	if most := s.writer.Stats().MaxOpenConnections; most != 1 {
		t.Errorf("up to %d connections write", most)
	}
}

func TestPostgresIsSetUp(t *testing.T) {
	dsn := newDatabase(t)
	for address, want := range map[string]string{dsn: "portico", dsn + "&application_name=mine": "mine"} {
		var got string
		must(t, open(t, address).reader.QueryRow("SHOW application_name").Scan(&got))
		if got != want {
			t.Errorf("the server knows it as %s, want %s", got, want)
		}
	}
	s := open(t, dsn)
	var all []*sql.Conn
	for range 6 {
		one, err := s.writer.Conn(t.Context())
		must(t, err)
		all = append(all, one)
	}
	for _, one := range all {
		must(t, one.Close())
	}
	if stats := s.writer.Stats(); stats.MaxOpenConnections != 8 || stats.Idle > 4 {
		t.Errorf("connections: %+v", stats)
	}
}

// TestOpenWaitsForOthers has somebody else write to a file that has not yet the
// journal that Open wants. SQLite does not wait then.
func TestOpenWaitsForOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "portico.db")
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	must(t, err)
	defer other.Close()
	_, err = other.Exec("CREATE TABLE others (n INTEGER)")
	must(t, err)
	tx, err := other.Begin()
	must(t, err)
	ended := make(chan error, 1)
	time.AfterFunc(200*time.Millisecond, func() { ended <- tx.Commit() })
	s := open(t, "sqlite:"+path)
	must(t, <-ended)
	if got, want := count(t, s, "portico_schema"), versions(t); got != want {
		t.Errorf("the form was made in %d steps, want %d", got, want)
	}
}

// versions is how many versions the form of the database has had.
func versions(t *testing.T) int {
	t.Helper()
	files, err := fs.Glob(migrations, "migrations/*.sql")
	must(t, err)
	return len(files)
}

// until gives the first so many migrations.
func until(t *testing.T, version int) fstest.MapFS {
	t.Helper()
	files, err := fs.Glob(migrations, "migrations/*.sql")
	must(t, err)
	folder := fstest.MapFS{}
	for _, file := range files[:version] {
		text, err := fs.ReadFile(migrations, file)
		must(t, err)
		folder[file] = &fstest.MapFile{Data: text}
	}
	return folder
}

func TestMigrationIsDoneOrNot(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		must(t, s.Append(t.Context(), Record{Actor: "before"}))
		folder, present := until(t, versions(t)), versions(t)
		last := fmt.Sprintf("migrations/%04d.sql", present+2)
		folder[fmt.Sprintf("migrations/%04d.sql", present+1)] = &fstest.MapFile{Data: []byte("CREATE TABLE second (n {integer}); INSERT INTO second VALUES (2);")}
		folder[last] = &fstest.MapFile{Data: []byte("CREATE TABLE third (n {integer}); INSERT INTO absent VALUES (3);")}
		if err := s.migrate(t.Context(), folder); err == nil || !strings.Contains(err.Error(), fmt.Sprint("version ", present+2)) {
			t.Fatalf("got %v, want that the last version fails", err)
		}
		if _, err := s.writer.Exec("SELECT * FROM second"); err == nil {
			t.Error("one step of two is there although the other failed")
		}
		delete(folder, last)
		must(t, s.migrate(t.Context(), folder))
		must(t, s.migrate(t.Context(), folder))
		if got := count(t, s, "second"); got != 1 {
			t.Errorf("the second step was done %d times", got)
		}
		if records, err := s.Audit(t.Context(), 9); err != nil || len(records) != 1 {
			t.Errorf("got %v, %v, want what was there before", records, err)
		}
	})
}

func TestAllIsThereAfterOpeningAgain(t *testing.T) {
	onShared(t, func(t *testing.T, dsn string) {
		first, err := Open(t.Context(), dsn)
		must(t, err)
		must(t, first.RecordFinding(t.Context(), Finding{Signature: "a"}, []byte("{}"), 1))
		secret, err := first.Secret(t.Context(), "test")
		must(t, err)
		must(t, first.Close())
		if path, local := strings.CutPrefix(dsn, "sqlite:"); local {
			if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a connection is still open (%v)", err)
			}
		}
		second := open(t, dsn)
		if f, samples, err := second.Finding(t.Context(), "a"); err != nil || f.Count != 1 || len(samples) != 1 {
			t.Errorf("got %v, %v, %v", f, samples, err)
		}
		if again, err := second.Secret(t.Context(), "test"); err != nil || again != secret {
			t.Errorf("the secret is another one: %v", err)
		}
		if other, err := second.Secret(t.Context(), "other"); err != nil || other == secret {
			t.Errorf("the other secret is the same: %v", err)
		}
	})
}

// TestMemoryOutlivesWhoeverGivesUp gives up a statement that takes far longer than its caller waits. It has an end, since
// SQLite forgets the interruption of a statement that is only just beginning.
func TestMemoryOutlivesWhoeverGivesUp(t *testing.T) {
	s := open(t, memory)
	must(t, s.Append(t.Context(), Record{Actor: "somebody"}))
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		err := s.transact(ctx, func(tx *session) {
			tx.exec("WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300000) SELECT count(*) FROM n")
		})
		cancel()
		if err == nil {
			t.Fatal("a statement that was given up has ended well")
		}
	}
	if records, err := s.Audit(t.Context(), 9); err != nil || len(records) != 1 {
		t.Errorf("got %v, %v, want one record", records, err)
	}
}
