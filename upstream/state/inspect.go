package state

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// Found is what Inspect finds: the version of the database's form, 0 where there is none yet, and the newest one.
type Found struct{ Version, Newest int }

// mayCreate returns 1 if tables can be created in a PostgreSQL database, which Open needs at each start.
const mayCreate = "SELECT count(*) WHERE has_schema_privilege(current_schema(), 'CREATE') AND current_setting('transaction_read_only') = 'off'"

// Inspect reads a database and changes neither its form nor a file. To see that files can be made beside one of SQLite, it makes one and removes
// it. Its errors are those of Open.
func Inspect(ctx context.Context, dsn string) (found Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	files, _ := fs.Glob(migrations, "migrations/*.sql") // fails for a bad pattern only
	found.Newest = len(files)
	exists := "SELECT count(*) FROM sqlite_master WHERE name = 'portico_schema'"
	path, config, err := parse(dsn)
	if err != nil || path == ":memory:" {
		return found, err
	}
	s := &Store{dialect: &sqliteDialect}
	if config != nil {
		exists = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('portico_schema')"
		s.connectPostgres(config)
	} else {
		beside, err := os.CreateTemp(filepath.Dir(path), "portico-check-*") // as SQLite keeps files beside its own
		if err == nil {
			err = errors.Join(beside.Close(), os.Remove(beside.Name()))
		}
		if err != nil {
			return found, failed("opening the database", err)
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return found, nil
		}
		if s.reader, err = sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(10000)"); err != nil {
			return found, err
		}
		s.writer = s.reader
	}
	in := s.session(ctx)
	if config != nil && one[int](in, mayCreate) == 0 {
		in.fail(errors.New("its user may not create tables in the current schema, or it is read-only: make the user its owner, or grant CREATE on the schema"))
	}
	if one[int](in, exists) > 0 {
		found.Version = one[int](in, "SELECT max(version) FROM portico_schema")
	}
	in.fail(checkVersion(found.Version, found.Newest))
	return found, failed("reading the database", errors.Join(in.err, s.Close()))
}
