package state

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// migrations holds one file for each version of the database's form, in the order
// of their names. What was once released is never changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the database to the newest form. When two processes do so at once
// one waits for the other.
func (s *Store) migrate(ctx context.Context, folder fs.FS) error {
	files, err := fs.Glob(folder, "migrations/*.sql")
	if err != nil {
		return err
	}
	return s.transact(ctx, s.writer, func(tx session) error { return tx.migrate(ctx, folder, files) })
}

// migrate runs the files that have not been run.
func (s session) migrate(ctx context.Context, folder fs.FS, files []string) error {
	if s.lockSchema != "" {
		if _, err := s.exec(ctx, s.lockSchema); err != nil {
			return fmt.Errorf("waiting for the lock: %w", err)
		}
	}
	if _, err := s.exec(ctx, s.definition("CREATE TABLE IF NOT EXISTS portico_schema (version {integer} PRIMARY KEY)")); err != nil {
		return fmt.Errorf("making the table of versions: %w", err)
	}
	var version int
	err := s.row(ctx, "SELECT version FROM portico_schema ORDER BY version DESC LIMIT 1").Scan(&version)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("reading the version: %w", err)
	}
	if version > len(files) {
		return fmt.Errorf("%w: its version is %d, this one knows %d", ErrNewer, version, len(files))
	}
	for i, file := range files[version:] {
		if err := s.step(ctx, folder, file, version+i+1); err != nil {
			return fmt.Errorf("bringing it to version %d: %w", version+i+1, err)
		}
	}
	return nil
}

// step runs one file.
func (s session) step(ctx context.Context, folder fs.FS, file string, version int) error {
	text, err := fs.ReadFile(folder, file)
	if err != nil {
		return err
	}
	now := strconv.FormatInt(time.Now().UnixMicro(), 10)
	// Without arguments both drivers take several statements at once.
	if _, err := s.ExecContext(ctx, s.definition(strings.ReplaceAll(string(text), "{now}", now))); err != nil {
		return err
	}
	_, err = s.exec(ctx, "INSERT INTO portico_schema (version) VALUES (?)", version)
	return err
}
