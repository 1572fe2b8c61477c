package bugzilla

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/transport"
)

// TestWhatOpensTheBreaker: pages that a client can bring about refuse no other client, and bad answers to fair questions do.
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
		{"internal error 200", 200, `{"error":true,"code":100500,"message":"m"}`, transport.Open},
		{"page 503", 503, "<html>", transport.Open},
		{"redirect", 302, "", transport.Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, stack := dialStack(t, "bugzilla-5", answering(c.status, "text/html", c.body), transport.Options{})
			for range 30 {
				_, read := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"1"}}})
				_, write := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{1}}})
				if read == nil || write == nil {
					t.Fatal("a success")
				}
			}
			if reads, writes := stack.Reads.Status(), stack.Writes.Status(); reads.Opens > 0 != (c.want == transport.Open) ||
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
		_, read := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"1"}}})
		_, write := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{1}}})
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
			mapping.Error{Code: mapping.CodeUnavailable, Status: 503, Reason: mapping.ReasonBadResponse, RetryAfter: 9 * time.Second},
			mapping.Error{Code: mapping.CodeTimeout, Status: 504, Reason: mapping.ReasonBadResponse, Unknown: true},
		},
	} {
		client := dial(t, "bugzilla-5", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "9")
			http.Error(w, "slow down", c.status)
		})
		reader, writer := upstream.Caller{Address: "192.0.2.1"}, upstream.Caller{Address: "192.0.2.2"} // one would have to wait after the first 429
		_, read := client.Do(t.Context(), reader, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"1"}}})
		_, write := client.Do(t.Context(), writer, upstream.Call{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{IDs: []int64{1}}})
		for want, err := range map[*mapping.Error]error{&c.read: read, &c.write: write} {
			checkError(t, err, want.Code, want.Status, want.Reason, want.Unknown)
			if said, _ := errors.AsType[*mapping.Error](err); said.RetryAfter != want.RetryAfter {
				t.Errorf("%d: ask again after %v, want %v", c.status, said.RetryAfter, want.RetryAfter)
			}
		}
	}
}

// everyCall has one call of each operation.
func everyCall() []upstream.Call {
	return []upstream.Call{
		{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}},
		{Operation: mapping.OpCreateFlagType, CreateFlagType: &mapping.FlagTypeCreate{}},
		{Operation: mapping.OpUpdateFlagTypes, UpdateFlagTypes: &mapping.FlagTypeUpdate{Names: []string{"made"}}},
		{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"1"}}},
		{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{Attachments: []string{"1"}}},
		{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{Bugs: []string{"1"}}},
		{Operation: mapping.OpUpdateAttachments, UpdateAttachments: &mapping.AttachmentUpdate{IDs: []int64{1}}},
	}
}

// TestSuccessWithoutItsContent: an object that does not hold what was requested is no success, and the outcome of such a write is
// unknown. Long responses to writes are judged as well: the error may not be at their beginning.
func TestSuccessWithoutItsContent(t *testing.T) {
	long := `{"x":"` + strings.Repeat("x", headSize) + `"`
	for _, c := range []struct {
		body    string
		code    int // of writes
		unknown bool
	}{
		{`{}`, mapping.CodeTimeout, true},
		{`{"id":null,"ids":null,"flagtypes":0,"attachments":0,"bugs":0}`, mapping.CodeTimeout, true},
		{`{"version":"5.2+"}`, mapping.CodeTimeout, true},
		{long + `}`, mapping.CodeTimeout, true},
		{long + `,"error":true,"code":100500,"message":"m"}`, mapping.CodeTrackerFailure, false},
		{long + `,"flagtypes":[],"attachments":[],"ids":[5],"id":5}`, 0, false},
	} {
		client := dial(t, "bugzilla-5", answering(200, "application/json", c.body))
		for _, call := range everyCall() {
			isLong := len(c.body) > headSize
			if isLong && !call.Operation.IsWrite() {
				continue // it streams
			}
			_, err := client.Do(t.Context(), upstream.Caller{}, call)
			said, failed := errors.AsType[*mapping.Error](err)
			switch {
			case !call.Operation.IsWrite():
				if !failed || said.Reason != mapping.ReasonBadResponse || said.Unknown {
					t.Errorf("%s answered with %s: %v", call.Operation, c.body, err)
				}
			case failed != (c.code != 0), failed && (said.Code != c.code || said.Unknown != c.unknown):
				t.Errorf("%s answered with %.100s…: %v", call.Operation, c.body, err)
			}
		}
	}
}
