package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Found is what Look finds: the version of the database's form, 0 where there is none yet, and whether it has rules.
type Found struct {
	Version, Newest int
	Rules           bool
}

// Look reads a database and changes nothing, neither its form nor a file. Its errors are those of Open.
func Look(ctx context.Context, dsn string) (found Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if found.Newest = len(files); err != nil {
		return found, err
	}
	s := &Store{dialect: &sqliteDialect}
	exists := "SELECT count(*) FROM sqlite_master WHERE name = 'portico_schema'"
	if path, local := strings.CutPrefix(dsn, "sqlite:"); local {
		path = filepath.Clean(path)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || path == ":memory:" {
			return found, Check(dsn)
		}
		s.reader, err = sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro")
		s.writer, s.relaxed = s.reader, s.reader
	} else {
		exists = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('portico_schema')"
		s, err = connect(dsn)
	}
	if err != nil {
		return found, fmt.Errorf("state: opening the database: %w", err)
	}
	in := s.session(ctx)
	if one[int](in, exists) > 0 {
		found.Version = one[int](in, "SELECT max(version) FROM portico_schema")
	}
	if found.Version > found.Newest {
		in.fail(fmt.Errorf("%w: its version is %d, this one knows %d", ErrNewer, found.Version, found.Newest))
	}
	if found.Version == found.Newest {
		_, found.Rules = in.current()
	}
	return found, failed("reading the database", errors.Join(in.err, s.Close()))
}
