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
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// How many connections are used at most, and how long they live.
const (
	maxConnections = 8
	maxIdle        = 4
	maxLife        = 30 * time.Minute
	connectTimeout = 5 * time.Second
)

var errScheme = errors.New(`it is neither "sqlite:FILE" nor "postgres://USER:PASSWORD@HOST/DATABASE"`)

// connect makes a Store whose tables may not be there yet.
func connect(dsn string) (*Store, error) {
	s := &Store{now: time.Now}
	path, config, err := parse(dsn)
	if config != nil {
		s.connectPostgres(config)
	} else if err == nil {
		err = s.connectSQLite(path)
	}
	return s, err
}

// Check returns what is wrong with an address as far as that can be known without touching the database.
func Check(dsn string) error {
	_, _, err := parse(dsn)
	return err
}

// parse returns the file of an address of SQLite, which may not be there while its folder is, or the configuration of one of PostgreSQL.
func parse(dsn string) (path string, config *pgx.ConnConfig, err error) {
	scheme, rest, _ := strings.Cut(dsn, ":")
	double, twice := strings.CutPrefix(rest, "//")
	switch {
	case scheme == "sqlite" && rest == ":memory:":
		return rest, nil, nil
	case scheme == "sqlite" && rest != "" && (!twice || strings.HasPrefix(double, "/")):
		path = filepath.Clean(rest)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return "", nil, fmt.Errorf("%s is a folder", path)
		}
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return "", nil, fmt.Errorf("the folder %s is not there", filepath.Dir(path))
		}
		return path, nil, nil
	case (scheme == "postgres" || scheme == "postgresql") && twice:
		if config, err = pgx.ParseConfig(dsn); err != nil {
			err = postgresProblem(dsn)
		}
		return "", config, err
	}
	return "", nil, errScheme
}

// connectPostgres opens no connection yet.
func (s *Store) connectPostgres(config *pgx.ConnConfig) {
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "portico"
	}
	// A process that is stopped or cut off within a transaction must not keep its locks: the kill switch needs some of them.
	pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET idle_in_transaction_session_timeout = '10s'")
		return err
	}))
	pool.SetMaxOpenConns(maxConnections)
	pool.SetMaxIdleConns(maxIdle)
	pool.SetConnMaxLifetime(maxLife)
	s.dialect, s.writer, s.reader = &postgresDialect, pool, pool
}

// postgresProblem says what is wrong with a URL without any part of it, which may be the password.
func postgresProblem(dsn string) error {
	if _, err := url.Parse(dsn); err != nil {
		return errors.New("the URL cannot be read; in its user and password, characters other than letters and digits are written as %XX")
	}
	return errors.New("a part of the PostgreSQL URL is not valid, such as its port, a parameter, or a file that a parameter names")
}

// connectSQLite creates the file where there is none: for its owner only, and so
// are the files that SQLite puts beside it.
func (s *Store) connectSQLite(path string) error {
	s.dialect = &sqliteDialect
	if path == ":memory:" { // its one connection is the database
		s.writer = openSQLite(path, 1, writerWait)
		s.reader = s.writer
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.path = path
	s.file, err = file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	s.writer, s.reader = openSQLite(path, 1, writerWait), openSQLite(path, maxConnections, lockTimeout)
	return nil
}

// lost says that the file was removed or replaced. What is written to it then is gone when this process ends.
func (s *Store) lost() error {
	if s.file == nil {
		return nil
	}
	if found, _ := os.Stat(s.path); !os.SameFile(found, s.file) { // nil is another one
		return errors.New("the file of the database was removed or replaced; restore it and start Portico again")
	}
	return nil
}

// writerWait is how long the database itself waits for another writer. Nothing interrupts that, so it is short, and locked waits on.
const writerWait = 100 * time.Millisecond

// openSQLite opens a pool whose transactions take the lock of writers at once, as they
// would fail later if another writer came between. Writes are on the disk when they are committed: which tracker has a product, and
// what is still to be copied, must survive a power cut. Checkpoints are rare, since a write that makes one takes longer.
func openSQLite(path string, maxOpen int, wait time.Duration) *sql.DB {
	options := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(" + strconv.FormatInt(wait.Milliseconds(), 10) + ")", "journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(8000)", "foreign_keys(ON)"},
	}
	connector, _ := sqlite.NewConnector("file:" + (&url.URL{Path: path}).EscapedPath() + "?" + options.Encode()) // fails where something is not escaped
	pool := sql.OpenDB(preparing{connector})
	pool.SetMaxOpenConns(maxOpen)
	pool.SetMaxIdleConns(maxIdle)
	return pool
}
