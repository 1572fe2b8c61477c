package state

import (
	"context"
	"database/sql"
	"errors"
)

// mostRevisions bounds the history of the phases.
const mostRevisions = 10_000

const selectRevisions = "SELECT version, base, source, content, actor, reason, at FROM portico_revisions ORDER BY version DESC LIMIT ?"

func scanRevision(scan func(...any) error) (Revision, error) {
	var r Revision
	var at int64
	err := scan(&r.Version, &r.Base, &r.Source, &r.Table, &r.Actor, &r.Reason, &at)
	r.At = fromMicros(at)
	return r, err
}

// current gives false when nothing was ever revised.
func (s session) current(ctx context.Context) (Revision, bool, error) {
	r, err := scanRevision(s.row(ctx, selectRevisions, 1).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return Revision{}, false, nil
	}
	return r, err == nil, err
}

// CurrentRevision gives the revision that counts, and false when there is none yet.
func (s *Store) CurrentRevision(ctx context.Context) (Revision, bool, error) {
	r, ok, err := s.read().current(ctx)
	return r, ok, s.failed("reading the phases", err)
}

// Revise makes the next revision if expected is still the version that counts, 0
// for none, and gives it with its version, and the time now when it had none. The
// error is a *ConflictError when somebody else was faster.
func (s *Store) Revise(ctx context.Context, expected int64, next Revision) (Revision, error) {
	next.Version = expected + 1
	if next.At.IsZero() {
		next.At = s.now()
	}
	if next.Table == nil {
		next.Table = []byte{}
	}
	next.At = fromMicros(micros(next.At))
	next.Base, next.Source, next.Actor, next.Reason = clean(next.Base), clean(next.Source), clean(next.Actor), clean(next.Reason)
	err := s.write(ctx, "revising the phases", func(tx session) error {
		return tx.revise(ctx, expected, next)
	})
	if err != nil {
		return Revision{}, err
	}
	return next, nil
}

// revise makes the next revision or gives a *ConflictError.
func (s session) revise(ctx context.Context, expected int64, next Revision) error {
	present, _, err := s.current(ctx)
	if err != nil {
		return err
	}
	if present.Version != expected {
		return &ConflictError{Present: present}
	}
	// Where two are here at once, PostgreSQL makes the second wait for the first's
	// key and then do nothing. In SQLite the second is not here yet.
	made, err := s.exec(ctx, `INSERT INTO portico_revisions (version, base, source, content, actor, reason, at)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (version) DO NOTHING`,
		next.Version, next.Base, next.Source, next.Table, next.Actor, next.Reason, micros(next.At))
	if err != nil {
		return err
	}
	if made == 0 {
		present, _, err := s.current(ctx)
		if err != nil {
			return err
		}
		return &ConflictError{Present: present}
	}
	_, err = s.exec(ctx, "DELETE FROM portico_revisions WHERE version <= ?", next.Version-mostRevisions)
	return err
}

// Revisions gives the last revisions, the newest first.
func (s *Store) Revisions(ctx context.Context, limit int) ([]Revision, error) {
	var all []Revision
	err := s.read().each(ctx, func(rows *sql.Rows) error {
		r, err := scanRevision(rows.Scan)
		all = append(all, r)
		return err
	}, selectRevisions, max(limit, 0))
	return all, s.failed("reading the phases' history", err)
}
