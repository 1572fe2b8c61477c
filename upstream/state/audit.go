package state

// maxRecords bounds the audit trail; older records are removed.
const maxRecords = 10_000

// append adds a record to the audit trail.
func (s *session) append(r Record) {
	id := one[int64](s, "INSERT INTO portico_audit (at, actor, action, subject, reason, detail) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
		r.At, r.Actor, r.Action, r.Subject, r.Reason, r.Detail)
	s.exec("DELETE FROM portico_audit WHERE id <= ?", id-maxRecords)
}
