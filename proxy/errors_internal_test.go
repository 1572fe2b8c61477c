package proxy

import (
	"errors"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
)

// TestUnreadableResponses: a response that cannot be stored here is no fault of the tracker.
func TestUnreadableResponses(t *testing.T) {
	full := &jsonblob.BlobError{Op: "write", Err: errors.New("no space left on device")}
	broken := &jsonblob.SyntaxError{Kind: jsonblob.SyntaxEmpty}
	for err, want := range map[error]mapping.Reason{full: mapping.ReasonOverload, broken: mapping.ReasonBadResponse} {
		if failed := asError(err, false); failed.Reason != want || failed.Unknown {
			t.Errorf("%v: %+v", err, failed)
		}
		if failed := asError(err, true); !failed.Unknown {
			t.Errorf("%v: the outcome of the write counts as known", err)
		}
	}
}
