package e2e

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/tracker"
	"portico/upstream/transport"
)

// docs/reference/clients.md, section 4: the duties that are about what goes wrong.

// failing are the failures that Portico answers for itself: an environment in which each happens, and what it answers.
func failing(t *testing.T) map[int]*environment {
	t.Helper()
	patient := transport.Options{Break: transport.BreakOptions{Unanswered: 1000, MinRequests: 1000}}
	silent := stub(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	small := plan{}
	small.limits.Body = 64
	return map[int]*environment{
		413: open(t, small),
		502: open(t, plan{before: silent, transport: patient}),
		503: full(t),
		504: open(t, plan{timeout: 50 * time.Millisecond, tracker: tracker.Options{
			Faults: []tracker.Fault{{Op: "attachment.*", Kind: tracker.FaultHangBefore}, {Op: "flag_type.*", Kind: tracker.FaultHangBefore}},
		}}),
	}
}

// full gives an environment whose tracker is busy, so that further requests are refused.
func full(t *testing.T) *environment {
	t.Helper()
	entered, release := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	h := open(t, plan{
		transport: transport.Options{Limit: transport.LimitOptions{Slots: 1, ReserveWrites: -1, Queue: -1}},
		before: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/rest/bug/1/comment" && asked.Add(1) == 1 {
					close(entered)
					<-release
				}
				next.ServeHTTP(w, r)
			})
		},
	})
	h.get(t, "", "/rest/flag_type/TestProduct").ok(t, 200) // the dialect is known from here on
	done := make(chan struct{})
	go func() {
		defer close(done)
		response, err := straight().Get(h.base + "/rest/bug/1/comment")
		if err == nil {
			response.Body.Close()
		}
	}()
	<-entered
	t.Cleanup(func() {
		close(release)
		<-done
	})
	return h
}

func TestDuty_04_PorticosOwnErrorsAreJSONToo(t *testing.T) {
	t.Parallel()
	for status, h := range failing(t) {
		for _, op := range seven() {
			if status == 413 && op.method == "GET" {
				continue
			}
			body := op.body
			if status == 413 {
				body = strings.Replace(body, "{", `{"padding":"`+strings.Repeat("x", 100)+`",`, 1)
			}
			want := status
			if status == 502 && op.method != "GET" {
				want = 504 // what became of the write is unknown
			}
			got := h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: body})
			got.refused(t, want, 200000+want)
			if !strings.HasPrefix(string(got.body), `{"error":true,"code":`) {
				t.Errorf("%d: the error begins with %.40s", status, got.body)
			}
		}
		if status != 504 && status != 413 {
			h.get(t, "", "/rest/bug/1").refused(t, status, 200000+status)
		}
	}
	h := open(t, plan{})
	h.get(t, "", "/rest/bug/1/attachment?x="+strings.Repeat("y", 9000)).refused(t, 414, 200414)
	h.get(t, "", "/rest/bug/1?x="+strings.Repeat("y", 9000)).refused(t, 414, 200414)
	h.get(t, "", "/rest/bug/%00/attachment").refused(t, 400, 32000)
}

func TestDuty_20_AQueueRatherThanARefusal(t *testing.T) {
	t.Parallel()
	h := open(t, plan{
		transport: transport.Options{Limit: transport.LimitOptions{Slots: 2, ReserveWrites: -1, Queue: 50, QueueWait: 10 * time.Second}},
		tracker:   tracker.Options{Faults: []tracker.Fault{{Op: "attachment.*", Kind: tracker.FaultSlow, Delay: 5 * time.Millisecond}}},
	})
	failed := make(chan error, 30)
	for range cap(failed) {
		go func() {
			response, err := straight().Get(h.base + "/rest/bug/attachment/1")
			if err == nil {
				response.Body.Close()
				if response.StatusCode != 200 {
					err = http.ErrNotSupported
				}
			}
			failed <- err
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Errorf("one of %d at once was refused: %v", cap(failed), err)
		}
	}
}

func TestDuty_20_ARefusalSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	got := full(t).get(t, "", "/rest/bug/attachment/1").refused(t, 503, 200503)
	if got.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", got.header)
	}
}
