package recording_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"portico/upstream/canary/verdict"
	"portico/upstream/recording"
)

// answering is a tracker that says one thing to everything.
func answering(t *testing.T, status int, kind, text string) string {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		if status != http.StatusNotModified {
			fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// TestReplayPages: what servers say instead of a tracker is no answer: of the tracker that is right it is compared with nothing,
// and of the other one it is a failure.
func TestReplayPages(t *testing.T) {
	types := answering(t, http.StatusOK, "application/json", `{"bug":[],"attachment":[]}`)
	refused := answering(t, http.StatusNotFound, "application/json", `{"error":true,"code":51,"message":"no"}`)
	down, login := answering(t, http.StatusServiceUnavailable, "text/html", "<html>"), answering(t, http.StatusOK, "text/html", "<html>")
	text, nothing := answering(t, http.StatusOK, "text/plain", "OK"), answering(t, http.StatusOK, "application/json", "")
	unchanged := answering(t, http.StatusNotModified, "application/json", "")
	for name, test := range map[string]struct {
		right, judged, accept string
		dropped               bool
		found                 string
	}{
		"both down":          {right: down, judged: down, dropped: true},
		"both want a login":  {right: login, judged: login, dropped: true},
		"both say OK":        {right: text, judged: text, dropped: true},
		"both say nothing":   {right: nothing, judged: nothing, dropped: true},
		"the right one down": {right: down, judged: types, dropped: true},
		"candidate down":     {right: types, judged: down, found: "failure failure"},
		"candidate's login":  {right: refused, judged: login, found: "failure failure"},
		"both refuse":        {right: refused, judged: refused},
		"both unchanged":     {right: unchanged, judged: unchanged},
		"pages":              {right: login, judged: login, accept: "text/html,*/*"},
		"down and pages":     {right: down, judged: down, accept: "text/html", dropped: true},
	} {
		list := flagTypeReads(2)
		if test.accept != "" {
			for i := range list {
				list[i].Request.Headers["accept"] = test.accept
			}
		}
		r := replay(t, list, recording.ReplayOptions{Tracker: test.judged, Against: test.right, Target: 0.9}).Report
		if dropped := r.Dropped[string(verdict.DropOtherFailed)] == 2 && r.Verdict == verdict.Inconclusive; dropped != test.dropped {
			t.Errorf("%s: %s, dropped %v", name, r.Verdict, r.Dropped)
		}
		if found := describe(r); test.found == "" && found != "" || !strings.Contains(found, test.found) {
			t.Errorf("%s: found %q, want %q", name, found, test.found)
		}
	}
}

// TestReplayPagesRecorded: the page of a server that was down is nothing to compare with either.
func TestReplayPagesRecorded(t *testing.T) {
	list := flagTypeReads(1)
	list[0].Response = &recording.Response{Status: http.StatusServiceUnavailable, HTML: true, Headers: map[string]string{"content-type": "text/html"}}
	r := replay(t, list, recording.ReplayOptions{Tracker: answering(t, http.StatusServiceUnavailable, "text/html", "<html>")}).Report
	if r.Overall.Compared != 0 || r.Dropped[string(verdict.DropUnreadable)] != 1 {
		t.Errorf("%+v, dropped %v", r.Overall, r.Dropped)
	}
}
