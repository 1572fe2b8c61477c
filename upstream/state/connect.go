package state

import (
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
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// How many connections are used at most, and how long they live.
const (
	maxConnections = 8
	maxIdle        = 4
	maxLife        = 30 * time.Minute
	maxIdleTime    = 5 * time.Minute
	connectTimeout = 5 * time.Second
)

var errScheme = errors.New(`it is neither "sqlite:FILE" nor "postgres://USER:PASSWORD@HOST/DATABASE"`)

// connect makes a Store whose tables may not be there yet.
func connect(dsn string) (*Store, error) {
	s := &Store{now: time.Now, pruned: map[string]time.Time{}}
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch {
	case scheme == "sqlite":
		return s, s.connectSQLite(rest)
	case (scheme == "postgres" || scheme == "postgresql") && strings.HasPrefix(rest, "//"):
		return s, s.connectPostgres(dsn)
	}
	return nil, errScheme
}

// Check returns what is wrong with an address as far as that can be known without touching the database.
func Check(dsn string) error {
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return checkSQLite(path)
	}
	if _, err := pgx.ParseConfig(dsn); err != nil {
		return postgresProblem(dsn, err)
	}
	return nil
}

// checkSQLite finds a folder that is not there, and one in the place of the file.
func checkSQLite(path string) error {
	if path == ":memory:" {
		return nil
	}
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder", path)
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("the folder %s is not there", folder)
	}
	return nil
}

// connectPostgres opens no connection yet.
func (s *Store) connectPostgres(dsn string) error {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return postgresProblem(dsn, err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "portico"
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(maxConnections)
	pool.SetMaxIdleConns(maxIdle)
	pool.SetConnMaxLifetime(maxLife)
	pool.SetConnMaxIdleTime(maxIdleTime)
	s.dialect, s.writer, s.relaxed, s.reader = &postgresDialect, pool, pool, pool
	return nil
}

// postgresProblem says what is wrong with a URL as far as that can be said without
// any part that may be the password.
func postgresProblem(dsn string, err error) error {
	address, bad := url.Parse(dsn)
	if bad != nil {
		return errors.New("the URL cannot be read; in its user and password, characters other than letters and digits are written as %XX")
	}
	const plain = "a part of the PostgreSQL URL is not valid"
	problem, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if !ok || problem.Unwrap() == nil {
		return errors.New(plain)
	}
	if _, ok := errors.AsType[*strconv.NumError](err); ok {
		return fmt.Errorf("%s: one of its options must be a number", plain)
	}
	text := problem.Unwrap().Error()
	password, _ := address.User.Password()
	for _, secret := range []string{password, address.Query().Get("password"), address.Query().Get("sslpassword")} {
		if secret != "" && strings.Contains(text, secret) {
			return errors.New(plain)
		}
	}
	return fmt.Errorf("%s: %s", plain, text)
}

// connectSQLite creates the file where there is none: for its owner only, and so
// are the files that SQLite puts beside it.
func (s *Store) connectSQLite(path string) error {
	s.dialect = &sqliteDialect
	var err error
	if path == ":memory:" { // one connection, which is the database
		s.writer, err = openSQLite(path, 1, 0, "FULL")
		s.relaxed, s.reader = s.writer, s.writer
		return err
	}
	if path, err = createFile(path); err != nil {
		return err
	}
	const wait = 100 * time.Millisecond
	var errs [3]error
	s.writer, errs[0] = openSQLite(path, 1, wait, "FULL")
	s.relaxed, errs[1] = openSQLite(path, 1, wait, "NORMAL")
	s.reader, errs[2] = openSQLite(path, maxConnections, lockTimeout, "FULL")
	return errors.Join(errs[:]...)
}

// openSQLite opens a pool whose transactions take the lock of writers at once, as they
// would fail later if another writer came between. With the durability FULL, writes are on the disk when they
// are committed: which tracker has a product must survive a power cut. Checkpoints are rare, since a write that makes one waits for the disk. A wait is not interrupted,
// so that of a writer is short: see locked.
func openSQLite(path string, maxOpen int, wait time.Duration, durability string) (*sql.DB, error) {
	options := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(" + strconv.FormatInt(wait.Milliseconds(), 10) + ")", "journal_mode(WAL)", "synchronous(" + durability + ")", "wal_autocheckpoint(8000)", "foreign_keys(ON)"},
	}
	connector, err := sqlite.NewConnector("file:" + (&url.URL{Path: path}).EscapedPath() + "?" + options.Encode())
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(preparing{connector})
	pool.SetMaxOpenConns(maxOpen)
	pool.SetMaxIdleConns(maxIdle)
	return pool, nil
}

// createFile makes an empty file where there is none.
func createFile(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "//"); ok && !strings.HasPrefix(rest, "/") || path == "" {
		return "", errScheme
	}
	path = filepath.Clean(path)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the folder %s is not there: %w", filepath.Dir(path), err)
	}
	if err != nil {
		return "", err
	}
	return path, file.Close()
}
