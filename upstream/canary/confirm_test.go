package canary_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
)

// changed sends all answers otherwise than the tracker has said them.
func changed(change func(r *http.Request, said *httptest.ResponseRecorder)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said := httptest.NewRecorder()
			next.ServeHTTP(said, r)
			change(r, said)
			maps.Copy(w.Header(), said.Header())
			w.Header().Del("Content-Length")
			w.WriteHeader(said.Code)
			_, _ = w.Write(said.Body.Bytes())
		})
	}
}

// rewriting changes the bodies of answers.
func rewriting(change func(n int64, r *http.Request, body []byte) []byte) func(http.Handler) http.Handler {
	var asked atomic.Int64
	return changed(func(r *http.Request, said *httptest.ResponseRecorder) {
		said.Body = bytes.NewBuffer(change(asked.Add(1), r, said.Body.Bytes()))
	})
}

// TestStaleCachedAnswerIsNotHeldAgainstTheCandidate: the client got what the tracker
// said long ago.
func TestStaleCachedAnswerIsNotHeldAgainstTheCandidate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	call := flagTypes("TestProduct")
	old := upstream.Response{Document: mapping.NewDocument([]byte(`{"attachment":[],"bug":[]}`)), FromCache: true, Took: time.Hour}
	document := w.canary.Answered(t.Context(), w.caller, call, upstream.Sides{Serving: oldName, Compared: newName}, old)
	_ = document.Close()
	got := w.sum("")
	if got.Transient != 1 || len(w.findings()) != 0 {
		t.Errorf("got %+v, want one transient difference", got)
	}
	if n := verdict.Total(got.AnsweredLatency); n != 1 || got.AnsweredLatency[len(got.AnsweredLatency)-1] != 0 {
		t.Errorf("%d latencies were counted, want that of the second asking, not of the cache: %v", n, got.AnsweredLatency)
	}
}

// TestNoiseIsLearntEarly: the reference is asked twice for calls without a difference.
func TestNoiseIsLearntEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) { o.Noise = 1 }})
	for range 4 {
		w.make(attachment("1"))
	}
	if got := w.sum(""); got.Same != 4 {
		t.Errorf("got %+v, want 4 the same", got)
	}
	if n := w.old.Requests()["attachment.get"]; n != 12 {
		t.Errorf("the old tracker was asked %d times for 4 calls, want 12", n)
	}
}

// TestSamplesTellNoContent: what is kept of a finding has places and no words, and no key that a client wrote behind a second question mark.
func TestSamplesTellNoContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkWrongValues}}})
	call := attachment("1")
	call.Attachments.Exclude = []string{"data?api_key=WrittenKey"}
	w.caller.UserAgent = "curl token=WrittenKey"
	for range 8 {
		w.make(call)
	}
	w.findings()
	list, _ := w.store.Findings(t.Context())
	_, samples, err := w.store.Finding(t.Context(), list[0].Signature)
	if err != nil || len(samples) == 0 || len(samples) > 5 {
		t.Fatalf("%d samples are kept (%v), want 1 to 5", len(samples), err)
	}
	for _, sample := range samples {
		text := string(sample.Text)
		for _, secret := range []string{"altered", "public text", "public.txt", "DevKey", "WrittenKey", "example.com"} {
			if strings.Contains(text, secret) {
				t.Errorf("a sample tells %q: %s", secret, text)
			}
		}
		for _, want := range []string{`"target":"/rest/bug/attachment/1?exclude_fields=`, `"path":"$.attachments[*].summary"`, `"answered_status":200`} {
			if !strings.Contains(text, want) {
				t.Errorf("a sample lacks %s: %s", want, text)
			}
		}
	}
}

// wrongEveryOtherTime renames a member in each answer but the second, fourth and so on, which it refuses.
func wrongEveryOtherTime(status int, refusal string) func(http.Handler) http.Handler {
	var asked atomic.Int64
	return func(next http.Handler) http.Handler {
		wrong := rewriting(func(_ int64, _ *http.Request, body []byte) []byte {
			return bytes.Replace(body, []byte(`"is_active"`), []byte(`"was_active"`), 1)
		})(next)
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if asked.Add(1)%2 == 1 {
				wrong.ServeHTTP(rw, r)
				return
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, refusal)
		})
	}
}

// TestRefusalTheSecondTime: a candidate that is wrong first and then refuses was wrong each time. One that is broken when it is asked
// again confirms and excuses nothing.
func TestRefusalTheSecondTime(t *testing.T) {
	t.Parallel()
	for refusal, status := range map[string]int{
		`{"error":true,"code":51,"message":"gone"}`:       http.StatusNotFound,
		`{"error":true,"code":100500,"message":"broken"}`: http.StatusInternalServerError, "<html>": http.StatusInternalServerError,
	} {
		t.Run(refusal, func(t *testing.T) {
			w := newWorld(t, worldOptions{around: wrongEveryOtherTime(status, refusal)})
			w.make(flagTypes("TestProduct"))
			if status == http.StatusInternalServerError {
				w.dropped(verdict.DropCandidateFailed, 1)
			} else if got := w.sum(""); got.Transient != 0 || got.Confirmed != 1 {
				t.Errorf("got %+v, want a mismatch", got)
			}
			if found := w.findings(); (len(found) == 0) != (status == http.StatusInternalServerError) {
				t.Errorf("found %q", found)
			}
		})
	}
}

// TestStatusAndTypeAreCompared as the trackers send them, also where Portico's clients get the same for both. What a client gets from a
// cache has no status of its own, so that it is taken for the usual one until both are asked again.
func TestStatusAndTypeAreCompared(t *testing.T) {
	t.Parallel()
	const other, none = "TestProduct", "NoSuchProduct"
	for name, test := range map[string]struct {
		product    string
		old, fresh int    // statuses
		kind       string // the candidate's content type
		cached     bool
		want       string
		transient  int64
	}{
		"success": {other, 200, 202, "", false, "status status", 0}, "both success": {other, 203, 203, "", false, "", 0},
		"error": {none, 404, 200, "", false, "status status", 0}, "both error": {none, 200, 200, "", false, "", 0},
		"error with a success": {none, 401, 200, "", false, "status status", 0},
		"cached":               {other, 200, 200, "", true, "", 0}, "cached, another": {other, 200, 203, "", true, "status status", 0},
		"cached, unusual": {other, 203, 203, "", true, "", 1},
		"page":            {other, 200, 200, "text/html; charset=UTF-8", false, "header header.content-type", 0},
		"same type":       {other, 200, 200, "Application/JSON;charset=utf-8", false, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{
				aroundOld: changed(func(_ *http.Request, said *httptest.ResponseRecorder) { said.Code = test.old }),
				around: changed(func(_ *http.Request, said *httptest.ResponseRecorder) {
					said.Code = test.fresh
					if test.kind != "" {
						said.Header().Set("Content-Type", test.kind)
					}
				}),
			})
			call := flagTypes(test.product)
			if test.cached {
				text, err := call.Make(t.Context(), w.client, w.caller).Document.Load(jsonblob.SplitOptions{})
				must(t, err)
				cached := upstream.Response{Document: mapping.NewDocument(text), FromCache: true, Took: time.Millisecond}
				_ = w.canary.Answered(t.Context(), w.caller, call, sides, cached).Close()
			} else {
				w.make(call)
			}
			found, sum := strings.Join(w.findings(), ", "), w.sum("")
			if strings.TrimPrefix(found, "flag_type.get ") != test.want || sum.Transient != test.transient || sum.Compared != 1 {
				t.Errorf("found %q and %+v, want %q", found, sum, test.want)
			}
		})
	}
}
