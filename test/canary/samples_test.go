package canary

import (
	"bytes"
	"html"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"portico/mapping"
	"portico/test/tracker"
	"portico/upstream/state"
)

// otherNames changes one text of flag types.
func otherNames(_ *http.Request, _ int64, status int, body []byte) (int, []byte) {
	return status, bytes.ReplaceAll(body, []byte(`"needinfo"`), []byte(`"needsinfo"`))
}

// TestFindingsKnowTheirCallers: samples name the caller, the agent and the id under which the log has the request. Findings can be
// filtered by callers, and by products that are looked up where a request does not name them.
func TestFindingsKnowTheirCallers(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{
		canary: quick, settings: "callers: {ci: {key_env: PORTICO_CI_KEY}}", env: []string{"CI_KEY=" + fixtureKey("dev")},
		changeNew: func(r *http.Request, n int64, status int, body []byte) (int, []byte) {
			body = bytes.ReplaceAll(body, []byte(`"is_obsolete":`), []byte(`"obsolete":`))
			return otherNames(r, n, status, body)
		},
	})
	for caller, header := range map[string]string{
		"anonymous": "", "key": "X-BUGZILLA-API-KEY: " + fixtureKey("admin"), "ci": "X-BUGZILLA-API-KEY: " + fixtureKey("dev"),
	} {
		p.read(t, "/rest/flag_type/TestProduct", "User-Agent: checker/"+caller, "X-Request-Id: request-of-"+caller, header)
	}
	p.read(t, "/rest/bug/attachment/1", "X-BUGZILLA-API-KEY: "+fixtureKey("dev"))
	p.report(t, 4)
	list := func(query string) (found []state.Finding) {
		var answer struct{ Findings []state.Finding }
		fetch(t, p.Operators+"/canary/findings.json?"+query, &answer)
		return answer.Findings
	}
	for query, operations := range map[string][]mapping.Operation{
		"caller=anonymous&product=TestProduct": {mapping.OpFlagTypes}, "caller=key": {mapping.OpFlagTypes},
		"caller=ci&product=TestProduct": {mapping.OpFlagTypes, mapping.OpAttachment}, "caller=unknown": nil, "product=Other": nil,
		"product=TestProduct&operation=attachment.get": {mapping.OpAttachment},
	} {
		seen := map[mapping.Operation]bool{}
		for _, f := range list(query) {
			seen[f.Operation] = true
		}
		want := map[mapping.Operation]bool{}
		for _, operation := range operations {
			want[operation] = true
		}
		if !maps.Equal(seen, want) {
			t.Errorf("%s: found %v, want %v", query, seen, want)
		}
	}
	names := map[string]bool{}
	for _, f := range list("operation=flag_type.get") {
		page := p.page(t, "/canary/findings/"+f.Signature)
		for _, sample := range p.samples(t, f.Signature) {
			names[sample.Caller] = true
			if sample.UserAgent != "checker/"+sample.Caller || len(sample.RequestID) < 4 || !strings.Contains(page, sample.UserAgent) {
				t.Errorf("the sample of the caller %s has %s %s", sample.Caller, sample.UserAgent, sample.RequestID)
			}
		}
	}
	if len(names) == 0 { // those that are found within a second share a sample
		t.Error("there is no sample")
	}
}

func (p *pair) page(t *testing.T, path string) string {
	t.Helper()
	return html.UnescapeString(string(must(t, http.MethodGet, p.Operators+path, "", "Accept: text/html")))
}

// command finds the commands of a finding's page.
var command = regexp.MustCompile(`<pre tabindex="0" id="curl[^>]*>([^<]*)</pre>`)

// TestCommandsWorkAtEachTracker: what the page offers to paste gets the reply of a caller with a key, from a tracker that takes
// keys from the query and from one that takes them from headers and has other paths.
func TestCommandsWorkAtEachTracker(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{canary: quick, changeNew: otherNames, fresh: tracker.Options{Dialect: tracker.DialectBMO}})
	p.read(t, "/rest/flag_type/TestProduct/comp%2Fslash", "X-BUGZILLA-API-KEY: "+fixtureKey("admin"))
	found := p.report(t, 1).open("")
	if len(found) == 0 {
		t.Fatal("nothing was found")
	}
	commands := command.FindAllStringSubmatch(p.page(t, "/canary/findings/"+found[0].Signature), -1)
	if len(commands) != 2 {
		t.Fatalf("the commands are %q", commands)
	}
	for _, one := range commands {
		shell := exec.CommandContext(t.Context(), "sh", "-c", one[1])
		shell.Env = append(shell.Environ(), "API_KEY=wrong-key")
		if said, err := shell.CombinedOutput(); err != nil || !bytes.Contains(said, []byte("306")) {
			t.Errorf("%s: the key is not looked at: %.300s, %v", one[1], said, err)
		}
		shell = exec.CommandContext(t.Context(), "sh", "-c", one[1])
		shell.Env = append(shell.Environ(), "API_KEY="+fixtureKey("admin"))
		if said, err := shell.CombinedOutput(); err != nil || !bytes.Contains(said, []byte(`"attachment"`)) {
			t.Errorf("%s: %.300s, %v", one[1], said, err)
		}
	}
	var status struct {
		Trackers map[string]struct {
			Dialect string `json:"dialect"`
		} `json:"trackers"`
	}
	fetch(t, p.Operators+"/status", &status)
	if status.Trackers["fresh"].Dialect != "bmo" || status.Trackers["old"].Dialect != "bugzilla-5" {
		t.Errorf("the dialects are shown as %+v", status.Trackers)
	}
}
