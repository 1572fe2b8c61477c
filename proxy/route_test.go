package proxy_test

import (
	"strings"
	"testing"

	"portico/proxy"
)

// Every row is a known path with a method that it does not have, or one that looks like a known path.
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
		response := ask(t, c[0], base+c[1], "")
		response.wantError(t, 404, "32614")
		if got := response.header.Get("Portico-Error"); got != "no-such-resource" {
			t.Errorf("%s %s: Portico-Error %q", c[0], c[1], got)
		}
	}
	if calls := tracker.asked(); len(calls) != 0 {
		t.Errorf("the tracker was asked: %v", calls)
	}
}

func TestMessageShowsThePathWithoutQuery(t *testing.T) {
	base := serve(t, proxy.Options{})
	response := ask(t, "DELETE", base+"/rest/flag_type/A%2FB?api_key=SECRET", "")
	if message := response.member(t, "message"); !strings.Contains(message, "DELETE /flag_type/A/B") || strings.Contains(message, "SECRET") {
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

func TestMethodOverrideIsIgnored(t *testing.T) {
	base := serve(t, proxy.Options{})
	ask(t, "POST", base+"/rest/bug/attachment/1"+key, `{}`, "X-HTTP-Method-Override", "PUT").wantError(t, 404, "32614")
}
