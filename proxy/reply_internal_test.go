package proxy

import (
	"errors"
	"testing"

	"portico/mapping"
)

// TestUnreadableAnswers: what cannot be stored here is not the tracker's fault.
func TestUnreadableAnswers(t *testing.T) {
	x := &exchange{operation: mapping.OpBugAttachments, record: &Record{}}
	full := &mapping.BlobError{Op: "write", Err: errors.New("no space left on device")}
	for err, want := range map[error]mapping.Reason{full: mapping.ReasonInternal, errors.New("no JSON"): mapping.ReasonBadAnswer} {
		if failed, ok := errors.AsType[*mapping.Error](x.unreadable(err)); !ok || failed.Reason != want {
			t.Errorf("%v: %+v", err, failed)
		}
	}
}
