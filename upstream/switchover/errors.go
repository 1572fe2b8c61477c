package switchover

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ConflictError says that a change was made on a version that is not the present
// one. Nothing was changed.
type ConflictError struct {
	// Expected is the version that the change was made on, Present the one there is.
	Expected, Present int64
	// Actor and At tell who made the present one, and when.
	Actor string
	At    time.Time
	// Err is the cause; may be nil.
	Err error
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("the rules are at version %d by now, the change was made on version %d", e.Present, e.Expected)
}

// Unwrap gives the cause.
func (e *ConflictError) Unwrap() error { return e.Err }

// InvalidError says that a table cannot be used. Nothing was changed.
type InvalidError struct{ Problems []Problem }

// Error implements error.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return "the rules cannot be used: " + strings.Join(lines, "; ")
}

// UndeliveredError says that a kill counts in this process, and that others do not
// know of it yet.
type UndeliveredError struct{ Err error }

// Error implements error.
func (e *UndeliveredError) Error() string {
	return "everything goes to the old tracker, but only in this process: the store could not be told yet: " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *UndeliveredError) Unwrap() error { return e.Err }

// UnsignedError says that a change came without who makes it or why.
type UnsignedError struct{}

// Error implements error.
func (*UnsignedError) Error() string { return "a change needs an actor and a reason" }

// errNoCall says that a Call has no request.
var errNoCall = errors.New("a call without a request cannot be explained")
