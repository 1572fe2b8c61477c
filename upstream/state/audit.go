package state

import "context"

// maxRecords bounds the audit trail; older records are removed.
const maxRecords = 10_000

// addRecord adds a record to the audit trail. Its ID is ignored.
func (s *session) addRecord(r Record) {
	id := one[int64](s, "INSERT INTO portico_audit (at, actor, action, subject, reason, detail) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
		r.At, r.Actor, r.Action, r.Subject, r.Reason, r.Detail)
	s.exec("DELETE FROM portico_audit WHERE id <= ?", id-maxRecords)
}

// Audit returns the last records, the newest first.
func (s *Store) Audit(ctx context.Context, limit int) ([]Record, error) {
	return read[Record](ctx, s, "reading the audit trail", "SELECT id, at, actor, action, subject, reason, detail FROM portico_audit ORDER BY id DESC LIMIT ?", max(limit, 0))
}
