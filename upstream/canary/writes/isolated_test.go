package writes_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/writes"
)

// TestPayloadOfAReplay checks the longest payload that is kept, and that a payload that cannot be read is not kept.
func TestPayloadOfAReplay(t *testing.T) {
	const most = 256 << 10
	payload := func(length int) *jsonblob.Blob {
		blob, err := jsonblob.BlobFromEncoded(strings.Repeat("A", length))
		if err != nil {
			t.Fatal(err)
		}
		return blob
	}
	closed := payload(most)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data *jsonblob.Blob
		want bool
	}{
		"the longest": {payload(most), true}, "too long": {payload(most + 4), false}, "closed": {closed, false},
	} {
		call := upstream.Call{CreateAttachment: &mapping.AttachmentCreate{Data: c.data}}
		if got := writes.TakePayload(&call); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// refusing is a tracker that responds with an error.
type refusing struct {
	upstream.Tracker
	err error
}

func (r refusing) FlagTypes(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	return mapping.FlagTypes{}, r.err
}

// having is a tracker that has every product.
type having struct{ upstream.Tracker }

func (having) FlagTypes(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.FlagTypes, error) {
	return mapping.FlagTypes{Document: mapping.NewDocument([]byte(`{}`))}, nil
}

// TestMarkerNeedsTheTrackersOwnResponse: an error that Portico makes does not prove that the reference lacks the product,
// whatever its code is.
func TestMarkerNeedsTheTrackersOwnResponse(t *testing.T) {
	for reason, want := range map[mapping.Reason]bool{"": true, mapping.ReasonUnreachable: false} {
		trackers := map[string]upstream.Tracker{"new": having{}, "old": refusing{err: &mapping.Error{Code: 106, Status: 404, Reason: reason}}}
		caller := func(string) upstream.Caller { return upstream.Caller{} }
		if got := writes.IsMarked(t.Context(), trackers, "new", "M", caller); got != want {
			t.Errorf("reason %q: %t", reason, got)
		}
	}
}

// TestLagIsBounded: a replay that is very late excuses a minute and the step of the clock, no more.
func TestLagIsBounded(t *testing.T) {
	var replays writes.Replays
	replays.Repeated(time.Hour)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for apart, want := range map[time.Duration]bool{61 * time.Second: true, 62 * time.Second: false} {
		text := func(at time.Time) []byte { return []byte(`"` + at.Format(time.RFC3339) + `"`) }
		d := compare.Difference{Class: compare.ClassTime, Path: "$.creation_time", Want: text(noon), Have: text(noon.Add(apart))}
		if got := replays.Excuses(d); got != want {
			t.Errorf("%v apart: %t", apart, got)
		}
	}
}

// TestForgetEndsTheNotes checks both notes, before and after Forget.
func TestForgetEndsTheNotes(t *testing.T) {
	var replays writes.Replays
	now := time.Now()
	replays.Answered(now, time.Second)
	replays.Answered(now.Add(time.Second), time.Second)
	if note := replays.Note(); note != "" {
		t.Errorf("writes one after another: %s", note)
	}
	replays.Answered(now.Add(2*time.Second), 2*time.Second)
	replays.Missed()
	if note := replays.Note(); !strings.Contains(note, "every write") || !strings.Contains(note, "another order") {
		t.Errorf("a gap and an overlap: %s", note)
	}
	if replays.Forget(); replays.Note() != "" {
		t.Errorf("after Forget: %s", replays.Note())
	}
}

// TestRefusalOfOneTracker: the reference's refusal is what is wanted, and the candidate's is what there is.
func TestRefusalOfOneTracker(t *testing.T) {
	call := upstream.Call{Operation: mapping.OpUpdateFlagTypes}
	for refuses, want := range map[string][2]bool{"old": {true, false}, "new": {false, true}} {
		render := func(_ context.Context, tracker string, _ upstream.Call) ([]byte, error) {
			if tracker == refuses {
				return nil, &mapping.Error{Code: 100, Reason: mapping.ReasonInexpressive}
			}
			return []byte(`{}`), nil
		}
		found, _, err := writes.ComparePlans(t.Context(), render, upstream.Sides{Serving: "old", Compared: "new"}, call, compare.Rules{})
		if err != nil || len(found) != 1 || [2]bool{found[0].Want != nil, found[0].Have != nil} != want {
			t.Errorf("%s refuses: %+v (%v)", refuses, found, err)
		}
	}
}

// TestReadAfterAWriteIsBounded checks the number of attachments that are read after one write.
func TestReadAfterAWriteIsBounded(t *testing.T) {
	ids := make([]int64, 30)
	reply, err := json.Marshal(map[string]any{"ids": ids})
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]upstream.Call{
		"create": {CreateAttachment: &mapping.AttachmentCreate{}}, "update": {UpdateAttachments: &mapping.AttachmentUpdate{IDs: ids}},
	} {
		read, ok := writes.Touched(write, reply)
		if !ok || len(read.Attachments.Attachments) != 20 {
			t.Errorf("%s: %+v", name, read.Attachments)
		}
	}
}
