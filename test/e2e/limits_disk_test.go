package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portico/test/process"
)

// startOnSmallDisk runs `portico serve` whose folder for payloads holds a megabyte. The folder is a file system
// that only this process sees and that ends with it.
func startOnSmallDisk(t *testing.T, tracker string) *client {
	t.Helper()
	folder := t.TempDir()
	const mount = `mount -t tmpfs -o size=1m none "$0" && exec "$@"`
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", mount, folder, "true").CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here, which takes root and unshare: %v: %s", err, out)
	}
	p := process.ServeVia(t, []string{"unshare", "--mount", "sh", "-c", mount, folder}, []string{"BLOBS_DIR=" + folder}, "serve", "--tracker", tracker)
	return &client{base: p.Clients, keys: keys()}
}

// Where the disk is full, clients get Retry-After, and small requests go on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	_, tracker := startTracker(t, process.FreeAddress(t))
	c := startOnSmallDisk(t, tracker)
	refusedForNow(t, c)
}

// The same holds where the folder for payloads is gone, and for every payload where none stays in memory.
func TestMissingBlobFolder(t *testing.T) {
	t.Parallel()
	_, tracker := startTracker(t, process.FreeAddress(t))
	folder := filepath.Join(t.TempDir(), "gone")
	start := func(env ...string) *client {
		must(t, os.Mkdir(folder, 0o700))
		defer os.Remove(folder)
		return startFacade(t, tracker, append(env, "BLOBS_DIR="+folder)...).client
	}
	refusedForNow(t, start())
	start("BLOBS_MEMORY=0").post(t, "admin", "/rest/bug/1/attachment", upload(`"content_type":"text/plain"`)).refused(t, http.StatusServiceUnavailable, 200503)
}

func refusedForNow(t *testing.T, c *client) {
	t.Helper()
	const list = "/rest/bug/1/attachment?include_fields=id"
	content := base64.StdEncoding.EncodeToString(make([]byte, 3<<20))
	large := fmt.Sprintf(`{"data":%q,"file_name":"large","summary":"large","content_type":"text/plain"}`, content)
	before := c.get(t, "admin", list).ok(t, http.StatusOK)
	for _, a := range []ask{
		{method: http.MethodPost, path: "/rest/bug/1/attachment", user: "admin", body: large},
		{method: http.MethodPost, path: "/xmlrpc.cgi", user: "admin", body: strings.Repeat("x", 3<<20)},
	} {
		start := time.Now()
		got := c.do(t, a).refused(t, http.StatusServiceUnavailable, 200503)
		if got.header.Get("Retry-After") == "" || got.header.Get("Portico-Error") != "overload" {
			t.Errorf("%s %s: %v after %v", a.method, a.path, got.header, time.Since(start))
		}
	}
	if after := c.get(t, "admin", list).ok(t, http.StatusOK); after.value(t, "bugs.1") != before.value(t, "bugs.1") {
		t.Errorf("the attachments are %s, and were %s", after.value(t, "bugs.1"), before.value(t, "bugs.1"))
	}
	c.post(t, "admin", "/rest/bug/1/attachment", upload(`"content_type":"text/plain"`)).ok(t, http.StatusCreated)
}
