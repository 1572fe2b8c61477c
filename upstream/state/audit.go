package state

import (
	"context"
	"database/sql"
	"time"
)

// mostRecords bounds the audit trail.
const mostRecords = 10_000

// Append adds a record to the audit trail, which keeps the last 10,000. Its ID is
// ignored, and the zero time is now.
func (s *Store) Append(ctx context.Context, record Record) error {
	if record.At.IsZero() {
		record.At = s.now()
	}
	return s.write(ctx, "appending to the audit trail", func(tx session) error { return tx.append(ctx, record) })
}

func (s session) append(ctx context.Context, r Record) error {
	var id int64
	err := s.row(ctx, "INSERT INTO portico_audit (at, actor, action, subject, reason, detail) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
		micros(r.At), clean(r.Actor), clean(r.Action), clean(r.Subject), clean(r.Reason), r.Detail).Scan(&id)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, "DELETE FROM portico_audit WHERE id <= ?", id-mostRecords)
	return err
}

// Audit gives the last records, the newest first.
func (s *Store) Audit(ctx context.Context, limit int) ([]Record, error) {
	var all []Record
	err := s.read().each(ctx, func(rows *sql.Rows) error {
		var r Record
		var at int64
		err := rows.Scan(&r.ID, &at, &r.Actor, &r.Action, &r.Subject, &r.Reason, &r.Detail)
		r.At = fromMicros(at)
		all = append(all, r)
		return err
	}, "SELECT id, at, actor, action, subject, reason, detail FROM portico_audit ORDER BY id DESC LIMIT ?", max(limit, 0))
	return all, s.failed("reading the audit trail", err)
}

// untilDetail is the detail of a judgement that ends.
func untilDetail(until time.Time) []byte {
	if until.IsZero() {
		return nil
	}
	return []byte(`{"until":"` + until.UTC().Format(time.RFC3339) + `"}`)
}
