package state

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"

	"portico/mapping"
)

// lockTimeout bounds how long a change waits for others in SQLite, whatever the
// context says.
const lockTimeout = 10 * time.Second

// querier is what a transaction and a pool have in common.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// session runs statements, in a transaction or without one. After an error it runs no more of them, and err is that error.
type session struct {
	*dialect
	querier
	ctx context.Context
	err error
}

// fail ends a session with an error, unless one has ended it before. nil does nothing.
func (s *session) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// exec runs a statement and returns how many rows it has changed.
func (s *session) exec(query string, args ...any) (changed int64) {
	if s.err != nil {
		return 0
	}
	result, err := s.ExecContext(s.ctx, s.statement(query), parameters(args)...)
	if err == nil {
		changed, err = result.RowsAffected()
	}
	s.err = err
	return changed
}

// each calls visit with every row of a query.
func each[T any](s *session, visit func(T) error, query string, args ...any) {
	if s.err != nil {
		return
	}
	rows, err := s.QueryContext(s.ctx, s.statement(query), parameters(args)...)
	if err != nil {
		s.err = err
		return
	}
	defer rows.Close()
	for s.err == nil && rows.Next() {
		var row T
		if s.err = rows.Scan(columns(&row)...); s.err == nil {
			s.err = visit(row)
		}
	}
	s.fail(rows.Err())
}

// list returns all rows of a query, never nil: JSON shows an empty list as [].
func list[T any](s *session, query string, args ...any) []T {
	all := []T{}
	each(s, func(row T) error {
		all = append(all, row)
		return nil
	}, query, args...)
	return all
}

// one returns the first row of a query. Without one the error is ErrNotFound.
func one[T any](s *session, query string, args ...any) (first T) {
	all := list[T](s, query, args...)
	if len(all) == 0 {
		s.fail(ErrNotFound)
		return first
	}
	return all[0]
}

// read returns all rows of a query outside of a transaction; what names it in errors.
func read[T any](ctx context.Context, s *Store, what, query string, args ...any) ([]T, error) {
	in := s.session(ctx)
	all := list[T](in, query, args...)
	return all, failed(what, in.err)
}

// readOne is read for the first row.
func readOne[T any](ctx context.Context, s *Store, what, query string, args ...any) (T, error) {
	in := s.session(ctx)
	first := one[T](in, query, args...)
	return first, failed(what, in.err)
}

// session runs queries without a transaction.
func (s *Store) session(ctx context.Context) *session {
	return &session{dialect: s.dialect, querier: s.reader, ctx: ctx, err: s.lost()}
}

// parameters are arguments in the form that is kept: times and durations in microseconds, and texts that both databases take.
func parameters(args []any) []any {
	all := slices.Clone(args)
	for i, arg := range all {
		switch a := arg.(type) {
		case time.Time:
			all[i] = micros(a)
		case time.Duration:
			all[i] = a.Microseconds()
		default:
			if value := reflect.ValueOf(arg); value.Kind() == reflect.String {
				all[i] = bounded(value.String(), maxText)
			}
		}
	}
	return all
}

// columns are where the columns of a row go: to what row points to or, where that is a struct, to its fields in their order.
func columns(row any) (all []any) {
	value := reflect.ValueOf(row).Elem()
	if value.Kind() != reflect.Struct {
		return []any{column(row)}
	}
	for _, field := range value.Fields() {
		all = append(all, column(field.Addr().Interface()))
	}
	return all
}

// column is where one column goes.
func column(to any) any {
	switch to := to.(type) {
	case *time.Time:
		return timeColumn{to}
	case *[sha256.Size]byte:
		return digestColumn{to}
	case *map[string]int64, *[]int64, *[]Scope, **mapping.Error:
		return jsonColumn{to}
	}
	return to
}

// digestColumn is a column with bytes of a certain length.
type digestColumn struct{ of *[sha256.Size]byte }

// Scan implements sql.Scanner.
func (c digestColumn) Scan(value any) error {
	if bytes, _ := value.([]byte); copy(c.of[:], bytes) != len(c.of) {
		return errors.New("it has another length")
	}
	return nil
}

// timeColumn is a column with a time.
type timeColumn struct{ time *time.Time }

// Scan implements sql.Scanner.
func (c timeColumn) Scan(value any) error {
	n, ok := value.(int64)
	*c.time = fromMicros(n)
	if !ok {
		return fmt.Errorf("%v is not a time", value)
	}
	return nil
}

// jsonColumn is a column with the JSON of what a pointer points to. NULL leaves that as it is.
type jsonColumn struct{ of any }

// Scan implements sql.Scanner.
func (c jsonColumn) Scan(value any) error {
	var text sql.Null[[]byte]
	if err := text.Scan(value); err != nil || !text.Valid {
		return err
	}
	return json.Unmarshal(text.V, c.of)
}

// Value implements driver.Valuer.
func (c jsonColumn) Value() (driver.Value, error) {
	text, err := json.Marshal(c.of)
	return string(text), err
}

// write runs a transaction that changes something; what names it in errors.
func (s *Store) write(ctx context.Context, what string, change func(*session)) error {
	return failed(what, s.transact(ctx, change))
}

// record is write with a record in the audit trail, if that has an action.
func (s *Store) record(ctx context.Context, what string, r Record, change func(*session)) error {
	r.At = s.now()
	return s.write(ctx, what, func(tx *session) {
		change(tx)
		if r.Action != "" {
			tx.addRecord(r)
		}
	})
}

// sharedChange is a change that is committed together with others.
type sharedChange struct {
	change func(*session)
	ended  bool
	err    error
}

// share is write for changes of which many come at a time. In SQLite, which writes one transaction after the other, those that have
// waited for the former one share the next one, and so its wait for the disk. A change may be tried twice, and goes on when ctx ends.
func (s *Store) share(ctx context.Context, what string, change func(*session)) error {
	if s.dialect.numbered { // PostgreSQL commits many together by itself
		return s.write(ctx, what, change)
	}
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
		s.changeTogether(context.WithoutCancel(ctx), all)
	}
	return failed(what, mine.err)
}

// changeTogether makes changes in one transaction or, if one fails, each in a transaction of its own.
func (s *Store) changeTogether(ctx context.Context, all []*sharedChange) {
	err := s.transact(ctx, func(tx *session) {
		for _, each := range all {
			each.change(tx)
		}
	})
	for _, each := range all {
		each.ended, each.err = true, err
		if err != nil && len(all) > 1 {
			each.err = s.transact(ctx, each.change)
		}
	}
}

func (s *Store) transact(ctx context.Context, change func(*session)) error {
	tx, err := s.locked(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing once it is committed
	in := &session{dialect: s.dialect, querier: tx, ctx: ctx}
	change(in)
	in.fail(s.lost())
	if in.err != nil {
		return in.err
	}
	return tx.Commit()
}

// locked begins a transaction. It waits for the lock of writers in SQLite. The database's own wait
// does not end with the context, and the database does not wait where a file is first given its journal.
func (s *Store) locked(ctx context.Context) (*sql.Tx, error) {
	for end := time.Now().Add(lockTimeout); ; time.Sleep(10 * time.Millisecond) {
		tx, err := s.writer.BeginTx(ctx, nil)
		if !busy(err) || time.Now().After(end) {
			return tx, err
		}
	}
}

// busy reports whether another connection has a lock of SQLite.
func busy(err error) bool {
	failed, ok := errors.AsType[*sqlite.Error](err)
	return ok && failed.Code()&0xff == 5 // SQLITE_BUSY
}

// failed wraps the error of something that was tried.
func failed(what string, err error) error {
	if err == nil {
		return nil
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

// name is a text that is part of a key.
func name(text string) string { return bounded(text, maxName) }

// bounded is a text that both databases take: PostgreSQL refuses NUL and what is not UTF-8.
func bounded(text string, limit int) string {
	text = strings.ToValidUTF8(text[:min(len(text), limit)], "\ufffd")
	return strings.ReplaceAll(text, "\x00", "\ufffd")
}
