package state

import (
	"fmt"
	"strings"
)

// dialect is what the two databases spell differently. Statements are written as
// SQLite has them.
type dialect struct {
	// numbered says that parameters are $1, $2 rather than question marks.
	numbered bool
	// serial, integer and bytes are types of columns.
	serial, integer, bytes string
	// forShare and forUpdate end a SELECT that locks its rows. Where they are empty,
	// a transaction that writes is alone anyway.
	forShare, forUpdate string
	// lockSchema makes migrations wait for one another.
	lockSchema string
	// clock is the time of the database in microseconds, which processes on several machines share.
	clock string
	// objects begins an aggregate of JSON objects, whose members, an order and a parenthesis follow.
	objects string
}

var sqliteDialect = dialect{
	serial:  "INTEGER PRIMARY KEY AUTOINCREMENT",
	integer: "INTEGER",
	bytes:   "BLOB",
	clock:   "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
	objects: "json_group_array(json_object",
}

// The lock's number means nothing but to Portico.
var postgresDialect = dialect{
	numbered:   true,
	serial:     "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
	integer:    "BIGINT",
	bytes:      "BYTEA",
	forShare:   " FOR SHARE",
	forUpdate:  " FOR UPDATE",
	lockSchema: "SELECT pg_advisory_xact_lock(8123794605514)",
	clock:      "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
	objects:    "json_agg(json_build_object",
}

// statement gives the parameters of a statement their form. No statement of this
// package has a question mark in it that is not a parameter.
func (d *dialect) statement(query string) string {
	if !d.numbered {
		return query
	}
	var text strings.Builder
	for i, part := range strings.Split(query, "?") {
		if i > 0 {
			fmt.Fprintf(&text, "$%d", i)
		}
		text.WriteString(part)
	}
	return text.String()
}

// definition fills in the types of a statement that defines a table.
func (d *dialect) definition(query string) string {
	return strings.NewReplacer("{serial}", d.serial, "{integer}", d.integer, "{bytes}", d.bytes).Replace(query)
}
