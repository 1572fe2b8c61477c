package state

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// memory is the address of a database that one Store has.
const memory = "sqlite::memory:"

// onQuick runs a test with a new, empty database of each kind, without a file.
func onQuick(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, memory) })
	t.Run("postgres", func(t *testing.T) { test(t, newDatabase(t)) })
}

// onShared does so with those that several Stores can have.
func onShared(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("file", func(t *testing.T) { test(t, newFile(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, newDatabase(t)) })
}

func newFile(t testing.TB) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "odd name?mode=ro#%41.db")
}

// open opens a Store until the test is over.
func open(t testing.TB, dsn string) *Store {
	t.Helper()
	s, err := Open(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is a time that passes when a test says so. Leases go by that of the database, so it makes them older.
type clock struct {
	at    atomic.Int64
	store *Store
}

// noon is where clocks begin.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func newClock(stores ...*Store) *clock {
	c := &clock{store: stores[0]}
	c.at.Store(noon.UnixMicro())
	for _, s := range stores {
		s.now = c.now
	}
	return c
}

func (c *clock) now() time.Time { return time.UnixMicro(c.at.Load()).UTC() }

func (c *clock) pass(some time.Duration) {
	c.at.Add(some.Microseconds())
	err := c.store.write(context.Background(), "making leases older", func(tx *session) {
		tx.exec("UPDATE portico_leases SET until_at = until_at - ?", some)
	})
	if err != nil {
		panic(err)
	}
}

// run runs one statement.
func run(t testing.TB, s *Store, query string, args ...any) {
	t.Helper()
	must(t, s.write(t.Context(), "running a statement", func(tx *session) { tx.exec(query, args...) }))
}

// fill makes so many rows with a statement that has the number as n.
func fill(t testing.TB, s *Store, rows int, into string) {
	t.Helper()
	run(t, s, "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "+into+" FROM numbers", rows)
}

// count gives the number of rows of a table.
func count(t testing.TB, s *Store, table string) int {
	t.Helper()
	var n int
	must(t, s.reader.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	return n
}

// Append adds a record to the audit trail by itself.
func (s *Store) Append(ctx context.Context, record Record) error {
	record.At = s.now()
	return s.write(ctx, "appending to the audit trail", func(tx *session) { tx.append(record) })
}

// TestRowsThatEndTooEarlyAreAnError: a query that is canceled while its rows are read must not look complete.
func TestRowsThatEndTooEarlyAreAnError(t *testing.T) {
	onQuick(t, func(t *testing.T, dsn string) {
		s := open(t, dsn)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		in := s.session(ctx)
		each(in, func(int64) error {
			cancel()
			return nil
		}, "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 50000000) SELECT n FROM numbers")
		if in.err == nil {
			t.Error("no error")
		}
	})
}
