package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"portico/test/process"
)

// TestPlanShowsEveryLine: rules that go, stay, come and change, what other paths follow from the last rule, and the preconditions.
func TestPlanShowsEveryLine(t *testing.T) {
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = w.Write([]byte(`{"version":3,"state":"fails","steps":[{"rule":"rest","from":{"reads":"old","writes":"old"},
				"to":{"reads":"new","writes":"old"},"preconditions":[{"name":"verdict","state":"fails","value":"FAIL of 9"}],"going_back":{"state":"safe"}}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"version":3,"old":"a","new":"b","table":{"rules":[
			{"name":"gone","products":["A, B"],"reads":"new","writes":"old"},
			{"name":"stays","bugs":[{"from":1,"to":5}],"percent":10,"reads":"new","writes":"old"},
			{"name":"rest","reads":"old","writes":"old"}]},"callers":["robot"]}`))
	}))
	defer listener.Close()
	const rules = "rules: [{name: stays, bugs: 1-5, percent: 10, reads: new, writes: old}, " +
		"{name: comes, caller: robot, operation: attachment.get, reads: new, writes: old}, {name: rest, reads: new, writes: old}]\n"
	file := writeFile(t, "rules.yaml", rules)
	code, stdout, stderr := portico(t, nil, "migrate", "plan", file, "--admin", listener.URL)
	want := `- gone: reads new, writes old, product "A, B"
  stays: reads new, writes old, bugs 1-5; 10 % of the callers
- rest: reads old, writes old, everything
- (other paths): reads old, writes old
+ comes: reads new, writes old, operation attachment.get; caller robot
+ rest: reads new, writes old, everything
+ (other paths): reads new, writes old
Version 3: not ready
rest: reads old, writes old → reads new, writes old; going back is safe
  verdict  fails  FAIL of 9
Apply it with: portico migrate apply ` + file + ` --version 3 --actor NAME --reason TEXT
`
	if code != exitFailed || stdout != want {
		t.Errorf("exit %d\n%s\nwant\n%s", code, stdout, want)
	}
	command := exec.CommandContext(t.Context(), process.Portico(t), "migrate", "plan", "-", "--admin", listener.URL)
	command.Stdin = strings.NewReader(rules)
	if output, err := command.Output(); command.ProcessState.ExitCode() != exitFailed || string(output) != strings.ReplaceAll(want, file, "-") {
		t.Errorf("from standard input: %v\n%s", err, output)
	}
	if want := "warning: the dialect of tracker a is not known yet, nor whether it has the flag type writes that rules send to it\n"; stderr != want {
		t.Errorf("the warnings are %q", stderr)
	}
}

// TestReverseWaitsForTheCopies: the step back is asked for once the old tracker has nearly everything, and at once where waiting would not help.
func TestReverseWaitsForTheCopies(t *testing.T) {
	t.Parallel()
	for state, questions := range map[string]int64{"drain": 2, "unsafe": 1} {
		var asked, reversed atomic.Int64
		listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			left := 90
			if r.Method == http.MethodPost {
				reversed.Store(asked.Load())
			} else if asked.Add(1) > 1 {
				left = 10
			}
			fmt.Fprintf(w, `{"version":3,"old":"a","new":"b","rules":[{"rule":{"name":"all","reads":"new-compare","writes":"new-compare","replicate":true},
				"going_back":{"state":%q,"drain":%d,"seconds":%d}}]}`, state, left, left/10)
		}))
		code, _, stderr := portico(t, nil, "migrate", "reverse", "all", "--actor", "ada", "--reason", "x", "--admin", listener.URL)
		listener.Close()
		if code != exitOK || reversed.Load() != questions || strings.Contains(stderr, "safe after draining 90 entries (about 9 s)") != (state == "drain") {
			t.Errorf("%s: exit %d after %d questions: %s", state, code, reversed.Load(), stderr)
		}
	}
}

// TestJournalNeedsAStore: only start makes one, since an empty one in the wrong directory would say that nothing waits.
func TestJournalNeedsAStore(t *testing.T) {
	at := filepath.Join(t.TempDir(), "portico.db")
	file := writeFile(t, "c.yaml", withTracker+"state: sqlite:"+at+"\n")
	signed := []string{"--config", file, "--actor", "me", "--reason", "r"}
	for _, words := range []string{"list", "show 1", "retry 1", "resume"} {
		code, stdout, stderr := portico(t, nil, append(strings.Fields("migrate journal "+words), signed...)...)
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, "there is no store at sqlite:"+at+" yet\n") {
			t.Errorf("%s: exit %d\n%s%s", words, code, stdout, stderr)
		}
	}
	if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store: %v", err)
	}
	for _, words := range []string{"start", "list"} {
		if code, stdout, stderr := portico(t, nil, append(strings.Fields("migrate journal "+words), signed...)...); code != exitOK {
			t.Errorf("%s: exit %d\n%s%s", words, code, stdout, stderr)
		}
	}
	if code, _, stderr := portico(t, nil, "migrate", "journal", "resume", "--config", file, "--actor", "me"); code != exitUsage || !strings.Contains(stderr, "needs --actor and --reason") {
		t.Errorf("without a reason: exit %d\n%s", code, stderr)
	}
}
