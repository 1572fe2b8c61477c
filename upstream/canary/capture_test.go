package canary_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/test/tracker"
	"portico/upstream"
	"portico/upstream/canary"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/transport"
)

// upload attaches content to bug 1 and gives the new id.
func upload(t *testing.T, to upstream.Tracker, caller upstream.Caller, content []byte) string {
	t.Helper()
	name, summary, kind := "large.bin", "large", "application/octet-stream"
	blob := jsonblob.BlobFromRaw(content)
	defer blob.Close()
	call := upstream.Call{Operation: mapping.OpCreateAttachment, CreateAttachment: &mapping.AttachmentCreate{
		Bugs: []string{"1"}, Data: blob, FileName: &name, Summary: &summary, ContentType: &kind,
	}}
	answer := call.Make(t.Context(), to, caller)
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
	text, err := answer.Document.Load(jsonblob.SplitOptions{})
	must(t, err)
	return strings.Trim(string(text[strings.IndexByte(string(text), '['):]), "[]} ")
}

// largeWorld has an attachment of 10 MB on both trackers, on the candidate with
// another content if it is spoilt.
func largeWorld(t *testing.T, spoilt bool, tune func(*canary.Options)) (w *world, id string) {
	t.Helper()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	roomy := tracker.Options{Params: tracker.Params{MaxAttachmentSize: 20_000}, Now: func() time.Time { return noon }}
	w = newWorld(t, worldOptions{old: roomy, fresh: roomy, tune: tune})
	content := make([]byte, 4<<20)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(content)
	id = upload(t, w.client, w.caller, content)
	if spoilt {
		content[3<<20]++
	}
	if other := upload(t, dial(t, w.fresh.url, transport.Options{}), w.caller, content); other != id {
		t.Fatalf("the ids are %s and %s", id, other)
	}
	return w, id
}

// TestLargeAttachmentsAreCompared, byte by byte of their content, and not dropped.
func TestLargeAttachmentsAreCompared(t *testing.T) {
	t.Parallel() // it takes long
	dir := t.TempDir()
	keep := func(o *canary.Options) { o.Split.Dir = dir }
	w, id := largeWorld(t, false, keep)
	for range 2 {
		w.make(attachment(id))
	}
	if got := w.sum(""); len(got.Dropped) != 0 || got.Compared != 2 || len(w.findings()) != 0 {
		t.Errorf("got %+v and found %q, want 2 compared", got, w.findings())
	}
	w, id = largeWorld(t, true, keep)
	w.make(attachment(id))
	if got := w.findings(); len(got) != 1 || got[0] != "attachment.get digest $.attachments[*].data" {
		t.Errorf("found %q, want another content", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%d files are left (%v)", len(left), err)
	}
	if load := w.canary.Load(); load != (canary.Load{}) || w.canary.Held() != 0 {
		t.Errorf("got %+v at the end, want nothing", load)
	}
}

// TestContentDoesNotCount towards the length of what is compared member by member:
// beside a large attachment, rules excuse what they excuse and all else is found.
func TestContentDoesNotCount(t *testing.T) {
	t.Parallel()
	large := func(last, second string) func(int64) answer {
		content := base64.StdEncoding.EncodeToString(append(make([]byte, 256<<10), last...))
		return always(answer{http.StatusOK, `{"bugs":{},"attachments":{"1":{"id":1,"data":"` + content + `","creation_time":"2024-01-01T00:00:0` + second + `Z"}}}`})
	}
	later := compare.Equivalence{
		Name: "later", Type: compare.TimeWithin, Path: "$.attachments[*].creation_time", Within: 5 * time.Second,
		Owner: "mara", Reason: "why not", Expires: time.Now().Add(time.Hour),
	}
	excused := []compare.Equivalence{later}
	for name, c := range map[string]struct {
		fresh func(int64) answer
		rules []compare.Equivalence
		want  string
	}{
		"the same":      {large("a", "0"), nil, ""},
		"another time":  {large("a", "3"), nil, "attachment.get time $.attachments[*].creation_time"},
		"excused":       {large("a", "3"), excused, ""},
		"another digit": {large("b", "3"), excused, "attachment.get digest $.attachments[*].data"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{aroundOld: saying(large("a", "0")), around: saying(c.fresh), tune: func(o *canary.Options) {
				o.MaxBody, o.Equivalences = 64<<10, c.rules
			}})
			w.make(attachment("1"))
			if got := strings.Join(w.findings(), "\n"); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			if got := w.sum(""); got.Compared != 1 || len(got.Dropped) != 0 {
				t.Errorf("got %+v, want it compared", got)
			}
		})
	}
}

// longText takes what was content for a text, which counts.
func longText(next http.Handler) http.Handler {
	return rewriting(func(_ int64, _ *http.Request, body []byte) []byte {
		return bytes.Replace(body, []byte(`"data":`), []byte(`"text":`), 1)
	})(next)
}

// TestBeyondTheCapDigestsAreCompared, and the finding says so.
func TestBeyondTheCapDigestsAreCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{
		aroundOld: longText, tune: func(o *canary.Options) { o.MaxBody = 1 << 20 },
		around: func(next http.Handler) http.Handler {
			return rewriting(func(_ int64, _ *http.Request, body []byte) []byte {
				return bytes.Replace(body, []byte(`"summary"`), []byte(`"title"`), 1)
			})(longText(next))
		},
	})
	w.make(attachment("4"))
	if got := w.sum(""); len(got.Dropped) != 0 || got.Confirmed != 1 {
		t.Errorf("got %+v, want it compared", got)
	}
	list, err := w.store.Findings(t.Context())
	if err != nil || len(list) != 1 || list[0].Class != "digest" {
		t.Fatalf("found %+v (%v), want another digest", list, err)
	}
	const want = "The content is another one; only digests were compared."
	if list[0].Note != want {
		t.Errorf("the finding says %q and nothing of digests", list[0].Note)
	}
}

// TestNoiseBeyondTheCapProvesNothing: where each answer of the reference has another digest, a candidate does not pass by it.
func TestNoiseBeyondTheCapProvesNothing(t *testing.T) {
	t.Parallel()
	varying := func(next http.Handler) http.Handler {
		return rewriting(func(n int64, _ *http.Request, body []byte) []byte {
			return bytes.Replace(body, []byte(`"text":"`), fmt.Appendf(nil, `"text":"%d `, n), 1)
		})(longText(next))
	}
	w := newWorld(t, worldOptions{
		aroundOld: varying, tune: func(o *canary.Options) { o.MaxBody = 1 << 20 },
		around: func(next http.Handler) http.Handler {
			return rewriting(func(_ int64, _ *http.Request, body []byte) []byte {
				return bytes.Replace(body, []byte(`"summary"`), []byte(`"title"`), 1)
			})(varying(next))
		},
	})
	for range 4 { // the last of which are known to be noise
		w.make(attachment("4"))
		w.settle()
	}
	w.dropped(verdict.DropDigestNoise, 4)
}

// flood answers without end.
func flood(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat(`"x":"`+strings.Repeat("y", 1000)+`",`, 64))
		_, err := w.Write([]byte(`{"attachments":{},"bugs":{},`))
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(chunk)
		}
	})
}

// TestSickCandidateIsNotNoticed: whatever is wrong with the candidate, the client
// gets its answers, Answered never waits, everything is counted and nothing is held.
func TestSickCandidateIsNotNoticed(t *testing.T) {
	t.Parallel() // it takes long, most of it waiting
	kind := func(kind tracker.FaultKind) worldOptions {
		return worldOptions{fresh: tracker.Options{Faults: []tracker.Fault{{Kind: kind}}}}
	}
	dead := worldOptions{}
	for name, special := range map[string]worldOptions{
		"hung": kind(tracker.FaultHangBefore), "hung inside": kind(tracker.FaultHangAfterHeaders),
		"resetting": kind(tracker.FaultResetBefore), "resetting inside": kind(tracker.FaultResetMidBody),
		"endless headers": kind(tracker.FaultEndlessHeaders), "flooding": {around: flood}, "dead": dead,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			special.transport = transport.Options{Break: transport.BreakOptions{OpenFor: time.Minute}}
			special.tune = func(o *canary.Options) { o.Timeout, o.MaxBody = 300*time.Millisecond, 4<<20 }
			w := newWorld(t, special)
			if name == "dead" {
				w.fresh.host.Close()
			}
			const calls = 20
			for range calls / 2 {
				w.make(flagTypes("TestProduct"))
				w.make(attachment("4"))
			}
			got := w.sum("")
			sum := got.Compared
			for _, n := range got.Dropped {
				sum += n
			}
			if sum != calls || got.Same+got.Noisy+got.Transient != 0 {
				t.Errorf("got %+v, want all %d counted and none the same", got, calls)
			}
			if load := w.canary.Load(); load != (canary.Load{}) || w.canary.Held() != 0 {
				t.Errorf("got %+v at the end, want nothing", load)
			}
			for _, f := range w.findings() {
				if !strings.Contains(f, " failure ") && !strings.Contains(f, " digest ") {
					t.Errorf("found %q", f)
				}
			}
		})
	}
}

// TestFailuresAreConfirmed: a failed call is a finding, also when the next one succeeds.
func TestFailuresAreConfirmed(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]tracker.Fault{
		"a page": {Kind: tracker.FaultHTML200}, "truncated": {Kind: tracker.FaultTruncateJSON},
		"hung": {Kind: tracker.FaultHangBefore}, "reset": {Kind: tracker.FaultResetBefore}, "reset once": {Kind: tracker.FaultResetBefore, Nth: 1},
		"a page once": {Kind: tracker.FaultHTML200, Nth: 1}, "hung once": {Kind: tracker.FaultHangBefore, Nth: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{
				fresh:     tracker.Options{Faults: []tracker.Fault{fault}},
				transport: transport.Options{Tries: 1, Break: transport.BreakOptions{Unanswered: 100}},
				tune:      func(o *canary.Options) { o.Timeout = 400 * time.Millisecond },
			})
			w.make(attachment("1"))
			if got, sum := w.findings(), w.sum(""); !slices.Equal(got, []string{"attachment.get failure failure"}) || sum.Confirmed != 1 || sum.Failed != 1 {
				t.Errorf("found %q and %+v, want one failure", got, sum)
			}
		})
	}
}

// TestCloseEndsWhatHangs long before its calls would end by themselves.
func TestCloseEndsWhatHangs(t *testing.T) {
	entered, release := make(chan struct{}, 100), make(chan struct{})
	defer close(release)
	w := newWorld(t, worldOptions{around: holding(entered, release)})
	for range 20 {
		w.make(attachment("4"))
	}
	<-entered
	began := time.Now()
	if err := w.canary.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v to close", took)
	}
	w.dropped(verdict.DropClosed, 20)
}

// noting notes how much of its answer is going to be read.
type noting struct {
	upstream.Tracker
	most *atomic.Int64
}

func (n noting) Do(ctx context.Context, caller upstream.Caller, call upstream.Call) (mapping.Reply, error) {
	n.most.Store(call.MaxResponse)
	return n.Tracker.Do(ctx, caller, call)
}

// TestHowMuchIsReadOfACandidate goes by the answer of the reference, so that one that never ends costs little.
func TestHowMuchIsReadOfACandidate(t *testing.T) {
	t.Parallel()
	var most atomic.Int64
	w := newWorld(t, worldOptions{tune: func(o *canary.Options) {
		candidate := o.Trackers[newName]
		candidate.Tracker = noting{candidate.Tracker, &most}
		o.Trackers[newName] = candidate
	}})
	w.make(attachment("1"))
	w.settle()
	if got := most.Load(); got < 1<<20 || got > 2<<20 {
		t.Errorf("%d bytes are read at most", got)
	}
}
