package mapping

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestInterfaceForm(t *testing.T) {
	for _, c := range []struct {
		operation    Operation
		answer, want string
	}{
		{OpBugAttachments, `{"bugs":{"5":[{"is_private":0,"id":1},{"is_patch":1,"is_obsolete":1}]},"attachments":{}}`,
			`{"bugs":{"5":[{"is_private":false,"id":1},{"is_patch":true,"is_obsolete":true}]},"attachments":{}}`},
		{OpAttachment, `{"attachments":{"1":{"is_patch":1,"data":-0E+0,"is_private":null,"is_obsolete":"0","x":{"is_patch":1}}},"bugs":{}}`,
			`{"attachments":{"1":{"is_patch":true,"data":-0E+0,"is_private":null,"is_obsolete":"0","x":{"is_patch":1}}},"bugs":{}}`},
		{OpAttachment, `{"attachments":[],"bugs":{"1":null,"2":{}}}`, `{"attachments":[],"bugs":{"1":null,"2":{}}}`},
		{OpAttachment, `[1]`, `[1]`},
		{OpUpdateFlagTypes, `{"flagtypes":[{"id":1,"changes":{"is_requesteeble":{"removed":"1","added":"0"},` +
			`"grant_group_id":{"removed":null,"added":"3"},"request_group_id":{"removed":"3","added":null},"name":{"removed":"a","added":"b"}}},{"changes":null}]}`,
			`{"flagtypes":[{"id":1,"changes":{"is_specifically_requestable":{"removed":"1","added":"0"},` +
				`"grant_group":{"removed":"","added":"3"},"request_group":{"removed":"3","added":""},"name":{"removed":"a","added":"b"}}},{"changes":null}]}`},
		{OpUpdateAttachments, `{"attachments":[{"id":1,"changes":{"flagtypes.name":{"removed":null,"added":"review?"}}}]}`,
			`{"attachments":[{"id":1,"changes":{"flagtypes.name":{"removed":"","added":"review?"}}}]}`},
		{OpCreateAttachment, `{"ids":[1]}`, `{"ids":[1]}`},
		{OpFlagTypes, `{"bug":[{"is_requesteeble":true}],"attachment":[]}`, `{"bug":[{"is_requesteeble":true}],"attachment":[]}`},
	} {
		given := jsontext.Value(c.answer)
		if got := string(InterfaceForm(c.operation, given)); got != c.want || string(given) != c.answer {
			t.Errorf("%s %s\n got %s\nwant %s", c.operation, given, got, c.want)
		}
	}
}
