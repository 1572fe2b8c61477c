package bugzilla

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/transport"
)

// TestCallsWaitWithSmallStacks: of the many that wait for a slot none is inside the HTTP client yet, whose frames double what
// each of them takes. A call that had to wait is carried out, and leaves its slot.
func TestCallsWaitWithSmallStacks(t *testing.T) {
	open := make(chan struct{})
	client, stack := dialStack(t, "bugzilla-5", func(w http.ResponseWriter, r *http.Request) {
		<-open
		answering(http.StatusOK, "application/json", `{"bugs":{},"attachments":{}}`)(w, r)
	}, transport.Options{Limit: transport.LimitOptions{Slots: 1, ReserveWrites: -1, QueueWait: time.Minute}})
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() {
			answer, err := client.Do(t.Context(), upstream.Caller{}, upstream.Call{Operation: mapping.OpBugAttachments, Attachments: &mapping.AttachmentsRequest{Bugs: []string{"1"}}})
			if err == nil {
				err = answer.Document.Close()
			}
			ended <- err
		}()
	}
	for end := time.Now().Add(10 * time.Second); stack.Limiter.Load().Waiting == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody waits")
		}
	}
	all := make([]byte, 1<<20)
	waiting := 0
	for each := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if !strings.Contains(each, "(*Limiter).acquire") {
			continue
		}
		if waiting++; strings.Contains(each, "resty") || strings.Contains(each, "http.(*Client)") {
			t.Errorf("it waits inside the HTTP client:\n%s", each)
		}
	}
	close(open)
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if load := stack.Limiter.Load(); waiting != 1 || load.InUse != 0 {
		t.Errorf("%d waited, at the end %+v", waiting, load)
	}
}
