package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// TestVerdictIsTheExitCode asks for every verdict, and a listener that is not there.
func TestVerdictIsTheExitCode(t *testing.T) {
	t.Parallel()
	// With half of the answers allowed to differ five comparisons are enough.
	p := startPair(t, tracker.Options{}, "canary: {target: 50, confirm_after: 10ms}\n")
	p.commandWants(t, 2, "INCONCLUSIVE", "canary", "verdict")
	for range 12 {
		get(t, p.clients+"/rest/bug/1/attachment")
	}
	process.Eventually(t, "the candidate passes", func() bool {
		code, _ := p.command(t, "canary", "verdict")
		return code == 0
	})
	p.commandWants(t, 0, `"verdict": "PASS"`, "canary", "verdict", "--format", "json")
	p.commandWants(t, 0, "<testsuite", "canary", "report", "--format", "junit")
	p.new.SetQuirks([]tracker.Quirk{tracker.QuirkMissingField})
	for range 40 {
		get(t, p.clients+"/rest/bug/1/attachment")
	}
	process.Eventually(t, "the candidate fails", func() bool {
		code, _ := p.command(t, "canary", "verdict")
		return code == 1
	})
	p.commandWants(t, 0, "Reset. Earlier results are discarded.", "canary", "reset", "--actor", "tester", "--reason", "a test")
	p.commandWants(t, 2, "INCONCLUSIVE", "canary", "verdict")
	p.operators = "http://127.0.0.1:1"
	p.commandWants(t, exitNoVerdict, "cannot reach Portico's admin listener at 127.0.0.1:1: connection refused", "canary", "verdict")
	p.operators = p.clients // which answers, but has no verdict
	p.commandWants(t, exitNoVerdict, "a web page with status 404", "canary", "verdict")
	p.commandWants(t, exitFailed, "a web page with status 404", "canary", "report")
	p.commandWants(t, exitUsage, "unknown format", "canary", "verdict", "--format", "xml")
}

// TestVerdictIsAskedOnce: the exit code is that of what is printed, however soon the verdict changes.
func TestVerdictIsAskedOnce(t *testing.T) {
	for format, want := range map[string]string{"json": `"verdict": "FAIL"`, "junit": "FAIL: 0 compared", "text": "FAIL: 0 compared"} {
		verdict := "FAIL"
		p := pair{operators: stub(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"verdict": %q}`, verdict)
			verdict = "PASS"
		})}
		p.commandWants(t, 1, want, "canary", "verdict", "--format", format)
	}
}

// TestFindingsAreJudgedOnTheCommandLine accepts a finding, so that it no longer
// counts, and reopens it.
func TestFindingsAreJudgedOnTheCommandLine(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}}, "canary: {confirm_after: 10ms}\n")
	for range 3 {
		get(t, p.clients+"/rest/bug/1/attachment")
	}
	process.Eventually(t, "the candidate fails", func() bool {
		code, _ := p.command(t, "canary", "verdict")
		return code == 1
	})
	_, report := p.command(t, "canary", "report")
	_, findings, _ := strings.Cut(report, "\nFindings\n")
	signature := strings.Fields(strings.SplitN(findings, "\n", 3)[1])[0]
	for _, want := range []string{signature + ", open", "attachment.list", "missing $.bugs", "GET /rest/bug/1/attachment at ", "candidate  nothing", `reference  {"text":{"digest":"`, `reference    200 {"bug_id":1,`} {
		p.commandWants(t, exitOK, want, "canary", "show", signature)
	}
	filters := []string{"canary", "findings", "--status", "open", "--operation", "attachment.list", "--product", "WebShop"}
	p.commandWants(t, exitOK, signature+"  open    attachment.list  missing  $.bugs", filters...)
	p.commandWants(t, exitOK, `"caller": "anonymous"`, append(filters, "--caller", "anonymous", "--path", "$.bugs", "--output", "json")...)
	p.commandWants(t, exitOK, `"findings": []`, append(filters, "--caller", "checker", "--json")...)
	p.commandWants(t, exitFailed, "no such finding", "canary", "show", "0123")
	p.commandWants(t, exitUsage, "needs --actor and --reason", "canary", "accept", signature)
	p.commandWants(t, exitFailed, "no such finding", signed("canary", "accept", "0123")...)
	p.commandWants(t, exitFailed, "until", signed("canary", "accept", signature, "--until", "yesterday")...)
	p.commandWants(t, exitOK, "Accepted", signed("canary", "accept", signature, "--until", "30d")...)
	p.commandWants(t, exitOK, "accepted by tester: a test", "canary", "show", signature)
	p.commandWants(t, 2, "INCONCLUSIVE", "canary", "verdict")
	p.commandWants(t, exitOK, "Reopened", signed("canary", "reopen", signature)...)
	p.commandWants(t, 1, "FAIL", "canary", "verdict")
	p.commandWants(t, exitOK, "Marked as fixed", signed("canary", "fixed", signature)...)
	p.commandWants(t, 2, "INCONCLUSIVE", "canary", "verdict")
	p.commandWants(t, exitUsage, `there is no command "forget"`, "canary", "forget")
}

// TestSamplingIsChangedLive shows and changes which calls are compared.
func TestSamplingIsChangedLive(t *testing.T) {
	p := startPair(t, tracker.Options{}, "")
	p.commandWants(t, exitOK, "all operations  100 % of requests\n", "canary", "sampling")
	p.commandWants(t, exitOK, `"flag_type.get": 0.5`, "canary", "sampling", "--operation", "flag_type.get=0.5", "--sample", "0", "--json")
	p.commandWants(t, exitOK, "flag_type.get     50 % of requests\nother operations  0 % of requests\n", "canary", "sampling")
	p.commandWants(t, exitOK, "0 % of callers\n", "canary", "sampling", "--sticky")
	p.commandWants(t, exitFailed, "says 4", "canary", "sampling", "--sample", "2")
	for range 3 {
		get(t, p.clients+"/rest/bug/1/attachment")
	}
	if n := p.new.Requests()["attachment.list"]; n != 0 {
		t.Errorf("%d reads were compared that are in no sample", n)
	}
}

// TestMigrateCommand plans, applies, refuses what came too late, kills and revives.
func TestMigrateCommand(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{}, "")
	moved := writeFile(t, "rules.yaml", "rules:\n  - {name: shop, product: WebShop, reads: new}\n  - {name: rest}\n")
	unearned := signed("--despite", "verdict", "--despite", "freshness", "--despite", "errors", "--despite", "stability", "--despite", "one-phase")
	p.commandWants(t, exitOK, "version 1, from the configuration", "migrate", "status")
	p.commandWants(t, exitFailed, "+ shop: reads new, writes old-compare, product WebShop", "migrate", "plan", moved)
	p.commandWants(t, exitFailed, "one-phase    fails", "migrate", "plan", moved)
	p.commandWants(t, exitFailed, "--version 1 --actor NAME --reason TEXT", "migrate", "plan", moved)
	p.commandWants(t, exitUsage, "needs --version", signed("migrate", "apply", moved)...)
	p.commandWants(t, exitUsage, "needs --actor", "migrate", "apply", moved, "--version", "1")
	p.commandWants(t, exitFailed, "shop: verdict unknown", signed("migrate", "apply", moved, "--version", "1")...)
	p.commandWants(t, exitOK, "version 2, from the admin listener, by tester (a test (despite shop verdict, shop freshness, shop errors, shop stability, shop one-phase))",
		append([]string{"migrate", "apply", moved, "--version", "1"}, unearned...)...)
	p.commandWants(t, exitFailed, "says 409", signed("migrate", "apply", moved, "--version", "1")...)
	p.commandWants(t, exitOK, "Nothing would change", "migrate", "plan", moved)
	one := writeFile(t, "rules.yaml", "rules:\n  - {name: shop, product: 'WebShop, Inc', reads: new}\n  - {name: rest}\n")
	p.commandWants(t, exitFailed, `+ shop: reads new, writes old-compare, product "WebShop, Inc"`, "migrate", "plan", one)
	before := p.old.Requests()["flag_type.get"]
	get(t, p.clients+webShop)
	if p.new.Requests()["flag_type.get"] == 0 || p.old.Requests()["flag_type.get"] != before {
		t.Error("the read went to the old tracker")
	}
	p.commandWants(t, exitOK, "KILLED by tester", signed("migrate", "kill")...)
	get(t, p.clients+webShop)
	if p.old.Requests()["flag_type.get"] == before {
		t.Error("after the kill switch the read went to the new tracker")
	}
	p.commandWants(t, exitOK, "version 4", signed("migrate", "revive")...)
	p.commandWants(t, exitOK, "the configured rules", "migrate", "history")
	p.commandWants(t, exitOK, "switchover.kill    version 3  tester  a test", "migrate", "history")
	p.commandWants(t, exitOK, "kill switch thrown", "migrate", "history")
	p.commandWants(t, exitUnknown, "holds    no ids are translated", "migrate", "plan")
	p.commandWants(t, exitUsage, `there is no command "retreat"`, "migrate", "retreat")
	p.commandWants(t, exitUsage, "needs RULE", "migrate", "advance")
	p.commandWants(t, exitUsage, "needs --actor", "migrate", "advance", "rest")
	p.commandWants(t, exitUsage, "unexpected argument", "migrate", "plan", moved, "more")
}

// TestRulesOfAFileAreChecked refuses what portico check would, at its line, without
// asking for a change.
func TestRulesOfAFileAreChecked(t *testing.T) {
	t.Parallel()
	p := startPair(t, tracker.Options{}, "")
	for text, want := range map[string]string{
		"rules:\n  - {name: x, product: A}\n":                             "rules.yaml:2:5: rules[0]: the last rule must have no conditions",
		"rules:\n  - {name: x, reads: old, writes: new}\n":                "rules.yaml:2:22: rules[0].reads: reads (old) are behind writes (new)",
		"rules:\n  - {name: x, read: old}\n":                              `rules.yaml:2:15: unknown key "read" in rules[0]; did you mean "reads"?`,
		"rules: []\n":                                                     "rules.yaml:1:8: rules: is empty",
		"follow: 1m\nrules: [{name: x}]\n":                                `rules.yaml:1:1: unknown key "follow"`,
		"rules: [{name: x, caller: nobody}, {name: y}]\n":                 `no caller is named "nobody"`,
		"passthrough: {reads: new, writes: old}\nrules: [{name: x, reads": "not valid YAML",
		"passthrough: {reads: new}\nrules: [{name: x}]\n":                 "passthrough: needs both reads and writes, or neither",
	} {
		file := writeFile(t, "rules.yaml", text)
		code, output := p.command(t, signed("migrate", "apply", file, "--version", "1")...)
		if code != exitFailed || !strings.Contains(output, want) {
			t.Errorf("%q: exit %d, want %q in\n%s", text, code, want, output)
		}
	}
	unknown := writeFile(t, "rules.yaml", "rules: [{name: x, caller: nobody}, {name: y}]\n")
	p.commandWants(t, exitFailed, `rules.yaml:1:27: rules[0].caller: no caller is named "nobody"`, "migrate", "plan", unknown)
	p.commandWants(t, exitFailed, "read the rules", signed("migrate", "apply", "/does/not/exist", "--version", "1")...)
	p.commandWants(t, exitOK, "version 1", "migrate", "status")
	if _, err := os.Stat(p.state); err != nil {
		t.Errorf("the store is not where the configuration says: %v", err)
	}
}

// TestCommandsForTwoTrackersWhereThereIsOne: who asks a Portico without a candidate is told that it has none.
func TestCommandsForTwoTrackersWhereThereIsOne(t *testing.T) {
	_, operators := serveConfig(t, writeFile(t, "c.yaml", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"+withTracker))
	p := pair{operators: "http://" + operators}
	const want = "says 404: This Portico has no second tracker; the key candidate of the configuration names one."
	p.commandWants(t, exitNoVerdict, want, "canary", "verdict")
	p.commandWants(t, exitFailed, want, "canary", "report")
	p.commandWants(t, exitFailed, want, "migrate", "status")
	p.commandWants(t, exitFailed, want, "migrate", "kill", "--actor", "tester", "--reason", "a test")
	if page := get(t, p.operators+"/"); strings.Contains(page, `href="/canary"`) {
		t.Errorf("a page that shows nothing is listed:\n%s", page)
	}
}

// TestWhatCannotBeAsked: an address without a scheme, as configurations have it, one that redirects, and a signature that is a part of a path.
func TestWhatCannotBeAsked(t *testing.T) {
	for _, address := range []string{"127.0.0.1:9080", "localhost:9080", "ftp://host/", "unix:///run/portico"} {
		(&pair{operators: address}).commandWants(t, exitNoVerdict, " is no address such as http://127.0.0.1:9080", "canary", "verdict")
	}
	other := stub(t, func(http.ResponseWriter, *http.Request) { t.Error("the token was sent to another address") })
	listener := stub(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
	})
	wants(t, nil, exitFailed, "a web page with status 307", "migrate", "status", "--admin", listener, "--token-file", writeFile(t, "token", "0123456789abcdef"))
	_, operators := serveConfig(t, writeFile(t, "c.yaml", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n"+withTracker))
	p := &pair{operators: "http://" + operators}
	for _, signature := range []string{"", ".", ".."} {
		p.commandWants(t, exitFailed, "the admin listener says ", "canary", "show", signature)
	}
}

// TestPlanShowsEveryLine: rules that go, stay, come and change, what other paths follow from the last rule, and the preconditions. The plan
// of a step shows them too, to operators who sign nothing, and the status what a kill has left behind.
func TestPlanShowsEveryLine(t *testing.T) {
	listener := stub(t, func(w http.ResponseWriter, r *http.Request) {
		next := "old"
		if r.RequestURI == "/switchover/plan.json?rule=rest" {
			next = "new"
		}
		if r.Method == http.MethodPost || next == "new" {
			_, _ = w.Write([]byte(`{"version":3,"state":"fails","steps":[{"rule":"rest","from":{"reads":"old","writes":"old"},
				"to":{"reads":"new","writes":"` + next + `"},"preconditions":[{"name":"verdict","state":"fails","value":"FAIL of 9"}],"going_back":{"state":"safe"}}]}`))
			return
		}
		if r.URL.Path == "/status" {
			_, _ = w.Write([]byte(`{"trackers":{"a":{"dialect":"bmo"},"b":{"dialect":"bmo"}}}`))
			return
		}
		_, _ = w.Write([]byte(`{"version":3,"old":"a","new":"b","source":"config","moving":["stays"],"copying_paused":true,
			"killed":{"actor":"ada\u001b[2J","reason":"a test\nRULE","at":"2026-01-02T03:04:05Z","missing":["2 writes\nof b"]},"table":{"rules":[
			{"name":"gone","products":["A, B"],"reads":"new","writes":"old"},
			{"name":"stays","bugs":[{"from":1,"to":5}],"percent":10,"reads":"new","writes":"old"},
			{"name":"rest","reads":"old","writes":"old"}]},"callers":["robot"]}`))
	})
	const rules = "rules: [{name: stays, bugs: 1-5, percent: 10, reads: new, writes: old}, " +
		"{name: comes, caller: robot, operation: attachment.get, reads: new, writes: old}, {name: rest, reads: new, writes: old}]\n"
	file := writeFile(t, "rules.yaml", rules)
	code, stdout, stderr := portico(t, nil, "migrate", "plan", file, "--admin", listener)
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
	command := exec.CommandContext(t.Context(), process.Portico(t), "migrate", "plan", "-", "--admin", listener)
	command.Stdin = strings.NewReader(rules)
	if output, err := command.Output(); command.ProcessState.ExitCode() != exitFailed || string(output) != strings.ReplaceAll(want, file, "-") {
		t.Errorf("from standard input: %v\n%s", err, output)
	}
	warnings := "warning: rule %s sends flag type writes to tracker %s, which has none (dialect bmo): they are refused\n"
	if want := fmt.Sprintf(warnings, "rest", "a"); stderr != want {
		t.Errorf("the warnings are %q", stderr)
	}
	code, stdout, stderr = portico(t, nil, "migrate", "plan", "--rule", "rest", "--admin", listener)
	if want := fmt.Sprintf(warnings+warnings, "gone", "a", "rest", "b"); code != exitFailed || stderr != want ||
		!strings.Contains(stdout, "rest: reads old, writes old → reads new, writes new; going back is safe\n  verdict  fails  FAIL of 9\n") {
		t.Errorf("without a file: exit %d, warnings %q\n%s", code, stderr, stdout)
	}
	wants(t, nil, exitFailed, "rest: reads old, writes old → reads new, writes old; going back is safe\n", "migrate", "advance", "rest", "--dry-run", "--admin", listener)
	wants(t, nil, exitOK, `From a to b: version 3, from the configuration
KILLED by ada [2J at 2026-01-02 03:04:05Z (a test RULE): everything goes to a.
a lacks: 2 writes of b.
Copying is paused. See portico migrate journal list, then: portico migrate journal resume
Writes are about to move, and wait: stays.
`, "migrate", "status", "--admin", listener)
	for _, args := range [][]string{{"migrate", "plan"}, {"migrate", "plan", file}} {
		if code, _, _ := portico(t, nil, append(args, "--admin", "http://127.0.0.1:1")...); code != exitUnknown {
			t.Errorf("%q exits %d where Portico cannot be asked", args, code)
		}
	}
}

// TestReverseWaitsForTheCopies: the step back is asked for once the old tracker has nearly everything, and at once where waiting would not help.
func TestReverseWaitsForTheCopies(t *testing.T) {
	t.Parallel()
	for state, questions := range map[string]int64{"drain": 2, "unsafe": 1} {
		var asked, reversed atomic.Int64
		listener := stub(t, func(w http.ResponseWriter, r *http.Request) {
			left := 90
			if r.Method == http.MethodPost {
				reversed.Store(asked.Load())
				if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), `"version":3`) {
					t.Errorf("%s: the step is asked for by %s", state, body)
				}
			} else if asked.Add(1) > 1 {
				left = 10
			}
			fmt.Fprintf(w, `{"version":3,"old":"a","new":"b","rules":[{"rule":{"name":"all","reads":"new-compare","writes":"new-compare","replicate":true},
				"going_back":{"state":%q,"drain":%d,"seconds":%d}}]}`, state, left, left/10)
		})
		code, _, stderr := portico(t, nil, "migrate", "reverse", "all", "--actor", "ada", "--reason", "x", "--admin", listener)
		if code != exitOK || reversed.Load() != questions || strings.Contains(stderr, "safe after draining 90 entries (about 9 s)") != (state == "drain") {
			t.Errorf("%s: exit %d after %d questions: %s", state, code, reversed.Load(), stderr)
		}
	}
}

// idsConfig writes a configuration of two trackers with other ids.
func idsConfig(t *testing.T) string {
	t.Helper()
	more := "switchover: {ids: {bug: {mode: table, offset: 1000}}}\n"
	return writeFile(t, "c.yaml", pairConfig("http://127.0.0.1:1/", "http://127.0.0.1:2/", filepath.Join(t.TempDir(), "ids.db"), more))
}

// TestJournalListSaysWhereItEnds: the list of a long journal is not all of it.
func TestJournalListSaysWhereItEnds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "journal.db")
	config := writeFile(t, "c.yaml", pairConfig("http://127.0.0.1:1/", "http://127.0.0.1:2/", file, ""))
	store, err := state.Open(t.Context(), "sqlite:"+file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	for _, count := range []int{maxListed - 1, 1} {
		entries := make([]state.JournalEntry, count)
		for i := range entries {
			entries[i] = state.JournalEntry{Lane: fmt.Sprint(count, i), Operation: mapping.OpUpdateAttachments}
		}
		if taken, err := store.BeginJournal(t.Context(), "a", time.Minute, entries); !taken || err != nil {
			t.Fatal(taken, err)
		}
		if code, out, stderr := portico(t, nil, "migrate", "journal", "list", "--config", config); code != exitOK || strings.Contains(out, "The oldest 1000 entries:") != (count == 1) {
			t.Errorf("exit %d: %.200s %s", code, out, stderr)
		}
	}
}

func TestFilesOfIDs(t *testing.T) {
	t.Parallel()
	const header = "kind,client,new,old\n"
	config := idsConfig(t)
	for _, args := range [][]string{{"ids", "export"}, {"ids", "export", filepath.Join(t.TempDir(), "backup.csv")}, {"ids", "check"}, {"journal", "list"}, {"journal", "resume", "--actor", "a", "--reason", "r"}} {
		if code, _, stderr := portico(t, nil, append(append([]string{"migrate"}, args...), "--config", config)...); code != 1 || !strings.Contains(stderr, "there is no store at") {
			t.Errorf("%v of a store that is not there exits with %d: %s", args, code, stderr)
		}
	}
	for _, c := range []struct {
		name, command, file string
		code                int
		says                []string
	}{
		{"before the first import", "check", header + "bug,7,70,\n", 0, []string{"1 ids are good."}},
		{"good", "import", header + "bug,7,70,\nattachment,5,50,\nattachment,1000000009,,12\n", 0, []string{"3 ids are kept."}},
		{"again, with one more and a byte order mark", "import", "\ufeffkind,client,new\nbug,7,70\nbug,8,80\n", 0, []string{"2 ids are kept."}},
		{"gaps", "check", header + "bug,12,1,\nbug,7,70,\nattachment,5,50,\nbug,8,80,\n", 0, []string{"FILE:2: bug: no ids from 9 to 11", "4 ids are good."}},
		{"duplicates", "check", header + "bug,7,70,\nbug,8,70,\nbug,7,71,\n", 1, []string{"FILE:3: ", "FILE:4: ", "line 2 has one of these ids"}},
		{"rules", "import", header + "bug,7,,70\nbug,2000,70,\nuser,1,2,\nflag,0,1,\nattachment,2147483648,1,\n", 1,
			[]string{"FILE:2: ", "FILE:3: ", "FILE:4: ", "FILE:5: ", "FILE:6: "}},
		{"no numbers", "import", header + "bug,7,,\nbug,x,70,\nbug,9,1,2\nbug\nbug,9,1,,2\n", 1, []string{"FILE:2: ", "FILE:3: ", "FILE:4: ", "FILE:5: ", "FILE:6: "}},
		{"other columns", "import", "kind,old,new\nbug,7,70\n", 1, []string{"does not begin with the line kind,client,new,old"}},
		{"contradicting", "import", header + "bug,30,300,\nbug,7,71,\n", 1, []string{"FILE:3: bug 7 is 71 at the new tracker contradicts what is kept: bug 7 is 70"}},
		{"contradicting the store", "check", header + "bug,30,80,\n", 1, []string{"FILE:2: bug 30 is 80 at the new tracker contradicts what is kept: bug 8 is 80"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := writeFile(t, "ids.csv", c.file)
			code, stdout, stderr := portico(t, nil, "migrate", "ids", c.command, file, "--config", config)
			output := strings.ReplaceAll(stdout+stderr, file, "FILE")
			for _, text := range c.says {
				if code != c.code || !strings.Contains(output, text) {
					t.Errorf("exits with %d, want %d and %q:\n%s", code, c.code, text, output)
				}
			}
		})
	}
	unused := idsConfig(t)
	for _, args := range [][]string{{"check", writeFile(t, "ids.csv", header+"bug,7,70,\n")}, {"import", writeFile(t, "wrong.csv", header+"bug,x,70,\n")}} {
		portico(t, nil, append([]string{"migrate", "ids", "--config", unused}, args...)...)
		for range 2 { // a file of the first try would be in the way
			wants(t, nil, exitFailed, "there is no store at", "migrate", "ids", "export", filepath.Join(filepath.Dir(unused), "out.csv"), "--config", unused)
		}
	}
	const kept = header + "attachment,5,50,\nattachment,1000000009,,12\nbug,7,70,\nbug,8,80,\n"
	if code, stdout, stderr := portico(t, nil, "migrate", "ids", "export", "--config", config); code != 0 || stdout != kept {
		t.Errorf("export exits with %d:\n%s%s", code, stdout, stderr)
	}
	const report = "{\n  \"ids\": 3,\n  \"gaps\": [\n    \"bug: no ids from 8 to 8\"\n  ]\n}\n"
	gappy := idsConfig(t)
	for _, args := range [][]string{{"import", writeFile(t, "ids.csv", header+"bug,7,70,\nbug,9,90,\nattachment,5,50,\n")}, {"check"}} {
		code, stdout, stderr := portico(t, nil, append([]string{"migrate", "ids", "--output", "json", "--config", gappy}, args...)...)
		if args[0] == "check" && stdout != report || !strings.Contains(stdout, `"ids": 3`) || code != 0 {
			t.Errorf("%v as JSON exits with %d:\n%s%s", args, code, stdout, stderr)
		}
	}
	wrong := writeFile(t, "wrong.csv", header+"bug,x,70,\n")
	const problems = `{"ids":0,"problems":["FILE:2: \"bug,x,70\" is not a kind, an id that clients know and one id at a tracker"]}`
	if code, stdout, stderr := portico(t, nil, "migrate", "ids", "check", wrong, "--json", "--config", gappy); code != exitFailed || stderr != "" ||
		strings.Join(strings.Fields(strings.ReplaceAll(stdout, wrong, "FILE")), "") != strings.Join(strings.Fields(problems), "") {
		t.Errorf("problems as JSON exit with %d:\n%s%s", code, stdout, stderr)
	}
	without := writeFile(t, "c.yaml", pairConfig("http://127.0.0.1:1/", "http://127.0.0.1:2/", filepath.Join(t.TempDir(), "ids.db"), ""))
	wants(t, nil, exitFailed, "no switchover.ids", "migrate", "ids", "check", "--config", without)
	backup, other := filepath.Join(t.TempDir(), "backup.csv"), idsConfig(t)
	for _, args := range [][]string{{"export", backup, "--config", config}, {"import", backup, "--config", other}, {"check", "--config", other}} {
		wants(t, nil, exitOK, "", append([]string{"migrate", "ids"}, args...)...)
	}
	if _, stdout, _ := portico(t, nil, "migrate", "ids", "export", "--config", other); stdout != kept {
		t.Errorf("what was put back is\n%s", stdout)
	}
	wants(t, nil, exitFailed, "exists", "migrate", "ids", "export", backup, "--config", config) // no file is overwritten
}

// TestExplain shows which rule decides, what the trackers would be sent or why nothing is, and what is not known. What the configuration says of
// replies and proxies counts, what no client can send is a mistake of the command line, and no key is shown.
func TestExplain(t *testing.T) {
	t.Parallel()
	replies := writeFile(t, "c.yaml", withTracker+"api: {documentation: 'http://docs.example/'}\ntrusted_proxies: [127.0.0.1]\n")
	rules := writeFile(t, "c.yaml", withTwo+`
state: sqlite:/does/not/exist/p.db
callers: {robot: {key_env: KEY}}
switchover:
  passthrough: {reads: new, writes: old}
  rules:
    - {name: robots, caller: robot, operation: flag_type.get, reads: new}
    - {name: shop, product: WebShop, reads: new-compare}
    - {name: high, bugs: 500-, reads: new}
    - {name: rest}
`)
	for _, c := range []struct {
		config string
		args   []string
		code   int
		want   []string
	}{
		{"", []string{"GET", "/rest/flag_type/P/a%2Fb?api_key=SECRET"}, exitOK, []string{
			"operation    flag_type.get", "GET http://tracker.example/rest/flag_type/P?Bugzilla_api_key=REDACTED&component=a%2Fb",
		}},
		{"", []string{"POST", "/rest/flag_type", "--header", "X-BUGZILLA-API-KEY: SECRET", "--data",
			`{"name":"n","description":"d","inclusions":{"P":["c"]}}`}, exitOK, []string{`"inclusions":[{"P":["c"]}]`, `"Bugzilla_api_key":"REDACTED"`}},
		{"", []string{"GET", "/rest/flag_type/a%2Fb?Bugzilla_login=SECRET&Bugzilla_password=SECRET"}, exitOK, []string{
			"POST http://tracker.example/jsonrpc.cgi", `"params":[{"product":"a/b",`,
		}},
		{"", []string{"POST", "/rest/flag_type?api_key=SECRET", "--data", `{"name":"n","description":"d","sortkey":0}`}, exitOK, []string{
			"the tracker  is not asked", "gets 400 (invalid-request)", `"code":1104`,
		}},
		{"", []string{"GET", "/rest/version?token=SECRET"}, exitOK, []string{"operation    passthrough", "GET http://tracker.example/rest/version?token=REDACTED"}},
		{"", []string{"GET", "/rest/version?Bugzilla_API_Key=SECRET", "--header", "Cookie: Bugzilla_logincookie=SECRET"}, exitOK, []string{
			"Bugzilla_API_Key=REDACTED", "Cookie: REDACTED",
		}},
		{"", []string{"PUT", "/rest//bug/x/../attachment"}, exitOK, []string{"the tracker  is not asked", `"code":32614`}},
		{replies, []string{"POST", "/rest/flag_type", "--data", "{}"}, exitOK, []string{`"documentation":"http://docs.example/"`}},
		{replies, []string{"GET", "/rest/version", "--header", "X-Forwarded-For: 192.0.2.7"}, exitOK, []string{"X-Forwarded-For: 192.0.2.7"}},
		{replies, []string{"GET", "rest/version"}, exitUsage, []string{"invalid path: must begin with /"}},
		{replies, []string{"GET", ""}, exitUsage, []string{"must begin with /"}},
		{replies, []string{"GET", "/rest/flag_type/%zz?api_key=SECRET"}, exitUsage, []string{`invalid path: invalid URL escape "%zz"`}},
		{replies, []string{"B AD", "/"}, exitUsage, []string{`invalid request: net/http: invalid method "B AD"`}},
		{rules, []string{"GET", "/rest/flag_type/WebShop"}, exitOK, []string{
			"rule         shop (reads new-compare, writes old-compare): b answers", "compared     a,", "gets GET http://b.example/rest/flag_type/WebShop",
		}},
		{rules, []string{"GET", "/rest/flag_type/Else?api_key=SECRET"}, exitOK, []string{"rule         robots (reads new, writes old-compare): b answers"}},
		{rules, []string{"GET", "/rest/flag_type/Else"}, exitOK, []string{"rule         rest (reads old-compare, writes old-compare): a answers"}},
		{rules, []string{"GET", "/rest/bug/7/attachment"}, exitOK, []string{
			"need a lookup, which explain does not send: the product and component of bug 7, asked of", "the tracker  is not asked",
		}},
		{rules, []string{"GET", "/rest/bug/attachment/7"}, exitOK, []string{"the bug of attachment 7, asked of"}},
		{rules, []string{"GET", "/rest/version"}, exitOK, []string{"rule         of the passthrough: b answers", "gets GET http://b.example/rest/version"}},
		{rules, []string{"POST", "/rest/login"}, exitOK, []string{"rule         of the passthrough: a answers"}},
		{rules, []string{"POST", "/rest/flag_type", "--data", "{}"}, exitOK, []string{"the tracker  is not asked", "gets 401 (login-required)"}},
		{idsConfig(t), []string{"GET", "/rest/bug/7/attachment"}, exitOK, []string{"ids          not known here", "GET http://127.0.0.1:1/rest/bug/7/attachment"}},
	} {
		args := append([]string{"explain"}, c.args...)
		if c.config != "" {
			args = append(args, "--config", c.config)
		}
		code, stdout, stderr := portico(t, []string{"KEY=SECRET"}, args...)
		if code != c.code || strings.Contains(stdout+stderr, "SECRET") {
			t.Errorf("explain %q exits with %d: %s%s", c.args, code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("explain %q does not say %q:\n%s%s", c.args, want, stdout, stderr)
			}
		}
	}
}

// TestExplainAsksTheRunningPortico: what the running Portico says of itself counts, unless it is before other trackers.
func TestExplainAsksTheRunningPortico(t *testing.T) {
	file := writeFile(t, "c.yaml", withTwo+"switchover: {rules: [{name: configured, reads: new}]}\n")
	const trackers = `{"primary":"a","switchover":{},"trackers":{"a":{"url":"http://a.example/"},"b":{"url":"http://b.example/","dialect":"bmo","dialect_pinned":true}}}`
	const rules = `"version":7,"source":"admin","actor":"ada","reason":"moved","table":{"rules":[{"name":"applied","reads":"new","writes":"new"}]}`
	for name, c := range map[string]struct {
		status, moves string
		wants, lacks  []string
	}{
		"rules": {trackers, "{" + rules + "}", []string{
			"rules        version 7 of the Portico at ", "source admin, by ada: moved\n", "rule         applied ", "dialect      bmo\n",
			"cache        response of b for the scope x: fresh, it is new\n",
		}, []string{"configured", "not known", "another read"}},
		"killed":         {trackers, "{" + rules + `,"killed":{"actor":"ada"}}`, []string{"rule         kill switch ", "http://a.example/"}, []string{"rule         applied"}},
		"other trackers": {strings.Replace(trackers, "b.example", "c.example", 1), "{" + rules + "}", []string{"has other trackers", "rule         configured "}, []string{"rule         applied", "bmo", "fresh"}},
		"other primary":  {strings.Replace(trackers, `"primary":"a"`, `"primary":"b"`, 1), "{" + rules + "}", []string{"has other trackers"}, []string{"rule         applied"}},
	} {
		listener := stub(t, func(w http.ResponseWriter, r *http.Request) {
			text := map[string]string{
				"/status": c.status, "/switchover/status.json": c.moves,
				"/cache?product=P": `{"items":[{"state":"fresh","scope":"x","why":"it is new","tracker":"b"},` +
					`{"state":"fresh","scope":"x","why":"another read","tracker":"b","component":"C"}]}`,
			}[r.URL.String()]
			if text == "" {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = w.Write([]byte(text))
		})
		code, stdout, stderr := portico(t, nil, "explain", "GET", "/rest/flag_type/P", "--config", file, "--admin", listener)
		if code != exitOK {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
		for _, want := range c.wants {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: explain does not say %q:\n%s", name, want, stdout)
			}
		}
		for _, lack := range c.lacks {
			if strings.Contains(stdout, lack) {
				t.Errorf("%s: explain says %q:\n%s", name, lack, stdout)
			}
		}
	}
}

// TestReplayCommandLine: what cannot be played is said, and no verdict is given.
func TestReplayCommandLine(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "a.jsonl", `{"name":"one","request":{"method":"GET","path":"/rest/flag_type/TestProduct?api_key={{caller-1}}","headers":{}},"callers":["caller-1"],"response":null}`)
	broken, keys, none := writeFile(t, "b.jsonl", "{\n"), writeFile(t, "keys.json", `["secret-in-a-list"]`), writeFile(t, "null.json", "null")
	_, server := startTracker(t, tracker.Options{})
	_, other := startTracker(t, tracker.Options{})
	server = strings.TrimSuffix(server, "/")
	half := writeFile(t, "half.jsonl", `{"name":"v","request":{"method":"GET","path":"/rest/bug/1/attachment","headers":{}},"response":null}`+"\n{\n")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--tracker", server}, exitUsage, "needs FILE"},
		{[]string{file}, exitUsage, "needs --tracker"},
		{[]string{file, "--tracker", "tracker.example"}, exitUsage, "must begin with http"},
		{[]string{file, "--tracker", "http://me:pass@tracker.example"}, exitUsage, "without a password"},
		{[]string{file, "--tracker", server, "--format", "xml"}, exitUsage, "unknown format"},
		{[]string{file, "--tracker", server, "--target", "0"}, exitUsage, "percentage"},
		{[]string{file, "--tracker", server, "--target", "NaN"}, exitUsage, "percentage"},
		{[]string{file, "--tracker", server, "--target", "100.1"}, exitUsage, "percentage"},
		{[]string{file, "--tracker", server, "--key", "caller-1"}, exitUsage, "NAME=VARIABLE"},
		{[]string{file, "--tracker", server, "--key", "caller-1=NONE"}, exitNoVerdict, "NONE"},
		{[]string{file, "--tracker", server, "--keys", keys}, exitNoVerdict, "no JSON object"},
		{[]string{file, "--tracker", server, "--keys", none, "--key", "caller-1=KEY"}, exitNoVerdict, "no JSON object"},
		{[]string{file, "--tracker", server, "--only", "["}, exitUsage, "syntax error in pattern"},
		{[]string{file, "--tracker", server, "--config", keys}, exitNoVerdict, "the configuration is not good"},
		{[]string{broken, "--tracker", server}, exitNoVerdict, "line 1 of the recording is no exchange"},
		{[]string{file, "--tracker", server}, 2, "its response is not recorded"},
		{[]string{file, "--tracker", server, "--against", "HTTP" + strings.TrimPrefix(server, "http") + "/"}, exitUsage, "one tracker"},
		{[]string{half, "--tracker", server, "--against", other, "--format", "junit"}, exitNoVerdict, "not played to its end"},
		{[]string{file, "--tracker", server, "--against", other}, 2, "there is no value for caller-1; use --key or --keys"},
	} {
		code, stdout, stderr := portico(t, []string{"KEY=key"}, append([]string{"replay"}, c.args...)...)
		if said := stdout + stderr; code != c.code || !strings.Contains(said, c.says) || strings.Contains(said, "secret-in") || strings.Contains(said, "me:pass") {
			t.Errorf("replay %q: %d, want %d with %q in\n%s", c.args, code, c.code, c.says, said)
		}
	}
}

// TestReplayGoesByEquivalences of a configuration.
func TestReplayGoesByEquivalences(t *testing.T) {
	t.Parallel()
	server := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		fmt.Fprint(w, `{"bug":[{"id":1,"name":"1.3"}],"attachment":[]}`)
	})
	file := writeFile(t, "a.jsonl", `{"name":"v","request":{"method":"GET","path":"/rest/flag_type/P","headers":{}},`+
		`"response":{"status":200,"headers":{"content-type":"application/json; charset=UTF-8"},"body":"{\"bug\":[{\"id\":1,\"name\":\"1.2\"}],\"attachment\":[]}"}}`)
	config := writeFile(t, "c.yaml", withTwo+
		"canary: {equivalences: [{name: releases, type: regex, path: '$.bug[id].name', pattern: '^[0-9.]+$', owner: me, reason: r, expires: 2999-01-01}]}\n")
	code, stdout, _ := portico(t, nil, "replay", file, "--tracker", server, "--format", "json")
	if code != verdict.Fail.ExitCode() || !strings.Contains(stdout, `"$.bug[id].name"`) {
		t.Errorf("exit code %d without a rule:\n%s", code, stdout)
	}
	code, stdout, stderr := portico(t, nil, "replay", file, "--tracker", server, "--format", "json", "--config", config)
	if code != verdict.Inconclusive.ExitCode() || strings.Contains(stdout, `"class"`) || !strings.Contains(stdout, `"hits": 1`) {
		t.Errorf("exit code %d with one:\n%s%s", code, stdout, stderr)
	}
}

// TestReplayFormats: each format is what it says, and nothing else is on standard output.
func TestReplayFormats(t *testing.T) {
	t.Parallel()
	_, server := startTracker(t, tracker.Options{})
	all, err := os.ReadFile("../../test/wire/testdata/bugzilla-5.2.jsonl")
	must(t, err)
	recordings := writeFile(t, "few.jsonl", strings.Join(strings.SplitAfter(string(all), "\n")[:20], ""))
	for format, begin := range map[string]string{"json": "{", "junit": "<?xml"} {
		code, stdout, stderr := portico(t, nil, "replay", recordings, "--tracker", server, "--only", "ft.get.*", "--format", format)
		if code != 2 || !strings.HasPrefix(stdout, begin) || !strings.Contains(stderr, "Requests made: ") {
			t.Errorf("%s: %d\n%s\n%s", format, code, stdout, stderr)
		}
	}
}

// TestRecordNeedsANewFile: the same placeholder stands for another caller in another run.
func TestRecordNeedsANewFile(t *testing.T) {
	file := writeFile(t, "a.jsonl", "")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--tracker", "http://tracker.example/"}, exitUsage, "needs --out"},
		{[]string{"--out", file}, exitFailed, "tracker"},
		{[]string{"--out", file, "--tracker", "http://tracker.example/"}, exitFailed, "exists"},
	} {
		wants(t, nil, c.code, c.says, append([]string{"record"}, c.args...)...)
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
	for _, words := range []string{"start", "list", "list --json"} {
		if code, stdout, stderr := portico(t, nil, append(strings.Fields("migrate journal "+words), signed...)...); code != exitOK || strings.Contains(stdout, "null") {
			t.Errorf("%s: exit %d\n%s%s", words, code, stdout, stderr)
		}
	}
	if code, _, stderr := portico(t, nil, "migrate", "journal", "resume", "--config", file, "--actor", "me"); code != exitUsage || !strings.Contains(stderr, "needs --actor and --reason") {
		t.Errorf("without a reason: exit %d\n%s", code, stderr)
	}
}
