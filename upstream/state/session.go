package state

import (
	"context"
	"database/sql"
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

// each calls scan for every row of a query.
func (s session) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := s.QueryContext(ctx, s.statement(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanner reads a row into the values that the arguments point to.
type scanner = func(...any) error

// list returns what scan makes of each row of a query.
func list[T any](ctx context.Context, s session, scan func(scanner) (T, error), query string, args ...any) (all []T, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		one, err := scan(rows.Scan)
		all = append(all, one)
		return err
	}, query, args...)
	return all, err
}

// scanOne reads a row of one column.
func scanOne[T any](scan scanner) (one T, err error) { return one, scan(&one) }

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

// read runs queries without a transaction.
func (s *Store) read() session { return session{s.dialect, s.reader} }

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
