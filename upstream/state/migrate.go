package state

import (
	"context"
	"embed"
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

// migrate brings the database to the newest form, by the files that have not been run. When two processes do so at once
// one waits for the other.
func (s *Store) migrate(ctx context.Context, folder fs.FS) error {
	files, _ := fs.Glob(folder, "migrations/*.sql") // fails for a bad pattern only
	return s.transact(ctx, func(tx *session) {
		if tx.lockSchema != "" {
			tx.exec(tx.lockSchema)
		}
		tx.exec(tx.definition("CREATE TABLE IF NOT EXISTS portico_schema (version {integer} PRIMARY KEY)"))
		version := one[int](tx, "SELECT coalesce(max(version), 0) FROM portico_schema")
		tx.fail(checkVersion(version, len(files)))
		for ; tx.err == nil && version < len(files); version++ {
			text, err := fs.ReadFile(folder, files[version])
			tx.fail(err)
			// Without arguments both drivers take several statements at once.
			tx.exec(tx.definition(strings.ReplaceAll(string(text), "{now}", strconv.FormatInt(time.Now().UnixMicro(), 10))))
			tx.exec("INSERT INTO portico_schema (version) VALUES (?)", version+1)
			if tx.err != nil {
				tx.err = fmt.Errorf("bringing it to version %d: %w", version+1, tx.err)
			}
		}
	})
}

// checkVersion returns ErrNewer for a version that this program does not know.
func checkVersion(version, newest int) error {
	if version <= newest {
		return nil
	}
	return fmt.Errorf("%w: its version is %d, this one knows %d", ErrNewer, version, newest)
}
