package upstream_test

import (
	"reflect"
	"testing"

	"portico/mapping"
	"portico/upstream"
)

func TestLineIsTheClientsRequestLine(t *testing.T) {
	for want, call := range map[string]upstream.Call{
		"GET /rest/flag_type/A%2FB/C%20D":        {Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "A/B", Component: "C D"}},
		"GET /rest/flag_type/A":                  {Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "A"}},
		"POST /rest/flag_type":                   {Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{}},
		"PUT /rest/flag_type/7":                  {Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{7}, Names: []string{"n"}}},
		"PUT /rest/flag_type/n":                  {Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{Names: []string{"n"}}},
		"GET /rest/bug/1/attachment?ids=2&ids=3": {Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"1", "2", "3"}}},
		"GET /rest/bug/attachment/5?attachment_ids=6&exclude_fields=data&ids=2": {
			Operation: mapping.OpAttachment,
			Attachments: &mapping.AttachmentsRequest{
				Bugs: []string{"2"}, Attachments: []string{"5", "6"}, Exclude: []string{"data"},
			},
		},
		"POST /rest/bug/1/attachment": {Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"1", "2"}}},
		"POST /rest/bug/al/attachment": {
			Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"1", "2"}, PathBug: "al"},
		},
		"PUT /rest/bug/attachment/9": {Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{9}}},
	} {
		method, target := call.Line()
		if got := method + " " + target; got != want {
			t.Errorf("the line is %q, want %q", got, want)
		}
	}
}

// TestACopyIsAnotherRequest: whoever changes a copy leaves the request as it is, for each operation.
func TestACopyIsAnotherRequest(t *testing.T) {
	requests := reflect.ValueOf(&upstream.Call{}).Elem()
	for _, request := range requests.Fields() {
		if request.Kind() == reflect.Pointer {
			request.Set(reflect.New(request.Type().Elem()))
		}
	}
	call := requests.Interface().(upstream.Call)
	copied := reflect.ValueOf(call.Copy())
	for field, request := range requests.Fields() {
		if request.Kind() == reflect.Pointer && (copied.FieldByIndex(field.Index).IsNil() || copied.FieldByIndex(field.Index).Pointer() == request.Pointer()) {
			t.Errorf("%s is not copied", field.Name)
		}
	}
}
