package canary

import (
	"net/http"
	"strings"
	"testing"

	"portico/upstream/canary/verdict"
)

// TestUnpairedWhileTheCandidateServes: where the candidate has no pair of an id, clients get 404 although the reference has the object. An id that
// clients cannot be shown is a failure. Both count against the candidate.
func TestUnpairedWhileTheCandidateServes(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{
		canary: "  confirm_after: 1ms", settings: "switchover:\n  ids: {attachment: {mode: offset}}\n  rules: [{name: all, writes: old, reads: new-compare}]",
		changeNew: func(r *http.Request, _ int64, status int, body []byte) (int, []byte) {
			if strings.HasPrefix(r.URL.Path, "/rest/bug/5/") {
				body = []byte(strings.ReplaceAll(string(body), `"bug_id":5`, `"bug_id":99000000000`))
			}
			return status, body
		},
	})
	for target, want := range map[string]int{"/rest/bug/attachment/1": 404, "/rest/bug/attachment/998": 404, "/rest/bug/5/attachment": 500} {
		if status := p.read(t, target); status != want {
			t.Errorf("%s: status %d, want %d", target, status, want)
		}
	}
	r := p.report(t, 3)
	found := map[string]bool{}
	for _, f := range r.Findings {
		found[f.Class+" "+f.Path] = true
	}
	if len(found) != 2 || !found["code code"] || !found["status status"] || r.Overall.Confirmed != 1 || r.Verdict != verdict.Fail {
		t.Errorf("found %v; %+v", found, r.Overall)
	}
	if r.Dropped["own-error"] != 1 || r.Dropped["candidate-failed"] != 1 {
		t.Errorf("dropped %v", r.Dropped)
	}
}

// TestUnreadableWhereIDsAreTranslated: a list that is not JSON is a failure of the candidate, whichever tracker serves.
func TestUnreadableWhereIDsAreTranslated(t *testing.T) {
	t.Parallel()
	for phase, dropped := range map[string]int64{"old-compare": 0, "new-compare": 1} {
		p := newPair(t, pairOptions{
			settings: "switchover:\n  ids: {attachment: {mode: offset}}\n  rules: [{name: all, writes: old, reads: " + phase + "}]",
			changeNew: func(_ *http.Request, _ int64, status int, body []byte) (int, []byte) {
				return status, append(body, '}')
			},
		})
		p.read(t, "/rest/bug/1/attachment")
		r := p.report(t, 1)
		if isFound := len(r.Findings) == 1 && r.Findings[0].Class == "failure"; r.Dropped["candidate-failed"] != dropped || isFound != (dropped == 0) {
			t.Errorf("%s: found %+v, dropped %v", phase, r.Findings, r.Dropped)
		}
	}
}
