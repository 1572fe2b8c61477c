package state

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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

// each calls visit with every row of a query.
func each[T any](ctx context.Context, s session, visit func(T) error, query string, args ...any) error {
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
func list[T any](ctx context.Context, s session, query string, args ...any) (all []T, err error) {
	err = each(ctx, s, func(one T) error {
		all = append(all, one)
		return nil
	}, query, args...)
	return all, err
}

// read returns all rows of a query outside of a transaction; what names it in errors.
func read[T any](ctx context.Context, s *Store, what, query string, args ...any) ([]T, error) {
	all, err := list[T](ctx, s.session(), query, args...)
	return all, s.failed(what, err)
}

// readOne returns the first row of a query outside of a transaction. Without one the error is ErrNotFound.
func readOne[T any](ctx context.Context, s *Store, what, query string, args ...any) (one T, err error) {
	err = s.session().row(ctx, query, args...).Scan(columns(&one)...)
	return one, s.failed(what, err)
}

// columns are where the columns of a row go: to what row points to or, where that is a struct, to its fields in their order.
func columns(row any) (all []any) {
	value := reflect.ValueOf(row).Elem()
	if value.Kind() != reflect.Struct {
		return []any{row}
	}
	for i := range value.NumField() {
		field := value.Field(i).Addr().Interface()
		switch f := field.(type) {
		case *time.Time:
			field = at(f)
		case *map[string]int64, *[]int64, *[]Scope:
			field = jsonColumn{f}
		}
		all = append(all, field)
	}
	return all
}

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
	return s.failed(what, s.transact(ctx, s.writer, change))
}

// sharedChange is a change that is committed together with others.
type sharedChange struct {
	change func(context.Context, session) error
	ended  bool
	err    error
}

// share is write for changes of which many come at a time. In SQLite, which writes one transaction after the other, those that have waited for the former one
// share the next one, and none waits for the disk (Store.relaxed). A change may be tried twice, and goes on when ctx ends.
func (s *Store) share(ctx context.Context, what string, change func(context.Context, session) error) error {
	if s.dialect.numbered { // PostgreSQL commits many together by itself
		return s.write(ctx, what, func(tx session) error { return change(ctx, tx) })
	}
	ctx = context.WithoutCancel(ctx)
	mine := &sharedChange{change: change}
	s.mu.Lock()
	s.together = append(s.together, mine)
	s.mu.Unlock()
	s.turn.Lock()
	defer s.turn.Unlock()
	if !mine.ended {
		s.mu.Lock()
		all := s.together
		s.together = nil
		s.mu.Unlock()
		s.changeTogether(ctx, all)
	}
	return s.failed(what, mine.err)
}

// changeTogether makes changes in one transaction or, if one fails, each in a transaction of its own.
func (s *Store) changeTogether(ctx context.Context, all []*sharedChange) {
	err := s.transact(ctx, s.relaxed, func(tx session) (err error) {
		for i := 0; i < len(all) && err == nil; i++ {
			err = all[i].change(ctx, tx)
		}
		return err
	})
	for _, one := range all {
		one.ended = true
		if one.err = err; err != nil && len(all) > 1 {
			one.err = s.transact(ctx, s.relaxed, func(tx session) error { return one.change(ctx, tx) })
		}
	}
}

func (s *Store) transact(ctx context.Context, pool *sql.DB, change func(session) error) error {
	tx, err := locked(ctx, pool)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	if err := change(session{s.dialect, tx}); err != nil {
		return err
	}
	return tx.Commit()
}

// locked begins a transaction. It waits for the lock of writers in SQLite. The database's own wait
// does not end with the context, and the database does not wait where a file is first given its journal.
func locked(ctx context.Context, pool *sql.DB) (*sql.Tx, error) {
	for end := time.Now().Add(lockTimeout); ; {
		tx, err := pool.BeginTx(ctx, nil)
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

// repeated is a list of so many equal parts of a statement.
func repeated(part string, n int) string { return part + strings.Repeat(", "+part, n-1) }

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
