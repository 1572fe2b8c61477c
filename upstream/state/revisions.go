package state

import (
	"context"
	"fmt"
)

// maxRevisions bounds the history of the rules.
const maxRevisions = 10_000

const selectRevisions = "SELECT version, at, base, source, content, actor, reason FROM portico_revisions ORDER BY version DESC LIMIT ?"

// current returns the revision in force, without a version when nothing was ever revised.
func (s *session) current() Revision {
	return append(list[Revision](s, selectRevisions, 1), Revision{})[0]
}

// CurrentRevision returns the revision in force, without a version when nothing was ever revised.
func (s *Store) CurrentRevision(ctx context.Context) (Revision, error) {
	in := s.session(ctx)
	present := in.current()
	return present, failed("reading the rules", in.err)
}

// Revise makes the next revision if expected is still the version in force, 0
// for none, and gives it with its version. With an action other than "" it leaves an audit record. The error is a *ConflictError when another process was faster.
func (s *Store) Revise(ctx context.Context, expected int64, next Revision, action string) (Revision, error) {
	next.Version, next.At = expected+1, fromMicros(micros(next.At))
	if next.Table == nil {
		next.Table = []byte{}
	}
	revised := Record{Actor: next.Actor, Action: action, Reason: next.Reason, Subject: fmt.Sprintf("version %d", next.Version), Detail: next.Table}
	err := s.record(ctx, "revising the rules", revised, func(tx *session) {
		// Of two at once, PostgreSQL has the second wait for the first's key and then do
		// nothing. In SQLite the second waits before it reads.
		if tx.current().Version != expected || tx.exec(`INSERT INTO portico_revisions (version, base, source, content, actor, reason, at)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (version) DO NOTHING`,
			next.Version, next.Base, next.Source, next.Table, next.Actor, next.Reason, next.At) == 0 {
			tx.fail(&ConflictError{Present: tx.current()})
		}
		tx.exec("DELETE FROM portico_revisions WHERE version <= ?", next.Version-maxRevisions)
	})
	return next, err
}

// Revisions gives the last revisions, the newest first.
func (s *Store) Revisions(ctx context.Context, limit int) ([]Revision, error) {
	return read[Revision](ctx, s, "reading the history of the rules", selectRevisions, max(limit, 0))
}
