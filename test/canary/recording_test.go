package canary

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// recorded runs portico record before a tracker, asks some things and gives the file.
func recorded(t *testing.T, base, key string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recorded.jsonl")
	f := process.Serve(t, nil, "record", "--tracker", base, "--out", file)
	for range 3 {
		must(t, http.MethodGet, f.Clients+"/rest/flag_type/WebShop?Bugzilla_api_key="+key, "")
		must(t, http.MethodGet, f.Clients+"/rest/flag_type/WebShop", "")
		must(t, http.MethodGet, f.Clients+"/rest/bug/2/attachment", "")
	}
	must(t, http.MethodPut, f.Clients+"/rest/bug/attachment/1", `{"summary":"new","api_key":"`+key+`"}`, "X-BUGZILLA-API-KEY: "+key)
	f.Signal(t, syscall.SIGTERM)
	if code := f.Wait(t, longest); code != 0 || !strings.Contains(f.Out.String(), "10 exchanges are in") {
		t.Errorf("portico record ended with %d: %s%s", code, &f.Out, &f.Err)
	}
	return file
}

// replay runs portico replay and gives what it prints with its exit code.
func replay(t *testing.T, env []string, args ...string) (printed string, code int) {
	t.Helper()
	p := process.Launch(t, process.Spec{Program: process.Portico(t), Args: append([]string{"replay"}, args...), Env: env, Fails: true})
	code = p.Wait(t, longest)
	return p.Out.String() + p.Err.String(), code
}

// TestRecordAndReplay: what was recorded holds no key, and tells a tracker that
// answers the same from one that does not.
func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	key := tracker.Keys(tracker.SeedDemo)["developer@demo.example"]
	_, base := process.Tracker(t, process.FreeAddress(t))
	file := recorded(t, base, key)
	text, err := os.ReadFile(file)
	process.Must(t, err)
	if strings.Contains(string(text), key) || strings.Contains(string(text), "@demo.example") || strings.Count(string(text), "{{caller-1}}") < 4 {
		t.Errorf("the recording shows a key or an address, or no placeholder:\n%s", text)
	}
	env := []string{"KEY=" + key}
	_, odd := process.Tracker(t, process.FreeAddress(t), "--quirk", "wrong-group-values")
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"same":             {[]string{file, "--tracker", base, "--key", "caller-1=KEY"}, 2, "9 compared, 0 differ"},
		"same, by chance":  {[]string{"--tracker", base, "--target", "100", "--key", "caller-1=KEY", file}, 0, "PASS"},
		"other":            {[]string{file, "--tracker", odd, "--key", "caller-1=KEY"}, 1, "flag_type.get"},
		"other, two sides": {[]string{file, "--tracker", odd, "--against", base, "--key", "caller-1=KEY"}, 1, "against " + base},
		"without keys":     {[]string{file, "--tracker", odd}, 2, "Not made: 3 (there is no value for caller-1; use --key or --keys)."},
		"no tracker":       {[]string{file, "--tracker", "http://127.0.0.1:1"}, 3, "cannot reach the tracker"},
		"no file":          {[]string{file + "x", "--tracker", base}, 3, "open the recording"},
		"writes":           {[]string{file, "--tracker", odd, "--writes", "--only", "attachment.update", "--key", "caller-1=KEY"}, 2, "Requests made: 1."},
	} {
		printed, code := replay(t, env, c.args...)
		if code != c.code || !strings.Contains(printed, c.says) {
			t.Errorf("%s: exit code %d, want %d with %q in\n%s", name, code, c.code, c.says, printed)
		}
		if strings.Contains(printed, key) {
			t.Errorf("%s: the key is printed", name)
		}
	}
}

// TestReplayOfAnotherFormOfError: BMO says error in two forms, and both are an error with its code.
func TestReplayOfAnotherFormOfError(t *testing.T) {
	t.Parallel()
	base := serveChanged(t, tracker.New(tracker.Options{Seed: tracker.SeedFixture}), nil)
	odd := serveChanged(t, tracker.New(tracker.Options{Seed: tracker.SeedFixture}), func(_ *http.Request, _ int64, status int, body []byte) (int, []byte) {
		return status, []byte(strings.ReplaceAll(string(body), `"error":true`, `"error":1`))
	})
	file := filepath.Join(t.TempDir(), "recorded.jsonl")
	f := process.Serve(t, nil, "record", "--tracker", base, "--out", file)
	call(t, http.MethodGet, f.Clients+"/rest/bug/999/attachment", "")
	f.Signal(t, syscall.SIGTERM)
	f.Wait(t, longest)
	printed, code := replay(t, nil, file, "--tracker", odd, "--confirm-after", "1ms", "--output", "json")
	if code != 1 || strings.Count(printed, `"class"`) != 1 || !strings.Contains(printed, `"path": "$.error"`) || !strings.Contains(printed, "boolean → integer") {
		t.Errorf("exit code %d\n%s", code, printed)
	}
}

// TestReplayOfKeysInHeaders: Portico reads keys in headers, and the tracker behind it does not. A recording of such requests is
// replayed straight at that tracker without a difference.
func TestReplayOfKeysInHeaders(t *testing.T) {
	t.Parallel()
	key := tracker.Keys(tracker.SeedFixture)["admin@example.com"]
	_, base := process.Tracker(t, process.FreeAddress(t), "--seed", "fixture")
	file := filepath.Join(t.TempDir(), "recorded.jsonl")
	f := process.Serve(t, nil, "record", "--tracker", base, "--out", file)
	for _, target := range []string{"/rest/flag_type/SecretProduct", "/rest/bug/attachment/2", "/rest/bug/5/attachment"} {
		must(t, http.MethodGet, f.Clients+target, "", "X-BUGZILLA-API-KEY: "+key)
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
