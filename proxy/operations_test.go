package proxy_test

import (
	"context"
	"io"
	"reflect"
	"testing"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

const key = "?api_key=EditorKey"

func TestFlagTypesByProduct(t *testing.T) {
	var got mapping.FlagTypesRequest
	tracker := &fakeTracker{flagTypes: func(_ context.Context, _ upstream.Caller, request mapping.FlagTypesRequest) (mapping.Reply, error) {
		got = request
		return mapping.Reply{Document: document(noFlagTypes)}, nil
	}}
	base := serve(t, proxy.Options{Tracker: tracker})
	cases := []struct {
		path string
		want mapping.FlagTypesRequest
	}{
		{"/rest/flag_type/P", mapping.FlagTypesRequest{Product: "P"}},
		{"/rest.cgi/flag_type/P", mapping.FlagTypesRequest{Product: "P"}},
		{"/rest/flag_type/P/C", mapping.FlagTypesRequest{Product: "P", Component: "C"}},
		{"/rest/flag_type/A%2FB", mapping.FlagTypesRequest{Product: "A/B"}},
		{"/rest/flag_type/A%2FB/C%2fD", mapping.FlagTypesRequest{Product: "A/B", Component: "C/D"}},
		{"/rest/flag_type/A%252FB", mapping.FlagTypesRequest{Product: "A%2FB"}},
		{"/rest/flag_type/A+B%20&%20C", mapping.FlagTypesRequest{Product: "A+B & C"}},
		{"/rest/flag_type/%C3%9Cn", mapping.FlagTypesRequest{Product: "Ün"}},
		{"/rest/flag_type/P?component=comp/slash", mapping.FlagTypesRequest{Product: "P", Component: "comp/slash"}},
		{"/rest/flag_type/P?component=a+b;x=1", mapping.FlagTypesRequest{Product: "P", Component: "a b"}},
		{"/rest/flag_type/P/C?component=D", mapping.FlagTypesRequest{Product: "P", Component: "C"}},
		{"/rest/flag_type/P?product=Q", mapping.FlagTypesRequest{Product: "P"}},
		{"//rest/./x/%2e%2E//%66lag_type//P", mapping.FlagTypesRequest{Product: "P"}},
	}
	for _, c := range cases {
		got = mapping.FlagTypesRequest{}
		response := ask(t, "GET", base+c.path, "")
		if response.status != 200 || response.body != noFlagTypes || got != c.want {
			t.Errorf("%s: %d %s asked for %+v, want %+v", c.path, response.status, response.body, got, c.want)
		}
	}
	ask(t, "GET", base+"/rest/flag_type/P?component=a&component=b", "").wantError(t, 404, "51")
}

func TestReadAttachmentsJoinsQueryAndPath(t *testing.T) {
	var got mapping.AttachmentsRequest
	note := func(_ context.Context, _ upstream.Caller, request mapping.AttachmentsRequest) (mapping.Reply, error) {
		got = request
		return mapping.Reply{Document: document(`{"bugs":{},"attachments":{}}`)}, nil
	}
	base := serve(t, proxy.Options{Tracker: &fakeTracker{bugAttachments: note, attachment: note}})
	cases := []struct {
		path string
		want mapping.AttachmentsRequest
	}{
		{"/rest/bug/5/attachment", mapping.AttachmentsRequest{Bugs: []string{"5"}}},
		{"/rest.cgi/bug/alias-one/attachment", mapping.AttachmentsRequest{Bugs: []string{"alias-one"}}},
		{"/rest/bug/attachment/attachment", mapping.AttachmentsRequest{Bugs: []string{"attachment"}}},
		{"/rest/%62ug/attachment/1", mapping.AttachmentsRequest{Attachments: []string{"1"}}},
		{"/rest/bug/5/attachment?ids=3&ids=4&attachment_ids=9", mapping.AttachmentsRequest{Bugs: []string{"5", "3", "4"}, Attachments: []string{"9"}}},
		{"/rest/bug/attachment/1?ids=5&attachment_ids=6", mapping.AttachmentsRequest{Bugs: []string{"5"}, Attachments: []string{"1", "6"}}},
		{"/rest/bug/attachment/1?include_fields=id,size&include_fields=flags+data%2Bx&exclude_fields=data", mapping.AttachmentsRequest{
			Attachments: []string{"1"}, Include: []string{"id", "size", "flags", "data", "x"}, Exclude: []string{"data"}}},
		{"/rest/bug/5/attachment?include_fields=id;exclude_fields=summary", mapping.AttachmentsRequest{
			Bugs: []string{"5"}, Include: []string{"id"}, Exclude: []string{"summary"}}},
		{"/rest/bug/5/attachment?include_fields=", mapping.AttachmentsRequest{Bugs: []string{"5"}}},
		{"/rest/bug/5/attachment?foo=%zz&x=%ff", mapping.AttachmentsRequest{Bugs: []string{"5"}}},
	}
	for _, c := range cases {
		got = mapping.AttachmentsRequest{}
		response := ask(t, "GET", base+c.path, "")
		if response.status != 200 || !same(got, c.want) {
			t.Errorf("%s: %d %s asked for %+v, want %+v", c.path, response.status, response.body, got, c.want)
		}
	}
	ask(t, "GET", base+"/rest/bug/attachment/abc", "").wantError(t, 400, "52")
	ask(t, "GET", base+"/rest/bug/attachment/1?attachment_ids=abc", "").wantError(t, 400, "52")
}

// same compares requests, an empty list being as good as none.
func same(a, b mapping.AttachmentsRequest) bool {
	equal := func(x, y []string) bool { return len(x) == 0 && len(y) == 0 || reflect.DeepEqual(x, y) }
	return equal(a.Bugs, b.Bugs) && equal(a.Attachments, b.Attachments) &&
		equal(a.Include, b.Include) && equal(a.Exclude, b.Exclude)
}

// created records what reached CreateAttachment, its content read while it was open.
type created struct {
	mapping.AttachmentCreate
	content string
	caller  upstream.Caller
}

func recordCreates(into *created) *fakeTracker {
	return &fakeTracker{createAttachment: func(_ context.Context, caller upstream.Caller, request mapping.AttachmentCreate) (mapping.Reply, error) {
		text, err := io.ReadAll(request.Data.Reader())
		*into = created{request, string(text), caller}
		return mapping.Reply{Document: document(`{"ids":[11]}`)}, err
	}}
}
