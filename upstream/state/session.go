package state

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// lockTimeout bounds how long a change waits for others in SQLite, whatever the
// context says.
const lockTimeout = 10 * time.Second

// querier is what a transaction and a pool have in common.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// session runs statements in a dialect.
type session struct {
	*dialect
	querier
}

func (s session) exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	result, err := s.ExecContext(ctx, s.statement(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s session) row(ctx context.Context, query string, args ...any) *sql.Row {
	return s.QueryRowContext(ctx, s.statement(query), args...)
}

// each calls visit with every row of a query. columns returns where the columns of a row go.
func each[T any](ctx context.Context, s session, columns func(*T) []any, visit func(T) error, query string, args ...any) error {
	rows, err := s.QueryContext(ctx, s.statement(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var one T
		if err := rows.Scan(columns(&one)...); err != nil {
			return err
		}
		if err := visit(one); err != nil {
			return err
		}
	}
	return rows.Err()
}

// list returns all rows of a query.
func list[T any](ctx context.Context, s session, columns func(*T) []any, query string, args ...any) (all []T, err error) {
	err = each(ctx, s, columns, func(one T) error {
		all = append(all, one)
		return nil
	}, query, args...)
	return all, err
}

// read returns all rows of a query outside of a transaction; what names it in errors.
func read[T any](ctx context.Context, s *Store, what string, columns func(*T) []any, query string, args ...any) ([]T, error) {
	all, err := list(ctx, s.session(), columns, query, args...)
	return all, s.failed(what, err)
}

// readOne returns the only column of the first row of a query; what names it in errors.
func readOne[T any](ctx context.Context, s *Store, what, query string, args ...any) (one T, err error) {
	err = s.session().row(ctx, query, args...).Scan(&one)
	return one, s.failed(what, err)
}

// only is the only column of a row.
func only[T any](one *T) []any { return []any{one} }

// at is a column with a time.
func at(t *time.Time) sql.Scanner { return timeColumn{t} }

type timeColumn struct{ time *time.Time }

// Scan implements sql.Scanner.
func (c timeColumn) Scan(value any) error {
	n, ok := value.(int64)
	if *c.time = fromMicros(n); !ok {
		return fmt.Errorf("%v is not a time", value)
	}
	return nil
}

// jsonColumn is a column with the JSON of what a pointer points to. NULL leaves that as it is.
type jsonColumn struct{ of any }

// Scan implements sql.Scanner.
func (c jsonColumn) Scan(value any) error {
	switch text := value.(type) {
	case string:
		return json.Unmarshal([]byte(text), c.of)
	case []byte:
		return json.Unmarshal(text, c.of)
	}
	return nil
}

// Value implements driver.Valuer.
func (c jsonColumn) Value() (driver.Value, error) {
	text, err := json.Marshal(c.of)
	return string(text), err
}

// write runs a transaction that changes something; what names it in errors.
func (s *Store) write(ctx context.Context, what string, change func(session) error) error {
	err := s.transact(ctx, change)
	return s.failed(what, err)
}

func (s *Store) transact(ctx context.Context, change func(session) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	if err := change(session{s.dialect, tx}); err != nil {
		return err
	}
	return tx.Commit()
}

// begin waits for the lock of writers in SQLite. The database's own wait
// does not end with the context, and the database does not wait where a file is first given its journal.
func (s *Store) begin(ctx context.Context) (*sql.Tx, error) {
	for end := time.Now().Add(lockTimeout); ; {
		tx, err := s.writer.BeginTx(ctx, nil)
		if !busy(err) || time.Now().After(end) {
			return tx, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// busy reports whether another connection has a lock of SQLite.
func busy(err error) bool {
	const busyCode = 5
	failed, ok := errors.AsType[*sqlite.Error](err)
	return ok && failed.Code()&0xff == busyCode
}

// session runs queries without a transaction.
func (s *Store) session() session { return session{s.dialect, s.reader} }

// failed wraps the error of something that was tried.
func (s *Store) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return fmt.Errorf("state: %s: %w", what, err)
}

// micros is how times are kept: microseconds since 1970 in UTC, 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// Bounds of texts from operators or trackers, in bytes.
const (
	maxText = 4096
	maxName = 500 // PostgreSQL has no long keys
)

// clean makes a text that both databases take: PostgreSQL refuses NUL and what is
// not UTF-8.
func clean(text string) string { return bounded(text, maxText) }

// name is clean for a text that is part of a key.
func name(text string) string { return bounded(text, maxName) }

func bounded(text string, most int) string {
	text = strings.ToValidUTF8(text[:min(len(text), most)], "\ufffd")
	return strings.ReplaceAll(text, "\x00", "\ufffd")
}
