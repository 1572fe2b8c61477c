package state

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	processes "portico/test/process"
)

// password is that of the server's only user. It is in every address that tests
// use, so an error that shows one shows it.
const password = "s3cr%t/ &word"

// sharedServer starts a PostgreSQL server for all tests of a run.
var sharedServer = sync.OnceValues(startServer)

// databases counts those that were made in it.
var databases atomic.Int64

func TestMain(m *testing.M) {
	code := m.Run()
	if databases.Load() > 0 {
		if s, err := sharedServer(); err == nil {
			s.Remove()
			s.release()
		}
	}
	os.Exit(code)
}

// server is a real PostgreSQL server, a process of its own.
type server struct {
	*processes.Database
	address string
	release func()
}

// startServer starts a server at an address of its own.
func startServer() (*server, error) {
	address, release, err := processes.ReserveAddress(context.Background())
	if err != nil {
		return nil, err
	}
	database, err := processes.StartDatabase(address, password)
	return &server{database, address, release}, err
}

// dsn is the address of a database of the server.
func (s *server) dsn(database string) string {
	address := url.URL{Scheme: "postgres", User: url.UserPassword("portico", password), Host: s.address, Path: "/" + database, RawQuery: "sslmode=disable"}
	return address.String()
}

// newDatabase makes an empty database and gives its address.
func newDatabase(t testing.TB) string {
	t.Helper()
	s, err := sharedServer()
	must(t, err)
	db, err := sql.Open("pgx", s.dsn("postgres"))
	must(t, err)
	defer db.Close()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if _, err := db.ExecContext(context.Background(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return s.dsn(name)
}
