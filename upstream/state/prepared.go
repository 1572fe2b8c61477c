package state

import (
	"context"
	"database/sql/driver"
	"errors"
)

// preparing opens connections that keep their statements prepared: SQLite takes longer to parse most of them than to run them. A statement is not
// interrupted when its context ends. That would take a goroutine for each, and none of them runs for long.
type preparing struct{ driver.Connector }

// Connect implements driver.Connector.
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &preparedConn{conn.(reusableConn), map[string]driver.Stmt{}}, nil
}

// reusableConn is a connection that database/sql keeps after a context has ended.
type reusableConn interface {
	driver.Conn
	driver.SessionResetter
	driver.Validator
}

// preparedConn hides what else a connection can do, so that database/sql asks it to prepare each statement.
type preparedConn struct {
	reusableConn
	statements map[string]driver.Stmt
}

// maxPrepared bounds the statements of a connection. Those with lists have many forms.
const maxPrepared = 100

// Prepare implements driver.Conn.
func (c *preparedConn) Prepare(query string) (driver.Stmt, error) {
	if c.statements[query] == nil {
		made, err := c.reusableConn.Prepare(query)
		if err != nil || len(c.statements) >= maxPrepared {
			return made, err
		}
		c.statements[query] = made
	}
	return preparedStmt{c.statements[query]}, nil
}

// Close implements driver.Conn.
func (c *preparedConn) Close() error {
	var err error
	for _, statement := range c.statements {
		err = errors.Join(err, statement.Close())
	}
	return errors.Join(err, c.reusableConn.Close())
}

// preparedStmt stays open until its connection is closed.
type preparedStmt struct{ driver.Stmt }

// Close implements driver.Stmt.
func (preparedStmt) Close() error { return nil }
