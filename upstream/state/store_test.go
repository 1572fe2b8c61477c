package state

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// memory is the address of a database that one Store has.
const memory = "sqlite::memory:"

// onQuick runs a test with a Store of each kind that is new and empty, and has no file. It is noon until the test lets time pass.
func onQuick(t *testing.T, test func(t *testing.T, s *Store, clock *clock)) {
	t.Helper()
	for name, dsn := range map[string]string{"memory": memory, "postgres": newDatabase(t)} {
		t.Run(name, func(t *testing.T) {
			s := open(t, dsn)
			test(t, s, newClock(s))
		})
	}
}

// onShared runs a test with a new, empty database of each kind that several Stores can have.
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
	must(t, err)
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

// RecordFinding records one sighting, of now and of a reply unless it says otherwise. The error is errFull where it is refused.
func (s *Store) RecordFinding(ctx context.Context, f Finding, sample []byte, keep int) error {
	f.Signature, f.Kind, f.Count = name(f.Signature), cmp.Or(f.Kind, "reply"), max(f.Count, 1)
	if f.Last.IsZero() {
		f.Last = s.now()
	}
	if f.First.IsZero() || f.First.After(f.Last) {
		f.First = f.Last
	}
	refused, err := s.RecordFindings(ctx, []*Sighting{{f, sample}}, keep)
	if err == nil && len(refused) > 0 {
		err = errFull
	}
	return err
}

var errFull = errors.New("too many findings are kept")

// Append adds a record to the audit trail by itself.
func (s *Store) Append(ctx context.Context, record Record) error {
	record.At = s.now()
	return s.write(ctx, "appending to the audit trail", func(tx *session) { tx.addRecord(record) })
}

// TestRowsThatEndTooEarlyAreAnError: a query that is canceled while its rows are read must not look complete.
func TestRowsThatEndTooEarlyAreAnError(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
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

// TestOneOfManyWins: of several that claim the same, whatever Store they have, one succeeds.
func TestOneOfManyWins(t *testing.T) {
	for name, claim := range map[string]func(s *Store, round, by int) (won bool, err error){
		"a create": func(s *Store, round, _ int) (bool, error) {
			_, claimed, err := s.BeginCreate(context.Background(), sha256.Sum256([]byte{byte(round)}), someContent)
			return claimed, err
		},
		"an id": func(s *Store, round, by int) (bool, error) {
			err := s.AddIDs(context.Background(), []IDPair{pair(int64(round)+1, "new", int64(100*round+by)+1)})
			if _, late := errors.AsType[*IDConflictError](err); late {
				return false, nil
			}
			return err == nil, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onShared(t, func(t *testing.T, dsn string) {
				stores := []*Store{open(t, dsn), open(t, dsn)}
				for round := range 10 {
					var wins atomic.Int64
					var all sync.WaitGroup
					for i := range 8 {
						all.Go(func() {
							won, err := claim(stores[i%2], round, i)
							if err != nil {
								t.Error(err)
							} else if won {
								wins.Add(1)
							}
						})
					}
					if all.Wait(); wins.Load() != 1 {
						t.Errorf("%d have won", wins.Load())
					}
				}
			})
		})
	}
}

// TestTablesAreBounded: what is added to a full table replaces the oldest row. Creates that run stay.
func TestTablesAreBounded(t *testing.T) {
	onQuick(t, func(t *testing.T, s *Store, _ *clock) {
		bytes := s.dialect.bytes
		for table, c := range map[string]struct {
			full, left int
			fill       string
			add        func() error
		}{
			"portico_revisions": {maxRevisions, maxRevisions, "(version, base, source, content, actor, reason, at) SELECT n, '', '', '', '', '', n", func() error {
				_, err := s.Revise(t.Context(), maxRevisions, Revision{}, "")
				return err
			}},
			"portico_audit": {maxRecords, maxRecords, "(at, actor, action, subject, reason) SELECT n, 'a', 'b', 'c', 'd'", func() error {
				return s.Append(t.Context(), Record{Actor: "ada"})
			}},
			"portico_creates": {maxCreates + 10, maxCreates + 3 + 1, "(fingerprint, content, begun_at, running) " +
				"SELECT CAST('k' || n AS " + bytes + "), '', n + 1777890000000000, CASE WHEN n < 4 THEN 1 ELSE 0 END", func() error {
				_, _, err := s.BeginCreate(t.Context(), someKey, someContent)
				return err
			}},
		} {
			fill(t, s, c.full, "INSERT INTO "+table+" "+c.fill)
			must(t, c.add())
			if got := count(t, s, table); got != c.left {
				t.Errorf("%s has %d rows, want %d", table, got, c.left)
			}
		}
		if got, err := s.Audit(t.Context(), 2); err != nil || len(got) != 2 || got[0].Actor != "ada" || got[1].Actor != "a" {
			t.Errorf("got %+v, want the new record first (%v)", got, err)
		}
	})
}
