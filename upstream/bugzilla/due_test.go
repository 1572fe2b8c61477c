package bugzilla

import (
	"errors"
	"strings"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

// TestASuccessWithoutItsContent: an object that does not hold what was asked for is no success, and of a write nobody
// knows what became of it.
func TestASuccessWithoutItsContent(t *testing.T) {
	for _, body := range []string{`{}`, `{"id":null,"ids":null,"flagtypes":0,"attachments":0,"bugs":0}`, `{"version":"5.2+"}`} {
		client := dial(t, "bugzilla-5", answering(200, "application/json", body))
		name := "made"
		for operation, ask := range map[mapping.Operation]func() error{
			mapping.OpFlagTypes: func() error {
				_, err := client.FlagTypes(t.Context(), upstream.Caller{}, mapping.FlagTypesRequest{Product: "P"})
				return err
			},
			mapping.OpCreateFlagType: func() error {
				_, err := client.CreateFlagType(t.Context(), upstream.Caller{}, mapping.FlagTypeCreate{})
				return err
			},
			mapping.OpUpdateFlagTypes: func() error {
				_, err := client.UpdateFlagTypes(t.Context(), upstream.Caller{}, mapping.FlagTypeUpdate{Names: []string{name}})
				return err
			},
			mapping.OpBugAttachments: func() error {
				_, err := client.BugAttachments(t.Context(), upstream.Caller{}, mapping.AttachmentsRequest{Bugs: []string{"1"}})
				return err
			},
			mapping.OpAttachment: func() error {
				_, err := client.Attachment(t.Context(), upstream.Caller{}, mapping.AttachmentsRequest{Attachments: []string{"1"}})
				return err
			},
			mapping.OpCreateAttachment: func() error {
				_, err := client.CreateAttachment(t.Context(), upstream.Caller{}, mapping.AttachmentCreate{Bugs: []string{"1"}})
				return err
			},
			mapping.OpUpdateAttachments: func() error {
				_, err := client.UpdateAttachments(t.Context(), upstream.Caller{}, mapping.AttachmentUpdate{IDs: []int64{1}})
				return err
			},
		} {
			err := ask()
			said, known := errors.AsType[*mapping.Error](err)
			if !known || said.Reason != mapping.ReasonBadAnswer || said.Unknown != operation.IsWrite() {
				t.Errorf("%s answered with %s: %v", operation, body, err)
			}
		}
	}
}

// TestLongAnswersToWritesAreJudged: they too can hold something else than the success, or an error that is not seen from
// their beginning.
func TestLongAnswersToWritesAreJudged(t *testing.T) {
	long := `{"x":"` + strings.Repeat("x", headSize) + `"`
	for _, c := range []struct {
		rest    string
		unknown bool
		code    int
	}{
		{`}`, true, mapping.CodeTimeout},
		{`,"error":true,"code":100500,"message":"m"}`, false, mapping.CodeTrackerFailure},
		{`,"flagtypes":[],"attachments":[],"ids":[5],"id":5}`, false, 0},
	} {
		client := dial(t, "bugzilla-5", answering(200, "application/json", long+c.rest))
		_, updated := client.UpdateFlagTypes(t.Context(), upstream.Caller{}, mapping.FlagTypeUpdate{IDs: []int64{1}})
		_, made := client.CreateFlagType(t.Context(), upstream.Caller{}, mapping.FlagTypeCreate{})
		_, attached := client.CreateAttachment(t.Context(), upstream.Caller{}, mapping.AttachmentCreate{Bugs: []string{"1"}})
		_, edited := client.UpdateAttachments(t.Context(), upstream.Caller{}, mapping.AttachmentUpdate{IDs: []int64{1}})
		for i, err := range []error{updated, made, attached, edited} {
			said, failed := errors.AsType[*mapping.Error](err)
			if failed != (c.code != 0) || failed && (said.Code != c.code || said.Unknown != c.unknown) {
				t.Errorf("write %d answered with …%s: %v", i, c.rest, err)
			}
		}
	}
}
