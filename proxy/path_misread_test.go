package proxy

import (
	"slices"
	"strings"
	"testing"
)

func TestMisread(t *testing.T) {
	for _, path := range []string{
		"/rest/bug/attachment", "/rest/bug/attachment/", "/rest.cgi/bug/attachment", "/rest/bug%2Fattachment",
		"/rest%2Fbug%2fattachment%2F", "/rest/%2562ug/attachment", "/rest/bug/%252561ttachment", "/rest/bug/x%2F..%2Fattachment",
		"/rest/bug%5Cattachment", "/REST/bug/attachment", "/rest/bug/%252525252525252525252561", "/rest/bug/attachment%3Fx",
		"/rest/bug/attachment%23x", "/rest/bug/attachment%00", "/rest/bug/attachment%2F%253Fx/5", "/rest/bug/x%3F%2F..%2Fattachment",
		"/rest/flag_type%2F5", "/rest%2Fflag_type/5", "/rest/bug%2F7%2Fattachment", "/rest/bug/attachment%20", "/rest/bug/%20attachment",
		"/rest/bug/attachment%0a", "/rest/bug/attachment.", "/rest/bug/attachment;a", "/rest/bug/..;/user", "/rest/bug/..%c0%afuser",
		"/rest/bug/%c0%ae%c0%ae/user", "/rest/bug/%e0%80%ae./user", "/rest/bug/%f0%80%80%ae./user", "/rest/bug/7/attachment%09",
		"/rest/bug/attachment%c2%a0/1", "/rest/bug/attachment%ff/1", "/rest/bug/attachment%e2%80%8b/1", "/rest/bug/attachment;a/1", "/rest./flag_type",
		"/jsonrpc.cgi;a", "/editflagtypes.cgi%20", "/xmlrpc.cgi%2Fx", "/x/..%20/y",
	} {
		if !misread(path, true) {
			t.Errorf("%s would pass", path)
		}
	}
	for _, path := range []string{
		"/", "/rest/bug/attachments", "/rest/bug/5", "/rest/bug/attachment/1", "/rest/bug", "/bug/attachment", "/100%25",
		"/rest/bug/5%3Fattachment", "/rest/bug/attachments%3F", "/rest/user/a%2Fb", "/rest/product/a;b", "/rest/flag_type/a/b/c",
		"/jsonrpc.cgi", "/jsonrpc.cgi/x", "/rest/bug/Gr%F6%DFe", "/show_bug.cgi/...",
	} {
		if misread(path, true) {
			t.Errorf("%s would not pass", path)
		}
	}
	if misread("/rest/bug/attachment", false) {
		t.Error("a read of the collection would not pass")
	}
}

// However the path of an operation is spelled, it is routed as one or does not pass.
func FuzzMisread(f *testing.F) {
	f.Add(uint8(0), uint16(9), uint8(0), uint8(1))
	f.Add(uint8(2), uint16(20), uint8(5), uint8(0))
	operations := []string{"/rest/flag_type", "/rest/flag_type/5", "/rest/flag_type/P/C", "/rest.cgi/bug/7/attachment", "/rest/bug/attachment/1"}
	odd := []string{"%20", "%0a", "%09", "%c2%a0", "%00", ";a", ";", ".", "%ff", "%e2%80%8b"}
	slashes := []string{"/", "%2F", "%5C", "%c0%af", "%252f", "%e0%80%af"}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, what, slash uint8) {
		path := operations[int(which)%len(operations)]
		segments := strings.Split(path[1:], "/")
		i := int(at) % len(segments)
		segments[i] += odd[int(what)%len(odd)]
		spelled := "/" + strings.Join(segments[:i+1], "/")
		if rest := segments[i+1:]; len(rest) > 0 {
			spelled += slashes[int(slash)%len(slashes)] + strings.Join(rest, "/")
		}
		normal, err := normalPath(spelled)
		if err == nil && !isRouted(normal) && !misread(normal, true) {
			t.Fatalf("%s passes", normal)
		}
	})
}

// isRouted reports whether a normal path has the segments of an operation as they are written in interface.md.
func isRouted(path string) bool {
	s := strings.Split(strings.TrimSuffix(path, "/"), "/")[1:]
	if len(s) < 2 || len(s) > 4 || s[0] != "rest" && s[0] != "rest.cgi" {
		return false
	}
	return s[1] == "flag_type" || s[1] == "bug" && len(s) == 4 && slices.Contains(s[2:], "attachment")
}
