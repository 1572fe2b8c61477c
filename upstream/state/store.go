package state

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"os"
	"sync"
	"time"
)

// Store is a database of Portico's own. It is safe for concurrent use, by several
// processes too. All times it gives are UTC, to the microsecond. Nothing that is
// given to it may hold a credential or content that users wrote.
type Store struct {
	dialect *dialect
	// writer has one connection in SQLite, where only one may write anyway. It and reader are one pool in PostgreSQL.
	writer, reader *sql.DB
	now            func() time.Time
	// path and file are those of SQLite.
	path string
	file os.FileInfo

	mu sync.Mutex
	// createsPruned is when old creates were removed last.
	createsPruned time.Time
	// together are the changes that wait for the next transaction that several share, turn is held by the one that makes it.
	together []*sharedChange
	turn     sync.Mutex
}

// openTimeout bounds how long Open waits for other processes that change the database.
const openTimeout = 30 * time.Second

// Open opens a database and brings its form up to date: "sqlite:FILE", whose folder
// must be there, "sqlite::memory:", which is gone with the Store, or a URL
// "postgres://…". ErrNewer says that a later version of Portico has used it. No
// error tells the password of a URL.
func Open(ctx context.Context, dsn string) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	s, err := connect(dsn)
	if err != nil {
		return nil, failed("opening the database", err)
	}
	if err := s.migrate(ctx, migrations); err != nil {
		return nil, failed("opening the database", errors.Join(err, s.Close()))
	}
	// Where nothing is compared any more, nothing else removes old tallies. They can wait for the next start, which cannot wait for them.
	_ = s.transact(ctx, func(tx *session) { tx.removeTallies(s.now()) })
	return s, nil
}

// Close closes the database after what is under way. It may be called again.
func (s *Store) Close() error {
	return failed("closing the database", errors.Join(s.reader.Close(), s.writer.Close()))
}

// Secret gives random bytes for a purpose. They are made when they are first asked
// for and stay the same, for all processes that share the database: fingerprints that must be
// found again after a restart are made with them. They are in clear in the database.
func (s *Store) Secret(ctx context.Context, purpose string) (secret [sha256.Size]byte, err error) {
	_, _ = rand.Read(secret[:]) // crypto/rand.Read never fails
	err = s.write(ctx, "making a secret", func(tx *session) {
		tx.exec("INSERT INTO portico_secrets (name, secret) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name(purpose), secret[:])
		secret = one[[sha256.Size]byte](tx, "SELECT secret FROM portico_secrets WHERE name = ?", name(purpose))
	})
	return secret, err
}
