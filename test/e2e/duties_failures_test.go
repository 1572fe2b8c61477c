package e2e

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/tracker"
	"portico/upstream/transport"
)

// docs/reference/clients.md, section 4: the duties that are about what goes wrong.

// failing are the failures that Portico answers for itself: a environment in which each happens, and what it answers.
func failing(t *testing.T) map[int]*environment {
	t.Helper()
	patient := transport.Options{Break: transport.BreakOptions{Unanswered: 1000, MinRequests: 1000}}
	silent := stub(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
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

// full gives a environment whose tracker is so busy that nobody else is let through.
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

func TestDuty_04_AnAnswerThatIsNoJSONBecomesAnError(t *testing.T) {
	t.Parallel()
	for _, kind := range []tracker.FaultKind{tracker.FaultError500, tracker.FaultHTML200, tracker.FaultEmpty200, tracker.FaultTruncateJSON} {
		h := open(t, plan{tracker: tracker.Options{Faults: []tracker.Fault{{Op: "attachment.*", Kind: kind}, {Op: "flag_type.*", Kind: kind}}}})
		for _, op := range seven() {
			want := 502
			if op.method != "GET" {
				want = 504
			}
			h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).refused(t, want, 200000+want)
		}
	}
}

func TestDuty_04_InternalErrorsAreNoSuccess(t *testing.T) {
	t.Parallel()
	h := open(t, plan{tracker: tracker.Options{Faults: []tracker.Fault{{Kind: tracker.FaultInternal}}}})
	for _, op := range seven() {
		h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).fails(t, 500, 100500)
	}
}

// Without the challenge no client would ever send the web server what it asks for.
func TestDuty_04_TheChallengeOfAWebServerGoesOn(t *testing.T) {
	t.Parallel()
	const challenge = `Basic realm="staff"`
	h := open(t, plan{before: stub(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "<html>who are you", http.StatusUnauthorized)
	})})
	for _, op := range seven() {
		got := h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).refused(t, 401, 200401)
		if asked := got.header.Get("WWW-Authenticate"); asked != challenge {
			t.Errorf("%s: WWW-Authenticate is %q", op.name, asked)
		}
	}
	if got := h.get(t, "admin", "/rest/bug/1"); got.header.Get("WWW-Authenticate") != challenge {
		t.Errorf("any other path: %d %v", got.status, got.header)
	}
}

func TestDuty_20_TheTrackersRateLimitGoesOn(t *testing.T) {
	t.Parallel()
	limited := plan{before: stub(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "17")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":true,"code":32610,"message":"slow down","documentation":"d"}`)
	})}
	for _, op := range append(seven(), operation{"any other path", "GET", "/bug/1", "", 0, 0}) {
		h := open(t, limited) // the next request of this client would not be sent
		got := h.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}).fails(t, 429, 32610)
		if after := got.header.Get("Retry-After"); after != "17" {
			t.Errorf("%s: Retry-After is %q", op.name, after)
		}
	}
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
