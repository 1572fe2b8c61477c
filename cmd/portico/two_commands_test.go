package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// TestVerdictIsTheExitCode asks for every verdict, and for one where nobody is.
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
	p.commandWants(t, exitNoVerdict, "says 404", "canary", "verdict")
	p.commandWants(t, exitFailed, "says 404", "canary", "report")
	p.commandWants(t, exitUsage, "unknown format", "canary", "verdict", "--format", "xml")
}

// TestVerdictIsAskedOnce: the exit code is that of what is printed, however soon the verdict changes.
func TestVerdictIsAskedOnce(t *testing.T) {
	for format, want := range map[string]string{"json": `"verdict": "FAIL"`, "junit": "FAIL: 0 compared", "text": "FAIL: 0 compared"} {
		verdict := "FAIL"
		listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"verdict": %q}`, verdict)
			verdict = "PASS"
		}))
		p := pair{operators: listener.URL}
		p.commandWants(t, 1, want, "canary", "verdict", "--format", format)
		listener.Close()
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
	signed := []string{"--actor", "tester", "--reason", "a test"}
	for _, want := range []string{signature + ", open", "attachment.list", "missing $.bugs", "GET /rest/bug/1/attachment at ", "candidate  nothing", `reference  {"text":{"digest":"`, `reference    200 {"bug_id":1,`} {
		p.commandWants(t, exitOK, want, "canary", "show", signature)
	}
	filters := []string{"canary", "findings", "--status", "open", "--operation", "attachment.list", "--product", "WebShop"}
	p.commandWants(t, exitOK, signature+"  open    attachment.list  missing  $.bugs", filters...)
	p.commandWants(t, exitOK, `"caller": "anonymous"`, append(filters, "--caller", "anonymous", "--path", "$.bugs", "--output", "json")...)
	p.commandWants(t, exitOK, `"findings": []`, append(filters, "--caller", "checker", "--json")...)
	p.commandWants(t, exitFailed, "no such finding", "canary", "show", "0123")
	p.commandWants(t, exitUsage, "needs --actor and --reason", "canary", "accept", signature)
	p.commandWants(t, exitFailed, "no such finding", append([]string{"canary", "accept", "0123"}, signed...)...)
	p.commandWants(t, exitFailed, "until", append([]string{"canary", "accept", signature, "--until", "yesterday"}, signed...)...)
	p.commandWants(t, exitOK, "Accepted", append([]string{"canary", "accept", signature, "--until", "30d"}, signed...)...)
	p.commandWants(t, exitOK, "accepted by tester: a test", "canary", "show", signature)
	p.commandWants(t, 2, "INCONCLUSIVE", "canary", "verdict")
	p.commandWants(t, exitOK, "Reopened", append([]string{"canary", "reopen", signature}, signed...)...)
	p.commandWants(t, 1, "FAIL", "canary", "verdict")
	p.commandWants(t, exitOK, "Marked as fixed", append([]string{"canary", "fixed", signature}, signed...)...)
	p.commandWants(t, 2, "INCONCLUSIVE", "canary", "verdict")
	p.commandWants(t, exitUsage, `there is no command "forget"`, "canary", "forget")
}

// TestSamplingIsChangedLive shows and changes which calls are compared.
func TestSamplingIsChangedLive(t *testing.T) {
	p := startPair(t, tracker.Options{}, "")
	p.commandWants(t, exitOK, `"default": 1`, "canary", "sampling")
	p.commandWants(t, exitOK, `"flag_type.get": 0.5`, "canary", "sampling", "--operation", "flag_type.get=0.5", "--sample", "0")
	p.commandWants(t, exitOK, `"default": 0`, "canary", "sampling")
	p.commandWants(t, exitOK, `"default": 0`, "canary", "sampling", "--sticky")
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
	signed := []string{"--actor", "tester", "--reason", "a test"}
	unearned := append([]string{"--despite", "verdict", "--despite", "freshness", "--despite", "errors", "--despite", "stability", "--despite", "one-phase"}, signed...)
	p.commandWants(t, exitOK, "version 1, from the configuration", "migrate", "status")
	p.commandWants(t, exitFailed, "+ shop: reads new, writes old-compare, product WebShop", "migrate", "plan", moved)
	p.commandWants(t, exitFailed, "one-phase    fails", "migrate", "plan", moved)
	p.commandWants(t, exitFailed, "--version 1 --actor NAME --reason TEXT", "migrate", "plan", moved)
	p.commandWants(t, exitUsage, "needs --version", append([]string{"migrate", "apply", moved}, signed...)...)
	p.commandWants(t, exitUsage, "needs --actor", "migrate", "apply", moved, "--version", "1")
	p.commandWants(t, exitFailed, "shop: verdict unknown", append([]string{"migrate", "apply", moved, "--version", "1"}, signed...)...)
	p.commandWants(t, exitOK, "version 2, from the admin listener, by tester (a test (despite shop verdict, shop freshness, shop errors, shop stability, shop one-phase))",
		append([]string{"migrate", "apply", moved, "--version", "1"}, unearned...)...)
	p.commandWants(t, exitFailed, "says 409", append([]string{"migrate", "apply", moved, "--version", "1"}, signed...)...)
	p.commandWants(t, exitOK, "Nothing would change", "migrate", "plan", moved)
	one := writeFile(t, "rules.yaml", "rules:\n  - {name: shop, product: 'WebShop, Inc', reads: new}\n  - {name: rest}\n")
	p.commandWants(t, exitFailed, `+ shop: reads new, writes old-compare, product "WebShop, Inc"`, "migrate", "plan", one)
	before := p.old.Requests()["flag_type.get"]
	get(t, p.clients+webShop)
	if p.new.Requests()["flag_type.get"] == 0 || p.old.Requests()["flag_type.get"] != before {
		t.Error("the read went to the old tracker")
	}
	p.commandWants(t, exitOK, "KILLED by tester", append([]string{"migrate", "kill"}, signed...)...)
	get(t, p.clients+webShop)
	if p.old.Requests()["flag_type.get"] == before {
		t.Error("after the kill switch the read went to the new tracker")
	}
	p.commandWants(t, exitOK, "version 4", append([]string{"migrate", "revive"}, signed...)...)
	p.commandWants(t, exitOK, "the configured rules", "migrate", "history")
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
	signed := []string{"--version", "1", "--actor", "tester", "--reason", "a test"}
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
		code, output := p.command(t, append([]string{"migrate", "apply", file}, signed...)...)
		if code != exitFailed || !strings.Contains(output, want) {
			t.Errorf("%q: exit %d, want %q in\n%s", text, code, want, output)
		}
	}
	unknown := writeFile(t, "rules.yaml", "rules: [{name: x, caller: nobody}, {name: y}]\n")
	p.commandWants(t, exitFailed, `rules.yaml:1:27: rules[0].caller: no caller is named "nobody"`, "migrate", "plan", unknown)
	p.commandWants(t, exitFailed, "read the rules", append([]string{"migrate", "apply", "/does/not/exist"}, signed...)...)
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

// TestWhatCannotBeAsked: an address without a scheme, as configurations have it, and a signature that is a part of a path.
func TestWhatCannotBeAsked(t *testing.T) {
	for _, address := range []string{"127.0.0.1:9080", "localhost:9080", "ftp://host/", "unix:///run/portico"} {
		(&pair{operators: address}).commandWants(t, exitNoVerdict, address+" is no address such as http://127.0.0.1:9080", "canary", "verdict")
	}
	for _, signature := range []string{"", ".", ".."} {
		p := &pair{operators: "http://127.0.0.1:1"}
		p.commandWants(t, exitUsage, "invalid signature ", "canary", "accept", signature, "--actor", "tester", "--reason", "a test")
		p.commandWants(t, exitUsage, "invalid signature ", "canary", "show", signature)
	}
}
