package clients

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// TestPythonBugzilla runs a script with the library python-bugzilla over REST and XML-RPC, and checks what it was given and what it has done.
func TestPythonBugzilla(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("testdata/library.py")
	must(t, err)
	for name, path := range map[string]string{"REST": "/rest/", "XML-RPC": "/xmlrpc.cgi"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, "bugzilla", "bugzilla-cli")
			status, output := w.run(t, "", "/usr/bin/python3", script, w.portico+path, devKey)
			var given map[string]any
			if err := json.Unmarshal([]byte(output), &given); status != 0 || err != nil {
				t.Fatalf("exit status %d:\n%s", status, output)
			}
			for member, want := range map[string]string{
				"logged_in": "true", "bug": "11", "summary": `"filed by a bot"`, "resolution": `"FIXED"`, "flags": `"?"`,
				"comments": `["d","a bot's comment"]`, "attachments": `["b.bin"]`, "content": "true", "found": "[11]", "found_of_two": "[2]",
				"user": `"Test user plain"`, "version": "5",
			} {
				if got, _ := json.Marshal(given[member]); string(got) != want {
					t.Errorf("%s is %s, want %s", member, got, want)
				}
			}
			w.wantBug(t, 11, map[string]string{"severity": `"minor"`, "status": `"RESOLVED"`, "whiteboard": `"done"`, "cc": `["plain@example.com"]`})
			w.want(t, `"plain@example.com"`, "/bug/11", "bugs", 0, "flags", 0, "requestee")
			w.want(t, `"+"`, "/bug/attachment/16", "attachments", "16", "flags", 0, "status")
		})
	}
}
