package canary

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
)

// TestTrackersChangePlaces makes the candidate the primary, and the primary the candidate, and then takes that back. Writes go to the primary of the
// time, and the comparison is that of the present roles.
func TestTrackersChangePlaces(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{})
	text, err := os.ReadFile(p.file)
	process.Must(t, err)
	const roles = "primary: old\ncandidate: fresh\n"
	swapped := strings.Replace(string(text), roles, "primary: fresh\ncandidate: old\n", 1)
	updates := func(server *tracker.Server) (n int) {
		for _, entry := range server.Journal() {
			if entry.Operation == "attachment.update" {
				n++
			}
		}
		return n
	}
	for i, c := range []struct {
		file, serves string
		want         [2]int
	}{
		{string(text), "old", [2]int{1, 0}}, {swapped, "fresh", [2]int{1, 1}}, {string(text), "old", [2]int{2, 1}},
	} {
		if i > 0 {
			p.Stop(t)
			process.Must(t, os.WriteFile(p.file, []byte(c.file), 0o600))
			p.Start(t)
		}
		status := p.send(t, http.MethodPut, "/rest/bug/attachment/1", `{"summary": "changed"}`, "X-BUGZILLA-API-KEY: "+fixtureKey("admin"))
		if got := [2]int{updates(p.old), updates(p.fresh)}; status != http.StatusOK || got != c.want {
			t.Errorf("%d: a write gets %d, and the trackers have got %v writes, want %v", i, status, got, c.want)
		}
		if pair := p.report(t, 1).Pair; pair.Serving != c.serves {
			t.Errorf("%d: %+v are compared", i, pair)
		}
	}
}

// TestAnIDWithoutAPair reads what has no id at the candidate: objects that the reference does not have either, and those that it has.
func TestAnIDWithoutAPair(t *testing.T) {
	t.Parallel()
	p := newPair(t, pairOptions{canary: quick, settings: "switchover: {ids: {bug: {mode: table}}}"})
	for i, path := range []string{"/rest/bug/99999/attachment", "/rest/bug/attachment/99999", "/rest/bug/attachment/1?attachment_ids=99999"} {
		p.read(t, path)
		n := int64(i + 1)
		if r := p.report(t, n); len(r.Findings) > 0 || r.Overall.Failed+r.Overall.Compared > 0 || r.Dropped["own-error"] != n {
			t.Errorf("%s: %+v, dropped %v", path, r.Findings, r.Dropped)
		}
	}
	for i, path := range []string{"/rest/bug/1/attachment", "/rest/bug/attachment/1"} {
		p.read(t, path)
		r := p.report(t, int64(4+i))
		if found := r.open("status"); len(found) != 1+i || !strings.Contains(found[i].Note, "200 → 404") || r.Overall.Failed > 0 {
			t.Errorf("%s: %+v, %d failures", path, r.Findings, r.Overall.Failed)
		}
	}
}
