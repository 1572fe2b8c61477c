package clients

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portico/test/process"
)

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }

// devKey is the API key of a user of the fixture who may edit bugs. It is a test value.
const devKey = "DevKey0000000000000000000000000000000000"

// clientTime is how long one run of a client may take. Python starts slowly on a busy machine.
const clientTime = 2 * time.Minute

// world is a reference tracker with Portico before it, and a home for clients.
type world struct {
	// tracker and portico are where the two listen.
	tracker, portico string
	home             string
}

// open starts a tracker and Portico. It skips the test where a client cannot be run.
func open(t *testing.T, program, debianPackage string, trackerFlags ...string) *world {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not here, and could not be installed: Debian's package %s has it", program, debianPackage)
	}
	_, base := process.Tracker(t, process.FreeAddress(t), append([]string{"--seed", "fixture"}, trackerFlags...)...)
	return &world{tracker: base, portico: process.Serve(t, nil, "serve", "--tracker", base).Clients, home: t.TempDir()}
}

// run runs a client and returns its exit status and all that it wrote.
func (w *world) run(t *testing.T, input, program string, arguments ...string) (status int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientTime)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir, command.Stdin = w.home, strings.NewReader(input)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "LC_ALL=C.UTF-8", "TERM=dumb", "PYTHONDONTWRITEBYTECODE=1"}
	raw, err := command.CombinedOutput()
	if command.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("%s %q: %v, %v\n%s", program, arguments, err, ctx.Err(), raw)
	}
	return command.ProcessState.ExitCode(), string(raw)
}

// member reads a resource of the tracker as a user, past Portico, and returns the JSON of the member at a path.
func (w *world) member(t *testing.T, resource string, path ...any) string {
	t.Helper()
	response, err := http.Get(w.tracker + "/rest" + resource + "?api_key=" + devKey)
	must(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	must(t, err)
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v: %s", resource, err, raw)
	}
	for _, step := range path {
		if v = below(v, step); v == nil {
			break
		}
	}
	member, err := json.Marshal(v)
	must(t, err)
	return string(member)
}

// below returns the member or the element of a JSON value, and nil where it has none.
func below(v, step any) any {
	switch at := step.(type) {
	case string:
		members, _ := v.(map[string]any)
		return members[at]
	case int:
		if elements, _ := v.([]any); at < len(elements) {
			return elements[at]
		}
	}
	return nil
}

// want checks one member of a resource of the tracker.
func (w *world) want(t *testing.T, want, resource string, path ...any) {
	t.Helper()
	if got := w.member(t, resource, path...); got != want {
		t.Errorf("%v of %s is %s, want %s", path, resource, got, want)
	}
}

// wantBug checks fields of a bug on the tracker.
func (w *world) wantBug(t *testing.T, id int, fields map[string]string) {
	t.Helper()
	for name, want := range fields {
		w.want(t, want, fmt.Sprint("/bug/", id), "bugs", 0, name)
	}
}

// wantAttachment checks the newest attachment of the fixture, and its content.
func (w *world) wantAttachment(t *testing.T, bug int, fileName, content string) {
	t.Helper()
	w.want(t, fmt.Sprint(bug), "/bug/attachment/16", "attachments", "16", "bug_id")
	w.want(t, fmt.Sprintf("%q", fileName), "/bug/attachment/16", "attachments", "16", "file_name")
	w.want(t, fmt.Sprintf("%q", base64.StdEncoding.EncodeToString([]byte(content))), "/bug/attachment/16", "attachments", "16", "data")
}

// wantFile checks a file that a client has written.
func (w *world) wantFile(t *testing.T, name string, content []byte) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(w.home, name)); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file %s has %d bytes, want %d: %v", name, len(got), len(content), err)
	}
}
