package bugzilla

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/transport"
)

// TestWhatOpensTheBreaker: pages that a client can bring about shut nobody else out, and bad answers to fair questions do.
func TestWhatOpensTheBreaker(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   transport.State
	}{
		{"page 400", 400, "<html>", transport.Closed},
		{"page 404", 404, "<html>", transport.Closed},
		{"page 414", 414, "<html>", transport.Closed},
		{"page 429", 429, "<html>", transport.Closed},
		{"cut error 404", 404, `{"error":`, transport.Closed},
		{"page 200", 200, "<html>", transport.Open},
		{"cut JSON 200", 200, `{"bugs":{},`, transport.Open},
		{"page 503", 503, "<html>", transport.Open},
		{"redirect", 302, "", transport.Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, breakers := dialBreakers(t, "bugzilla-5", answering(c.status, "text/html", c.body))
			for range 30 {
				_, read := client.BugAttachments(t.Context(), upstream.Caller{}, mapping.AttachmentsRequest{Bugs: []string{"1"}})
				_, write := client.UpdateFlagTypes(t.Context(), upstream.Caller{}, mapping.FlagTypeUpdate{IDs: []int64{1}})
				if read == nil || write == nil {
					t.Fatal("a success")
				}
			}
			if reads, writes := breakers.Reads.Status(), breakers.Writes.Status(); reads.Opens > 0 != (c.want == transport.Open) ||
				writes.Opens > 0 != (c.want == transport.Open) {
				t.Errorf("the breakers have opened %d and %d times, want %s", reads.Opens, writes.Opens, c.want)
			}
		})
	}
}

// TestPagesSayHowToLogIn: only a 401 does, whatever else has the header.
func TestPagesSayHowToLogIn(t *testing.T) {
	challenges := []string{`Basic realm="staff"`, "Negotiate"}
	for status, want := range map[int][]string{401: challenges, 403: nil, 500: nil} {
		client := dial(t, "bugzilla-5", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Www-Authenticate"] = challenges
			http.Error(w, "who are you", status)
		})
		_, read := client.BugAttachments(t.Context(), upstream.Caller{}, mapping.AttachmentsRequest{Bugs: []string{"1"}})
		_, write := client.UpdateFlagTypes(t.Context(), upstream.Caller{}, mapping.FlagTypeUpdate{IDs: []int64{1}})
		for _, err := range []error{read, write} {
			if said, _ := errors.AsType[*mapping.Error](err); said == nil || !slices.Equal(said.Challenge, want) {
				t.Errorf("%d: %v has not the challenges %q", status, err, want)
			}
		}
	}
}

// TestPagesSayWhenToAskAgain: of a write that got a 503 nobody knows what became, so nobody is told to repeat it.
func TestPagesSayWhenToAskAgain(t *testing.T) {
	for _, c := range []struct {
		status      int
		read, write mapping.Error
	}{
		{
			429,
			mapping.Error{Code: mapping.CodeRateLimited, Status: 429, Reason: mapping.ReasonWebServer, RetryAfter: 9 * time.Second},
			mapping.Error{Code: mapping.CodeRateLimited, Status: 429, Reason: mapping.ReasonWebServer, RetryAfter: 9 * time.Second},
		},
		{
			503,
			mapping.Error{Code: mapping.CodeUnavailable, Status: 503, Reason: mapping.ReasonBadAnswer, RetryAfter: 9 * time.Second},
			mapping.Error{Code: mapping.CodeTimeout, Status: 504, Reason: mapping.ReasonBadAnswer, Unknown: true},
		},
	} {
		client := dial(t, "bugzilla-5", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "9")
			http.Error(w, "slow down", c.status)
		})
		_, read := client.BugAttachments(t.Context(), upstream.Caller{}, mapping.AttachmentsRequest{Bugs: []string{"1"}})
		_, write := client.UpdateFlagTypes(t.Context(), upstream.Caller{}, mapping.FlagTypeUpdate{IDs: []int64{1}})
		for want, err := range map[*mapping.Error]error{&c.read: read, &c.write: write} {
			checkError(t, err, want.Code, want.Status, want.Reason, want.Unknown)
			if said, _ := errors.AsType[*mapping.Error](err); said.RetryAfter != want.RetryAfter {
				t.Errorf("%d: ask again after %v, want %v", c.status, said.RetryAfter, want.RetryAfter)
			}
		}
	}
}
