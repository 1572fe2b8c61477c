package canary

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// otherNames changes one text of flag types.
func otherNames(_ *http.Request, _ int64, status int, body []byte) (int, []byte) {
	return status, bytes.ReplaceAll(body, []byte(`"needinfo"`), []byte(`"needsinfo"`))
}

// TestSamplesNameTheCaller: whose call it was, and the id under which the log has it.
func TestSamplesNameTheCaller(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{
		canary: quick, changeNew: otherNames,
		settings: "callers: {ci: {key_env: CI_KEY}}",
		env:      []string{"CI_KEY=" + fixtureKey("dev")},
	})
	for _, c := range []struct{ header, caller string }{
		{"", "anonymous"}, {"X-BUGZILLA-API-KEY: " + fixtureKey("admin"), "key"}, {"X-BUGZILLA-API-KEY: " + fixtureKey("dev"), "ci"},
	} {
		headers := []string{"User-Agent: checker/" + c.caller, "X-Request-Id: request-of-" + c.caller}
		if c.header != "" {
			headers = append(headers, c.header)
		}
		p.read(t, "/rest/flag_type/TestProduct", headers...)
		found := p.report(t, 1).open("")
		if len(found) == 0 {
			t.Fatal("nothing was found")
		}
		sample := p.sample(t, found[0].Signature)
		text := fmt.Sprintf("%s %s %s", sample["caller"], sample["user_agent"], sample["request_id"])
		if string(sample["caller"]) != `"`+c.caller+`"` || !strings.Contains(text, "checker/"+c.caller) || len(sample["request_id"]) < 4 {
			t.Errorf("the sample of the caller %s has %s", c.caller, text)
		}
		if page := p.page(t, "/canary/findings/"+found[0].Signature); !strings.Contains(page, "checker/"+c.caller) {
			t.Errorf("the page does not name the user agent of %s", c.caller)
		}
		p.reset(t)
	}
}

func (p *pair) page(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Operators+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/html")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", path, response.StatusCode, err)
	}
	return html.UnescapeString(string(text))
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
	if len(commands) != 3 {
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

// reset begins anew and waits until nothing is listed.
func (p *pair) reset(t *testing.T) {
	t.Helper()
	response, err := http.Post(p.Operators+"/canary/reset", "application/json", strings.NewReader(`{"actor":"ada","reason":"a test"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	process.Eventually(t, "the reset", func() bool {
		var r reported
		fetch(t, p.Operators+"/canary/report.json", &r)
		return len(r.Findings) == 0 && r.Overall.Compared == 0
	})
}
