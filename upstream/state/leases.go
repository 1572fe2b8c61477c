package state

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errHeld says that another holder has a lease.
var errHeld = errors.New("another process has the lease")

// Leases go by the clock of the database, since those of the processes may differ.

// take takes leases that are free, or that the holder has already, for a time. It fails with errHeld unless it gets all of them.
func (s *session) take(names []string, holder string, lasts time.Duration) {
	for _, each := range names {
		if s.exec(`INSERT INTO portico_leases (name, holder, until_at) VALUES (?, ?, `+s.clock+` + ?)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at
			WHERE portico_leases.until_at <= `+s.clock+` OR portico_leases.holder = excluded.holder`, name(each), holder, lasts) == 0 {
			s.fail(errHeld)
		}
	}
}

// release gives back leases, and reports whether the holder had all of them.
func (s *session) release(names []string, holder string) (all bool) {
	all = true
	for _, each := range names {
		all = s.exec("DELETE FROM portico_leases WHERE name = ? AND holder = ?", name(each), holder) > 0 && all
	}
	return all
}

// hold gives a lease of a holder to the next one, which may be the same, for a time from now on.
func (s *session) hold(lease, holder, next string, lasts time.Duration) {
	s.exec("UPDATE portico_leases SET holder = ?, until_at = "+s.clock+" + ? WHERE name = ? AND holder = ?", next, lasts, name(lease), holder)
}

// KeepLeases makes leases that a holder still has last for a time from now on.
func (s *Store) KeepLeases(ctx context.Context, names []string, holder string, lasts time.Duration) error {
	return s.write(ctx, "keeping leases", func(tx *session) {
		for _, each := range names {
			tx.hold(each, holder, holder, lasts)
		}
	})
}

// processLease begins the names of the leases by which processes count as alive. Their holder is a version of the rules.
const processLease = "process "

// Beat has a process count as alive for a time, by the clock of the database. It has ended all writes that rules before the version would
// send to another tracker. Without a time the process has ended. The leases of such processes are kept for an hour.
func (s *Store) Beat(ctx context.Context, process string, version int64, lasts time.Duration) error {
	return s.write(ctx, "renewing the heartbeat", func(tx *session) {
		tx.exec(`INSERT INTO portico_leases (name, holder, until_at) VALUES (?, ?, `+tx.clock+` + ?)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at`, name(processLease+process), sortable(version), lasts)
		tx.exec("DELETE FROM portico_leases WHERE name LIKE '"+processLease+"%' AND until_at < "+tx.clock+" - ?", time.Hour)
	})
}

// sortable is a version as a text by which rows can be compared.
func sortable(version int64) string { return fmt.Sprintf("%020d", version) }

// Behind lists the processes that are alive and have not reported a version of the rules.
func (s *Store) Behind(ctx context.Context, version int64) ([]string, error) {
	return read[string](ctx, s, "reading the heartbeats", "SELECT substr(name, length('"+processLease+"') + 1) FROM portico_leases WHERE name LIKE '"+
		processLease+"%' AND holder < ? AND until_at > "+s.dialect.clock+" ORDER BY name", sortable(version))
}
