package canary

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// TestReplayOfKeysInHeaders: Portico reads keys in headers, and the tracker behind it does not. A recording of such requests is
// replayed straight at that tracker without a difference.
func TestReplayOfKeysInHeaders(t *testing.T) {
	t.Parallel()
	key := tracker.Keys(tracker.SeedFixture)["admin@example.com"]
	_, base := process.Tracker(t, process.FreeAddress(t), "--seed", "fixture")
	file := filepath.Join(t.TempDir(), "recorded.jsonl")
	f := process.Serve(t, nil, "record", "--tracker", base, "--out", file)
	for _, target := range []string{"/rest/flag_type/SecretProduct", "/rest/bug/attachment/2", "/rest/bug/5/attachment"} {
		ask(t, http.MethodGet, f.Clients+target, key, "")
	}
	f.Signal(t, syscall.SIGTERM)
	f.Wait(t, longest)
	printed, code := replay(t, []string{"KEY=" + key}, file, "--tracker", base, "--target", "100", "--key", "caller-1=KEY")
	if code != 0 || !strings.Contains(printed, "3 compared, 0 differ") || !strings.Contains(printed, "3 had a credential in a header") {
		t.Errorf("exit code %d\n%s", code, printed)
	}
	if strings.Contains(printed, key) {
		t.Errorf("the key is printed:\n%s", printed)
	}
}
