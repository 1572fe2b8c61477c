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

// TurnedError says that a kill is in force that takes everything to another tracker than
// the one that would be the old one now.
type TurnedError struct {
	Kill Kill
	// Old is the tracker that would be the old one.
	Old string
}

// Error implements error.
func (e *TurnedError) Error() string {
	return fmt.Sprintf("the kill switch takes everything to %q since %s (%s: %s), and not to %q: revive the rules before the primary tracker becomes another one",
		e.Kill.Old, e.Kill.At.Format(time.RFC3339), e.Kill.Actor, e.Kill.Reason, e.Old)
}

// errForeign says that the stored rules are about other trackers.
var errForeign = errors.New("another process goes by rules between other trackers; each write must have one place, so its configuration and this one have to agree")

// errNoCall says that a Call has no request.
var errNoCall = errors.New("a call without a request cannot be explained")
