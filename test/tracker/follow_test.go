package tracker_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portico/test/tracker"
)

// pair starts a tracker and one that follows it.
func pair(t *testing.T, o tracker.Options) (first, second front) {
	t.Helper()
	first = start(t, tracker.Options{})
	o.Follows = first.Server
	return first, start(t, o)
}

// TestFollowing: both show one set of data, and each write is in the journal of the one that made it.
func TestFollowing(t *testing.T) {
	first, second := pair(t, tracker.Options{})
	first.must("PUT", "/rest/bug/attachment/1?"+devKey, `{"summary":"by the first"}`)
	second.must("GET", "/rest/bug/attachment/1", "").want(t, "by the first", "attachments", "1", "summary")
	second.must("PUT", "/rest/bug/attachment/5?"+devKey, `{"summary":"by the second"}`)
	first.must("GET", "/rest/bug/attachment/5", "").want(t, "by the second", "attachments", "5", "summary")
	for name, f := range map[string]front{"1": first, "5": second} {
		if entries := f.Journal(); len(entries) != 1 || entries[0].Operation != "attachment.update" {
			t.Errorf("the journal of the one that wrote attachment %s: %+v", name, entries)
		}
	}
	if a, b := first.Requests()["attachment.get"], second.Requests()["attachment.get"]; a != 1 || b != 1 {
		t.Errorf("%d and %d reads were counted, want one each", a, b)
	}
	second.must("POST", "/_tracker/reset", "")
	first.must("GET", "/rest/bug/attachment/1", "").want(t, "public text", "attachments", "1", "summary")
	if len(first.Journal()) != 1 || len(second.Journal()) != 0 {
		t.Error("a reset empties the journal of the one that was reset, and no other")
	}
}

// TestFollowingLate: a follower that lags shows writes of the other late, and nothing late once it has made a write itself.
func TestFollowingLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := tracker.New(tracker.Options{})
		defer first.Close()
		second := tracker.New(tracker.Options{Follows: first, Quirks: []tracker.Quirk{tracker.QuirkLag}})
		defer second.Close()
		say := func(s *tracker.Server, method, path, body string) string {
			w := &recorder{header: http.Header{}}
			s.ServeHTTP(w, request(t, method, path, body))
			return w.body.String()
		}
		sees := func(s *tracker.Server, summary string) bool {
			return strings.Contains(say(s, "GET", "/rest/bug/attachment/1?include_fields=summary", ""), `"`+summary+`"`)
		}
		write := func(s *tracker.Server, summary string) {
			say(s, "PUT", "/rest/bug/attachment/1?"+devKey, `{"summary":"`+summary+`"}`)
		}
		write(first, "one")
		if !sees(first, "one") || !sees(second, "public text") {
			t.Error("at once the first shall show a write and the second not")
		}
		time.Sleep(301 * time.Millisecond)
		if !sees(second, "one") {
			t.Error("the second does not catch up")
		}
		write(first, "two")
		write(second, "three")
		if !sees(first, "three") || !sees(second, "three") {
			t.Error("a follower's own write is not seen at once")
		}
		time.Sleep(time.Millisecond)
		write(first, "four")
		if !sees(second, "three") {
			t.Error("a follower that has written does not lag any more")
		}
	})
}
