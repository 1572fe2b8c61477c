package state

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestInspectChangesNothing: it neither makes a database nor brings one up to date.
func TestInspectChangesNothing(t *testing.T) {
	path := t.TempDir() + "/portico.db"
	if found, err := Inspect(t.Context(), "sqlite:"+path); err != nil || found.Version != 0 || found.Newest != versions(t) {
		t.Errorf("without a file: %+v, %v", found, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a file now")
	}
	if _, err := Inspect(t.Context(), "sqlite:/absent/portico.db"); err == nil || !strings.Contains(err.Error(), "the folder /absent is not there") {
		t.Errorf("without a folder: %v", err)
	}
	if _, err := Inspect(t.Context(), "sqlite:/proc/self/portico.db"); err == nil || !strings.Contains(err.Error(), "opening the database: ") {
		t.Errorf("in a folder where no file can be made: %v", err)
	}
	t.Chdir("/proc/self")
	if _, err := Inspect(t.Context(), "sqlite::memory:"); err != nil {
		t.Errorf("in memory, which needs no file: %v", err)
	}
	onShared(t, func(t *testing.T, dsn string) {
		if strings.HasPrefix(dsn, "postgres:") {
			for _, setting := range []string{"&search_path=absent", "&default_transaction_read_only=on"} {
				if _, err := Inspect(t.Context(), dsn+setting); err == nil || !strings.Contains(err.Error(), "may not create tables") {
					t.Errorf("%s: %v", setting, err)
				}
			}
		}
		s, newest := open(t, dsn), versions(t)
		if found, err := Inspect(t.Context(), dsn); err != nil || found != (Found{Version: newest, Newest: newest}) {
			t.Errorf("a new one: %+v, %v", found, err)
		}
		run(t, s, "DELETE FROM portico_schema WHERE version = ?", newest)
		for range 2 {
			if found, err := Inspect(t.Context(), dsn); err != nil || found.Version != newest-1 {
				t.Errorf("an older one: %+v, %v", found, err)
			}
		}
		run(t, s, "INSERT INTO portico_schema (version) VALUES (?)", 99)
		_, looked := Inspect(t.Context(), dsn)
		_, opened := Open(t.Context(), dsn)
		if !errors.Is(looked, ErrNewer) || !errors.Is(opened, ErrNewer) || !strings.Contains(opened.Error(), "99") {
			t.Errorf("a newer one: %v, and when it is opened: %v", looked, opened)
		}
	})
}

// TestInspectWaitsForOthers reads while another process has the file for itself, as one does that is just starting or ending.
func TestInspectWaitsForOthers(t *testing.T) {
	path := t.TempDir() + "/portico.db"
	must(t, open(t, "sqlite:"+path).Close())
	other, err := sql.Open("sqlite", "file:"+path+"?_pragma=locking_mode(EXCLUSIVE)")
	must(t, err)
	_, err = other.Exec("CREATE TABLE others (n INTEGER)")
	must(t, err)
	ended := make(chan error, 1)
	time.AfterFunc(200*time.Millisecond, func() { ended <- other.Close() })
	if found, err := Inspect(t.Context(), "sqlite:"+path); err != nil || found.Version != versions(t) {
		t.Errorf("got %+v, %v", found, err)
	}
	must(t, <-ended)
}
