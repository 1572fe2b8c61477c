package state

import "context"

// maxRecords bounds the audit trail; older records are removed.
const maxRecords = 10_000

// append adds a record to the audit trail. Its ID is ignored.
func (s session) append(ctx context.Context, r Record) error {
	var id int64
	err := s.row(ctx, "INSERT INTO portico_audit (at, actor, action, subject, reason, detail) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
		micros(r.At), clean(r.Actor), clean(r.Action), clean(r.Subject), clean(r.Reason), r.Detail).Scan(&id)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, "DELETE FROM portico_audit WHERE id <= ?", id-maxRecords)
	return err
}

// Audit returns the last records, the newest first.
func (s *Store) Audit(ctx context.Context, limit int) ([]Record, error) {
	return read[Record](ctx, s, "reading the audit trail", "SELECT id, at, actor, action, subject, reason, detail FROM portico_audit ORDER BY id DESC LIMIT ?", max(limit, 0))
}
