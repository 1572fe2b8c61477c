package migration

import (
	"fmt"
	"net/http"
	"testing"

	"portico/test/tracker"
	"portico/upstream/switchover"
)

// TestReadsShowWhatIsNotCopied has one tracker respond to reads and the other one get the writes, while nothing is copied. A caller sees what it has written,
// also after a restart; an id that a client was shown is good for all callers; and after writes have moved, a caller reads what others write.
func TestReadsShowWhatIsNotCopied(t *testing.T) {
	w := startWorld(t, 1, false)
	keys, names := tracker.Keys(tracker.SeedDemo), users()
	as := func(user string) *client {
		return &client{world: w, name: user, base: w.porticos[0].Clients, key: keys[user], http: http.DefaultClient}
	}
	signed := []string{"--actor", "a test", "--reason", "a test", "--config", w.file}
	pause := func(verb string) { run(t, append([]string{"migrate", "journal", verb}, signed...)...) }
	writer, other := as(names[0]), as("developer@demo.example")
	bug := w.bugs[0]
	shows := func(c *client, when string, id int, summary string) {
		t.Helper()
		for _, path := range []string{fmt.Sprintf("/rest/bug/attachment/%d", id), fmt.Sprintf("/rest/bug/%d/attachment", bug)} {
			var reply struct {
				Bugs        map[string][]shownAttachment
				Attachments map[string]shownAttachment
			}
			r := c.ask("GET", path+"?exclude_fields=data", nil)
			r.into(&reply)
			found := reply.Attachments[fmt.Sprint(id)].Summary
			for _, one := range reply.Bugs[fmt.Sprint(bug)] {
				if one.ID == id {
					found = one.Summary
				}
			}
			if c == other && reply.Bugs != nil && found == "" {
				continue // a list may be older for callers who have not written
			}
			if found != summary {
				t.Errorf("%s, %s sees %q in %s, want %q: %d %.200s", when, c.name, found, path, summary, r.status, r.text)
			}
		}
	}
	w.move(t, switchover.PhasePair{Reads: switchover.PhaseNewCompare, Writes: switchover.PhaseOldCompare}, false)
	pause("start")
	var made struct{ IDs []int }
	writer.ask("POST", fmt.Sprintf("/rest/bug/%d/attachment", bug), map[string]any{
		"data": "aGVsbG8=", "file_name": "hello.txt", "summary": "first", "content_type": "text/plain",
	}).into(&made)
	if len(made.IDs) != 1 {
		t.Fatal("the attachment was not made")
	}
	id := made.IDs[0]
	shows(writer, "at once", id, "first")
	shows(other, "at once", id, "first")
	w.porticos[0].Kill(t)
	w.porticos[0].Start(t)
	shows(writer, "after a restart", id, "first")
	shows(other, "after a restart", id, "first")

	pause("resume")
	w.settle(t)
	shows(other, "after the copy", id, "first")
	w.move(t, switchover.PhasePair{Reads: switchover.PhaseNewCompare, Writes: switchover.PhaseNewCompare}, false)
	pause("start")
	if r := other.ask("PUT", fmt.Sprintf("/rest/bug/attachment/%d", id), map[string]any{"summary": "second"}); !r.sure {
		t.Fatalf("the attachment was not changed: %d %s", r.status, r.text)
	}
	shows(writer, "after writes have moved", id, "second")
	shows(other, "after writes have moved", id, "second")
}
