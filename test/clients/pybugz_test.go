package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPyBugz files, finds, changes and reads a bug with the program bugz, which speaks XML-RPC only.
func TestPyBugz(t *testing.T) {
	t.Parallel()
	w := open(t, "bugz", "bugz")
	bugz := func(want int, arguments ...string) string {
		t.Helper()
		status, output := w.run(t, "", "bugz", append([]string{"-b", w.portico + "/xmlrpc.cgi", "-k", devKey}, arguments...)...)
		if status != want {
			t.Errorf("bugz %q ended with %d:\n%s", arguments, status, output)
		}
		return output
	}
	contains := func(output string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(output, part) {
				t.Errorf("no %q in:\n%s", part, output)
			}
		}
	}
	contains(bugz(0, "post", "--batch", "--product", "TestProduct", "--component", "Comp B", "--version", "unspecified", "-t", "filed by bugz", "-d", "text",
		"--priority", "High"), "Bug 11 submitted")
	w.wantBug(t, 11, map[string]string{"summary": `"filed by bugz"`, "component": `"Comp B"`, "priority": `"High"`, "creator": `"dev@example.com"`})
	contains(bugz(0, "search", "by", "bugz"), "11 ", "1 bug(s) found")
	contains(bugz(0, "get", "1"), "Title       : bug one", "Reporter    : dev@example.com", "Attachments : 7", "desc of bug one")
	contains(bugz(1, "get", "99"), "99")

	contains(bugz(0, "modify", "2", "-c", "a comment", "-t", "renamed", "--fixed", "--add-cc", "plain@example.com"), "resolution  : added FIXED")
	w.wantBug(t, 2, map[string]string{"summary": `"renamed"`, "status": `"RESOLVED"`, "resolution": `"FIXED"`, "cc": `["plain@example.com"]`})
	w.want(t, `"a comment"`, "/bug/2/comment", "bugs", "2", "comments", 1, "text")
	bugz(0, "modify", "7", "--duplicate", "2")
	w.wantBug(t, 7, map[string]string{"resolution": `"DUPLICATE"`, "dupe_of": "2"})

	must(t, os.WriteFile(filepath.Join(w.home, "up.txt"), []byte("sent by bugz\n"), 0o600))
	contains(bugz(0, "attach", "2", "up.txt", "-t", "described", "-c", "text/plain", "-d", "with words"), "up.txt (16) has been attached to bug 2")
	w.wantAttachment(t, 2, "up.txt", "sent by bugz\n")
	bugz(0, "attachment", "1")
	w.wantFile(t, "public.txt", []byte("hello public\n"))
}
