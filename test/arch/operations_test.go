package arch

import (
	"net/http"
	"strings"
	"testing"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/recording"
)

// requestOf returns a call of an operation with the smallest request.
func requestOf(t *testing.T, operation mapping.Operation) upstream.Call {
	t.Helper()
	call := upstream.Call{Operation: operation}
	switch operation {
	case mapping.OpFlagTypes:
		call.FlagTypes = &mapping.FlagTypesRequest{Product: "P", Component: "C"}
	case mapping.OpCreateFlagType:
		call.CreateFlagType = &mapping.FlagTypeCreate{}
	case mapping.OpUpdateFlagTypes:
		call.UpdateFlagTypes = &mapping.FlagTypeUpdate{IDs: []int64{1}}
	case mapping.OpBugAttachments:
		call.Attachments = &mapping.AttachmentsRequest{Bugs: []string{"1"}}
	case mapping.OpAttachment:
		call.Attachments = &mapping.AttachmentsRequest{Attachments: []string{"1"}}
	case mapping.OpCreateAttachment:
		call.CreateAttachment = &mapping.AttachmentCreate{Bugs: []string{"1"}}
	case mapping.OpUpdateAttachments:
		call.UpdateAttachments = &mapping.AttachmentUpdate{IDs: []int64{1}}
	default:
		t.Fatalf("%s has no request here", operation)
	}
	return call
}

// TestEveryOperationIsKnownEverywhere: the tables that say something of each operation have all of them. Those that are not
// exported are checked in their packages.
func TestEveryOperationIsKnownEverywhere(t *testing.T) {
	for _, operation := range mapping.Operations() {
		if operation.Title() == "" {
			t.Errorf("%s has no title", operation)
		}
		method, target := requestOf(t, operation).Line()
		if method != operation.Method() || strings.Count(target, "/") != strings.Count("/rest"+operation.Path(), "/") {
			t.Errorf("%s is asked for by %s %s, but its path is %s %s", operation, method, target, operation.Method(), operation.Path())
		}
		if found := recording.OperationOf(method, target); found != operation {
			t.Errorf("a recording takes %s %s for %q, want %s", method, target, found, operation)
		}
		if operation.IsWrite() == (operation.Method() == http.MethodGet) || operation.IsWrite() != (operation.Check() != "") {
			t.Errorf("%s is a write: %v, and its outcome is found out so: %q", operation, operation.IsWrite(), operation.Check())
		}
	}
}
