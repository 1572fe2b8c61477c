package canary_test

import (
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
)

// TestResetEndsWhatIsToldOfWrites: once both trackers hold the same again, neither a missing write nor an unknown order
// explains what differs.
func TestResetEndsWhatIsToldOfWrites(t *testing.T) {
	w := replayWorld(t, &writeLog{}, nil)
	refused := upstream.Response{Err: &mapping.Error{Code: 1, Status: 400, Message: "m"}}
	write := func(answer upstream.Response) {
		w.canary.Answered(t.Context(), w.caller, updateSummary(1, "a"), sides, answer)
		w.settle()
	}
	notes := func() (all string) {
		list, err := w.store.Findings(t.Context())
		if err != nil || len(list) == 0 {
			t.Fatalf("found %v (%v), want what was refused", list, err)
		}
		for _, f := range list {
			all += f.Note
		}
		return all
	}
	write(refused)
	lost, late := refused, refused
	lost.Err, late.Took = &mapping.Error{Status: 504, Reason: mapping.ReasonTimeout, Unknown: true}, time.Minute
	write(lost)
	write(late)
	if told := notes(); !strings.Contains(told, "every write") || !strings.Contains(told, "at the same time") {
		t.Errorf("the notes are %q", told)
	}
	if err := w.canary.Reset(t.Context(), "somebody", "both hold the same"); err != nil {
		t.Fatal(err)
	}
	write(refused)
	if told := notes(); strings.Contains(told, "write") {
		t.Errorf("after a reset the notes are %q", told)
	}
}
