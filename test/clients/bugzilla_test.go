package clients

import (
	"os"
	"path/filepath"
	"portico/test/process"
	"strings"
	"testing"
)

// command is the program bugzilla with a key in its configuration.
type command struct {
	*world
	url string
}

// openCommand writes the configuration of the program, which names keys by host.
func openCommand(t *testing.T, path, key string) *command {
	t.Helper()
	w := open(t, "bugzilla", "bugzilla-cli")
	folder := filepath.Join(w.home, ".config", "python-bugzilla")
	must(t, os.MkdirAll(folder, 0o700))
	_, host, _ := strings.Cut(w.portico, "//")
	must(t, os.WriteFile(filepath.Join(folder, "bugzillarc"), []byte("["+host+"]\napi_key="+key+"\n"), 0o600))
	return &command{world: w, url: w.portico + path}
}

// try runs the program with an input and returns whether it succeeded.
func (c *command) try(t *testing.T, input string, arguments ...string) (ok bool, output string) {
	t.Helper()
	status, output := c.run(t, input, "bugzilla", append([]string{"--bugzilla", c.url}, arguments...)...)
	return status == 0, output
}

// must runs the program, which has to succeed.
func (c *command) must(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	ok, output := c.try(t, input, arguments...)
	if !ok {
		t.Fatalf("bugzilla %q failed:\n%s", arguments, output)
	}
	return output
}

// TestBugzillaCommand files, finds, changes and reads a bug with the program bugzilla, over REST and over XML-RPC. A URL without a path is one
// for XML-RPC to this program.
func TestBugzillaCommand(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"REST": "/rest/", "XML-RPC": "/xmlrpc.cgi", "host": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := openCommand(t, path, devKey)
			t.Run("new", c.files)
			t.Run("query", c.queries)
			t.Run("modify", c.modifies)
			t.Run("attach", c.attaches)
			t.Run("errors", c.fails)
		})
	}
}

func (c *command) files(t *testing.T) {
	output := c.must(t, "", "new", "-p", "TestProduct", "-c", "Comp B", "-v", "unspecified", "-t", "filed by a program", "-l", "first comment",
		"--priority", "High", "-o", "Linux", "--cc", "plain@example.com", "--assignee", "dev@example.com")
	if !strings.HasPrefix(output, "#11 ") {
		t.Errorf("the program said %q", output)
	}
	c.wantBug(t, 11, map[string]string{"summary": `"filed by a program"`, "component": `"Comp B"`, "creator": `"dev@example.com"`,
		"priority": `"High"`, "op_sys": `"Linux"`, "cc": `["plain@example.com"]`, "assigned_to": `"dev@example.com"`})
	c.want(t, `"first comment"`, "/bug/11/comment", "bugs", "11", "comments", 0, "text")
}

// queries expects the bug that files has made.
func (c *command) queries(t *testing.T) {
	for _, asked := range [][]string{{"-p", "TestProduct", "-t", "filed program"}, {"-a", "dev@example.com"}, {"-b", "11"}, {"--priority", "High", "-s", "CONFIRMED"}} {
		if found := c.must(t, "", append([]string{"query", "-i"}, asked...)...); found != "11\n" {
			t.Errorf("query %q found %q", asked, found)
		}
	}
	if found := c.must(t, "", "query", "-b", "99"); found != "" {
		t.Errorf("a bug that does not exist is %q", found)
	}
	if shown := c.must(t, "", "query", "-b", "2", "--json"); !strings.Contains(shown, `"summary": "bug two"`) {
		t.Errorf("bug 2 is %s", shown)
	}
	if shown := c.must(t, "", "info", "-c", "TestProduct"); !strings.Contains(shown, "comp/slash\n") {
		t.Errorf("the components are %s", shown)
	}
}

func (c *command) modifies(t *testing.T) {
	c.must(t, "", "modify", "2", "-l", "a comment")
	c.want(t, `"a comment"`, "/bug/2/comment", "bugs", "2", "comments", 1, "text")
	c.must(t, "", "modify", "2", "--flag", "needinfo?")
	c.want(t, `"needinfo"`, "/bug/2", "bugs", 0, "flags", 0, "name")
	c.want(t, `"?"`, "/bug/2", "bugs", 0, "flags", 0, "status")
	if found := c.must(t, "", "query", "-i", "--flag", "needinfo?"); found != "2\n" {
		t.Errorf("the bugs with the flag are %q", found)
	}
	c.must(t, "", "modify", "2", "--flag", "needinfoX")
	c.must(t, "", "modify", "2", "-s", "RESOLVED", "--field", "resolution=WONTFIX", "--severity", "major", "--cc", "plain@example.com")
	c.wantBug(t, 2, map[string]string{"flags": "[]", "status": `"RESOLVED"`, "resolution": `"WONTFIX"`, "severity": `"major"`, "cc": `["plain@example.com"]`})
}

// attaches attaches what it gives on the standard input and downloads it again.
func (c *command) attaches(t *testing.T) {
	const content = "attached by a program\nwith ü\n"
	if output := c.must(t, content, "attach", "2", "-f", "a.txt", "-d", "described", "-t", "text/plain"); output != "Created attachment 16 on bug 2\n" {
		t.Errorf("the program said %q", output)
	}
	c.wantAttachment(t, 2, "a.txt", content)
	c.must(t, "", "attach", "--getall", "2")
	c.wantFile(t, "a.txt", []byte(content))
	large := make([]byte, 1_000_000)
	for i := range large {
		large[i] = byte(31*i + 7*(i>>8) + i>>16)
	}
	c.must(t, "", "attach", "--get", "4")
	c.wantFile(t, "blob.bin", large)
}

func (c *command) fails(t *testing.T) {
	code := map[bool]string{true: "404 Client Error", false: "<Fault 101: "}[strings.HasSuffix(c.url, "/rest/")]
	if ok, output := c.try(t, "", "modify", "99", "-l", "lost"); ok || !strings.Contains(output, code) {
		t.Errorf("a comment on a missing bug: %v %s", ok, output)
	}
	if ok, output := c.try(t, "", "modify", "2", "--flag", "unknown?"); ok {
		t.Errorf("a flag of a type that does not exist: %s", output)
	}
	if ok, output := c.try(t, "", "--ensure-logged-in", "query", "-b", "1"); !ok {
		t.Errorf("the key is no login: %s", output)
	}
}

// TestBugzillaCommandWithABadKey sees that the tracker's refusal arrives and that nothing prints the key.
func TestBugzillaCommandWithABadKey(t *testing.T) {
	t.Parallel()
	key := "InvalidKey000000000000000000000000000000"
	for _, path := range []string{"/rest/", "/xmlrpc.cgi"} {
		c := openCommand(t, path, key)
		ok, output := c.try(t, "", "--ensure-logged-in", "modify", "2", "-l", "unwanted")
		if ok || strings.Contains(output, key) {
			t.Errorf("%s: %v %s", path, ok, output)
		}
		c.want(t, "null", "/bug/2/comment", "bugs", "2", "comments", 1)
	}
}

// TestBugzillaCommandLogsIn logs in with a password and writes with the token that the program keeps.
func TestBugzillaCommandLogsIn(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/rest/", "/xmlrpc.cgi"} {
		c := openCommand(t, path, "")
		if ok, output := c.try(t, "", "modify", "2", "-l", "anonymous"); ok {
			t.Errorf("%s: a write without a login: %s", path, output)
		}
		c.must(t, "", "login", "dev@example.com", "password1")
		c.must(t, "", "--ensure-logged-in", "modify", "2", "-l", "by token")
		c.want(t, `"by token"`, "/bug/2/comment", "bugs", "2", "comments", 1, "text")
		c.want(t, `"dev@example.com"`, "/bug/2/comment", "bugs", "2", "comments", 1, "creator")
	}
}

var must = process.Must
