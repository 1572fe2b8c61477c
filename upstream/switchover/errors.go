package switchover

import (
	"errors"

	"portico/mapping"
	"portico/upstream"
)

// InvalidError says that a table cannot be used. Nothing was changed.
type InvalidError struct{ Problems []Problem }

// Error implements error.
func (e *InvalidError) Error() string {
	return "the rules cannot be used: " + joined(e.Problems, "; ")
}

// UndeliveredError says that a kill is in force in this process, and that others do not
// know of it yet.
type UndeliveredError struct{ Err error }

// Error implements error.
func (e *UndeliveredError) Error() string {
	return "everything goes to the old tracker, but only in this process: the store could not be told yet: " + e.Err.Error()
}

// errForeign says that the stored rules are about other trackers.
var errForeign = errors.New("another process goes by rules between other trackers; each write must have one place, so its configuration and this one have to agree")

// refuse makes the error of a write that is sent nowhere.
func refuse(format string, args ...any) *mapping.Error {
	return mapping.NewError(mapping.CodeBadParameter, mapping.ReasonSwitchover, format, args...)
}

// unplaced is the error of a write whose place stays unknown. Where a tracker refused
// the lookup of a bug, or the credential, it would refuse the write too, so that refusal is the error.
func unplaced(o object, refusal error) error {
	if refusal != nil && (o.kind == bugObject || upstream.RefusesLogin(refusal)) {
		return refusal
	}
	err := refuse("It cannot be told to which of two trackers %s belongs, so nothing was changed. "+
		"The caller may not see it, or it is in no product that the caller sees.", o)
	err.Err = refusal
	return err
}
