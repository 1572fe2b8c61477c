package state

import (
	"context"
	"database/sql/driver"
	"errors"
)

// preparing opens connections that keep their statements prepared: SQLite takes longer to parse most of them than to run them. A statement is not
// interrupted when its context ends: that would take a goroutine for each, and none of them runs for long.
type preparing struct{ driver.Connector }

// maxPrepared bounds the statements of a connection. Those with lists have many forms.
const maxPrepared = 100

// Connect implements driver.Connector.
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &preparedConn{conn.(sqliteConn), map[string]sqliteStmt{}}, nil
}

// sqliteConn and sqliteStmt are what the driver's connections and statements can do.
type (
	sqliteConn interface {
		driver.Conn
		driver.ConnBeginTx
		driver.ExecerContext
		driver.QueryerContext
		driver.SessionResetter
		driver.Validator
	}
	sqliteStmt interface {
		driver.Stmt
		driver.StmtExecContext
		driver.StmtQueryContext
	}
)

type preparedConn struct {
	sqliteConn
	statements map[string]sqliteStmt
}

// prepared returns nil for what cannot be prepared, and where there are too many statements already.
func (c *preparedConn) prepared(query string) sqliteStmt {
	if len(c.statements) < maxPrepared && c.statements[query] == nil {
		if made, err := c.Prepare(query); err == nil { // else running it has the same error
			c.statements[query] = made.(sqliteStmt)
		}
	}
	return c.statements[query]
}

// ExecContext implements driver.ExecerContext.
func (c *preparedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if statement := c.prepared(query); statement != nil {
		return statement.ExecContext(context.WithoutCancel(ctx), args)
	}
	return c.sqliteConn.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *preparedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if statement := c.prepared(query); statement != nil {
		return statement.QueryContext(context.WithoutCancel(ctx), args)
	}
	return c.sqliteConn.QueryContext(ctx, query, args)
}

// Close implements driver.Conn.
func (c *preparedConn) Close() error {
	var errs []error
	for _, statement := range c.statements {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, c.sqliteConn.Close())...)
}
