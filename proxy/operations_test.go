package proxy_test

import (
	"reflect"
	"strings"
	"testing"

	"portico/mapping"
	"portico/proxy"
)

const key = "?api_key=EditorKey"

func TestFlagTypesByProduct(t *testing.T) {
	tracker := &fakeTracker{}
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
		response, got := ask(t, "GET", base+c.path, ""), *tracker.last.FlagTypes
		if response.status != 200 || response.body != noFlagTypes || got != c.want {
			t.Errorf("%s: %d %s asked for %+v, want %+v", c.path, response.status, response.body, got, c.want)
		}
	}
	ask(t, "GET", base+"/rest/flag_type/P?component=a&component=b", "").wantError(t, 404, "51")
}

func TestReadAttachmentsJoinsQueryAndPath(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker})
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
		response, got := ask(t, "GET", base+c.path, ""), *tracker.last.Attachments
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

// Every row is a known path with a method that it does not have, whatever method a header names, or one that looks like a known path.
func TestUnknownResources(t *testing.T) {
	tracker := &fakeTracker{}
	base := serve(t, proxy.Options{Tracker: tracker})
	for _, c := range [][2]string{
		{"PATCH", "/rest/bug/5/attachment"}, {"DELETE", "/rest/bug/attachment/1"}, {"FOO", "/rest/bug/attachment/1"},
		{"get", "/rest/bug/5/attachment"}, {"POST", "/rest/bug/attachment/1"}, {"PUT", "/rest/bug/5/attachment"},
		{"POST", "/rest/flag_type/P"}, {"PUT", "/rest/flag_type/P/C"}, {"PUT", "/rest/flag_type"}, {"GET", "/rest/flag_type"},
		{"DELETE", "/rest.cgi/flag_type/P"}, {"TRACE", "/rest/bug/5/attachment"}, {"TRACE", "/index.cgi"},
		{"GET", "/rest/flag_type/"}, {"GET", "/rest/flag_type/P/"}, {"GET", "/rest/flag_type/P/C/"},
		{"GET", "/rest/bug/5/attachment/"}, {"GET", "/rest/bug/attachment/1/"}, {"OPTIONS", "/rest/bug/attachment/1/"},
		{"GET", "/rest/Bug/5/attachment"}, {"GET", "/REST/bug/5/attachment"}, {"GET", "/rest/flag_type/P/C/more"},
		{"GET", "/rest/nope"}, {"POST", "/rest/nope"}, {"OPTIONS", "/rest/nope"}, {"GET", "/rest/"}, {"GET", "/rest"}, {"GET", "/"},
	} {
		response := ask(t, c[0], base+c[1]+"?api_key=SECRET", "", "X-HTTP-Method-Override", "PUT")
		response.wantError(t, 404, "32614")
		if got := response.header.Get("Portico-Error"); got != "no-such-resource" || strings.Contains(response.body, "SECRET") {
			t.Errorf("%s %s: Portico-Error %q in %s", c[0], c[1], got, response.body)
		}
	}
	if calls := tracker.asked(); len(calls) != 0 {
		t.Errorf("the tracker was asked: %v", calls)
	}
	if message := ask(t, "DELETE", base+"/rest/flag_type/A%2FB", "").member(t, "message"); !strings.Contains(message, "DELETE /flag_type/A/B") {
		t.Errorf("message %s", message)
	}
}

func TestHeadIsA404WithoutBody(t *testing.T) {
	watcher, records := finishing()
	base := serve(t, proxy.Options{Observer: watcher})
	response := ask(t, "HEAD", base+"/rest/flag_type/P", "")
	if got := <-records; got.Bytes != 0 {
		t.Errorf("%d bytes were counted", got.Bytes)
	}
	if response.status != 404 || response.body != "" || response.header.Get("Content-Type") != "application/json; charset=UTF-8" {
		t.Errorf("got %+v", response)
	}
}
