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
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/verdict"
)

// rewriting changes the bodies of answers.
func rewriting(change func(n int64, r *http.Request, body []byte) []byte) func(http.Handler) http.Handler {
	var asked atomic.Int64
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			next.ServeHTTP(recorded, r)
			maps.Copy(w.Header(), recorded.Header())
			w.Header().Del("Content-Length")
			w.WriteHeader(recorded.Code)
			_, _ = w.Write(change(asked.Add(1), r, recorded.Body.Bytes()))
		})
	}
}

func TestLagEndsAsTransient(t *testing.T) {
	w := newWorld(t, worldOptions{
		fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkLag}},
		tune:  func(o *canary.Options) { o.ConfirmAfter = 600 * time.Millisecond },
	})
	follower := dial(t, w.fresh.url, transportOptions())
	for _, to := range []upstream.Tracker{w.client, follower} {
		if answer := updateSummary(1, "written to both").Make(t.Context(), to, w.caller); answer.Err != nil {
			t.Fatal(answer.Err)
		}
	}
	w.make(attachment("1"))
	if got := w.findings(); len(got) != 0 {
		t.Errorf("found %q, want nothing", got)
	}
	if got := w.sum(""); got.Transient != 1 || got.Compared != 1 {
		t.Errorf("got %+v, want one transient difference", got)
	}
}

// TestOneWrongReplyIsUnstable: the candidate is wrong once and right afterwards, and nothing was written.
func TestOneWrongReplyIsUnstable(t *testing.T) {
	w := newWorld(t, worldOptions{around: rewriting(func(n int64, _ *http.Request, body []byte) []byte {
		if n == 1 {
			return bytes.Replace(body, []byte(`"is_active"`), []byte(`"was_active"`), 1)
		}
		return body
	})})
	w.make(flagTypes("TestProduct"))
	if got := w.sum(""); got.Confirmed != 1 || len(w.findings()) != 2 {
		t.Errorf("got %+v and %q, want one comparison with two unstable differences", got, w.findings())
	}
}

// TestOtherMistakesEachTimeAreUnstable: nothing is wrong twice at the same place.
func TestOtherMistakesEachTimeAreUnstable(t *testing.T) {
	w := newWorld(t, worldOptions{around: rewriting(func(n int64, _ *http.Request, body []byte) []byte {
		name := []string{"needinfo flag", "review flag"}[n%2]
		return bytes.Replace(body, []byte(name), []byte("another text"), 1)
	})})
	w.make(flagTypes("TestProduct"))
	if got := w.sum(""); got.Confirmed != 1 || len(w.findings()) != 1 {
		t.Errorf("got %+v and %q, want one unstable difference", got, w.findings())
	}
}

// TestStaleCachedAnswerIsNotHeldAgainstTheCandidate: the client got what the tracker
// said long ago.
func TestStaleCachedAnswerIsNotHeldAgainstTheCandidate(t *testing.T) {
	w := newWorld(t, worldOptions{})
	call := flagTypes("TestProduct")
	old := upstream.Response{Document: mapping.NewDocument([]byte(`{"attachment":[],"bug":[]}`)), FromCache: true, Took: time.Microsecond}
	document := w.canary.Answered(t.Context(), w.caller, call, upstream.Sides{Serving: oldName, Compared: newName}, old)
	_ = document.Close()
	got := w.sum("")
	if got.Transient != 1 || len(w.findings()) != 0 {
		t.Errorf("got %+v, want one transient difference", got)
	}
	if n := append(got.AnsweredLatency, 0)[0]; n != 1 {
		t.Errorf("%d latencies were counted, want that of the second asking", n)
	}
}

func TestVolatileFieldEndsAsNoise(t *testing.T) {
	volatile := tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkVolatile}}
	w := newWorld(t, worldOptions{old: volatile, fresh: volatile})
	const calls = 10
	for range calls {
		w.make(attachment("1"))
		w.settle()
	}
	if got := w.sum(""); got.Noisy != calls || got.Compared != calls || len(w.findings()) != 0 {
		t.Errorf("got %+v, want %d noisy", got, calls)
	}
	// Once for the client, and twice more for each of two confirmations.
	if n := w.old.Requests()["attachment.get"]; n != calls+4 {
		t.Errorf("the old tracker was asked %d times for %d calls: what is known to be noise needs no asking", n, calls)
	}
}

// TestNoiseHidesNothingElse: beside a field that varies, one that is wrong is found,
// and one that is missing is not what varies.
func TestNoiseHidesNothingElse(t *testing.T) {
	volatile := []tracker.Quirk{tracker.QuirkVolatile}
	w := newWorld(t, worldOptions{
		old: tracker.Options{Quirks: volatile}, fresh: tracker.Options{Quirks: append(volatile, tracker.QuirkWrongValues)},
		around: rewriting(func(n int64, _ *http.Request, body []byte) []byte {
			if n > 8 {
				return bytes.ReplaceAll(body, []byte(`"served_as"`), []byte(`"handed_as"`))
			}
			return body
		}),
	})
	for range 8 {
		w.make(attachment("1"))
		w.settle()
	}
	got := strings.Join(w.findings(), "\n")
	for _, want := range []string{"value $.attachments[*].summary", "missing $.attachments[*].served_as", "extra $.attachments[*].handed_as"} {
		if !strings.Contains(got, want) {
			t.Errorf("found\n%s\nand not %s", got, want)
		}
	}
	if strings.Contains(got, "value $.attachments[*].served_as") {
		t.Errorf("found noise:\n%s", got)
	}
}

// TestNoiseIsLearntEarly: the reference is asked twice for calls without a difference.
func TestNoiseIsLearntEarly(t *testing.T) {
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) { o.NoiseShare = 1 }})
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

// TestAcceptedIsCountedApart, until it expires or is taken back.
func TestAcceptedIsCountedApart(t *testing.T) {
	w := newWorld(t, worldOptions{fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}}})
	w.make(attachment("1"))
	w.findings()
	list, err := w.store.Findings(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("got %d findings (%v), want 1", len(list), err)
	}
	signature := list[0].Signature
	if err := w.canary.Accept(t.Context(), signature, "somebody", "known", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.make(attachment("1"))
	if got := w.sum(""); got.Confirmed != 1 || got.Accepted != 1 {
		t.Errorf("got %+v, want one confirmed and one accepted", got)
	}
	if err := w.canary.Reopen(t.Context(), signature, "somebody", "not so"); err != nil {
		t.Fatal(err)
	}
	w.make(attachment("1"))
	if got := w.sum(""); got.Confirmed != 2 {
		t.Errorf("got %+v, want another one confirmed", got)
	}
	if err := w.canary.Reset(t.Context(), "somebody", "anew"); err != nil {
		t.Fatal(err)
	}
	if got := w.sum(""); got.Compared != 0 || len(w.findings()) != 0 {
		t.Errorf("after a reset there is %+v and %q", got, w.findings())
	}
}

// TestCandidateThatAnswersIsStillTheCandidate: a finding stays the same one when the
// candidate begins to answer.
func TestCandidateThatAnswersIsStillTheCandidate(t *testing.T) {
	w := newWorld(t, worldOptions{fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}}})
	w.make(attachment("1"))
	before := w.findings()
	w.makeAs(attachment("1"), upstream.Sides{Serving: newName, Compared: oldName}, dial(t, w.fresh.url, transportOptions()))
	if after := w.findings(); len(before) != 1 || len(after) != 1 || before[0] != after[0] {
		t.Errorf("found %q, and %q when the candidate answers", before, after)
	}
	if got := w.sum(""); got.Confirmed != 2 {
		t.Errorf("got %+v, want 2 confirmed", got)
	}
}

// TestSamplesTellNoContent: what is kept of a finding has places and no words.
func TestSamplesTellNoContent(t *testing.T) {
	w := newWorld(t, worldOptions{fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkWrongValues}}})
	for range 8 {
		w.make(attachment("1"))
	}
	w.findings()
	list, _ := w.store.Findings(t.Context())
	_, samples, err := w.store.Finding(t.Context(), list[0].Signature)
	if err != nil || len(samples) == 0 || len(samples) > 5 {
		t.Fatalf("%d samples are kept (%v), want 1 to 5", len(samples), err)
	}
	for _, sample := range samples {
		text := string(sample.Text)
		for _, secret := range []string{"altered", "public text", "public.txt", "DevKey", "example.com"} {
			if strings.Contains(text, secret) {
				t.Errorf("a sample tells %q: %s", secret, text)
			}
		}
		for _, want := range []string{`"target":"/rest/bug/attachment/1"`, `"path":"$.attachments[*].summary"`, `"answered_status":200`} {
			if !strings.Contains(text, want) {
				t.Errorf("a sample lacks %s: %s", want, text)
			}
		}
	}
}

// TestWhatBeganBeforeAResetDoesNotCount: a difference that still waits to be
// confirmed belongs to the time before.
func TestWhatBeganBeforeAResetDoesNotCount(t *testing.T) {
	w := newWorld(t, worldOptions{
		fresh: tracker.Options{Quirks: []tracker.Quirk{tracker.QuirkMissingField}},
		tune:  func(o *canary.Options) { o.ConfirmAfter = 500 * time.Millisecond },
	})
	w.make(attachment("1"))
	for w.canary.Load().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := w.canary.Reset(t.Context(), "somebody", "a better candidate"); err != nil {
		t.Fatal(err)
	}
	if got := w.findings(); len(got) != 0 {
		t.Errorf("found %q", got)
	}
	if got := w.sum(""); got.Compared != 0 {
		t.Errorf("got %+v, want nothing", got)
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

// TestWhatHidesADifferenceDoesNotExcuseIt: a candidate that is wrong first and then refuses was wrong each time.
func TestWhatHidesADifferenceDoesNotExcuseIt(t *testing.T) {
	w := newWorld(t, worldOptions{around: wrongEveryOtherTime(http.StatusNotFound, `{"error":true,"code":51,"message":"gone"}`)})
	w.make(flagTypes("TestProduct"))
	if got := w.sum(""); got.Transient != 0 || got.Confirmed != 1 || len(w.findings()) == 0 {
		t.Errorf("got %+v and %q, want a mismatch", got, w.findings())
	}
}

// TestFailureConfirmsNothing and excuses nothing: a candidate that is broken when it is asked again is to be asked another time.
func TestFailureConfirmsNothing(t *testing.T) {
	for name, refusal := range map[string]string{"a status": `{"error":true,"code":100500,"message":"broken"}`, "a page": "<html>"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{around: wrongEveryOtherTime(http.StatusInternalServerError, refusal)})
			w.make(flagTypes("TestProduct"))
			w.dropped(verdict.DropCandidateFailed, 1)
			if got := w.sum(""); got.Compared != 0 || len(w.findings()) != 0 {
				t.Errorf("got %+v and %q, want nothing", got, w.findings())
			}
		})
	}
}
