package canary

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
	"portico/upstream/canary/compare"
	"portico/upstream/canary/verdict"
	"portico/upstream/state"
)

// quiet is a Canary that samples nothing, between two trackers that do not work.
func quiet(t *testing.T) *Canary {
	t.Helper()
	store, err := state.Open(t.Context(), "sqlite::memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	c := New(Complete(Options{
		Trackers: map[string]Tracker{"old": {}, "new": {}}, Store: store, Candidate: "new",
		Split: jsonblob.SplitOptions{Dir: t.TempDir()},
	}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// stream is a client's document of several pieces.
func stream(text []byte) *mapping.Document {
	head := min(len(text), 1000)
	return mapping.NewStream(text[:head], io.NopCloser(bytes.NewReader(text[head:])), -1)
}

// TestFullMemoryNeverHurtsTheClient: the client reads on, and all is given back.
func TestFullMemoryNeverHurtsTheClient(t *testing.T) {
	for name, free := range map[string]int64{"nothing": 0, "for the head": 1500, "for a part": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			c := quiet(t)
			c.memory.Store(maxMemory - free)
			text := []byte(`{"a":"` + string(bytes.Repeat([]byte("x"), 4<<20)) + `"}`)
			document := stream(text)
			c.capture(started(c), upstream.Response{Document: document})
			var got bytes.Buffer
			if _, err := document.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), text) {
				t.Errorf("the client got %d bytes (%v), want %d", got.Len(), err, len(text))
			}
			_ = document.Close()
			if err := c.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			report, err := c.Report(t.Context())
			if err != nil || report.Dropped[string(verdict.DropMemory)] != 1 {
				t.Errorf("dropped %v (%v), want one for want of memory", report.Dropped, err)
			}
			if left := maxMemory - c.memory.Load(); left != free {
				t.Errorf("%d bytes are left of %d", left, free)
			}
		})
	}
}

// started is a job that is under way.
func started(c *Canary) *job {
	c.pending.Add(1)
	return &job{operation: mapping.OpAttachment, run: c.compare}
}

// TestMistakeIsSurvived: a panic in a comparison ends that comparison only.
func TestMistakeIsSurvived(t *testing.T) {
	c := quiet(t)
	c.SetSampling(Sampling{Default: 1})
	call := upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{}}
	for range 10 { // more than there are workers; its methods panic
		answer := upstream.Response{Document: mapping.NewDocument([]byte(`{}`))}
		_ = c.Answered(t.Context(), upstream.Caller{}, call, upstream.Sides{Serving: "old", Compared: "new"}, answer).Close()
	}
	if err := c.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := c.Report(t.Context())
	if err != nil || report.Dropped[string(verdict.DropInternal)] != 10 {
		t.Errorf("dropped %v (%v), want all by a mistake", report.Dropped, err)
	}
}

// reading reads responses of up to 64 KiB.
func reading(t *testing.T) func(*mapping.Document) compare.Reply {
	c := &Canary{options: Options{Settings: Settings{MaxBody: 64 << 10}, Split: jsonblob.SplitOptions{Dir: t.TempDir()}}}
	return func(document *mapping.Document) compare.Reply {
		t.Helper()
		reply, err := c.replyOf(t.Context(), mapping.OpAttachment, upstream.Response{Document: document})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
}

// inPieces is a document that comes in pieces, so that it is not in memory.
func inPieces(text string) *mapping.Document {
	return mapping.NewStream(nil, io.NopCloser(strings.NewReader(text)), -1)
}

// TestReplyOf: a reply is the same whether the response was in memory, and has no content.
func TestReplyOf(t *testing.T) {
	read := reading(t)
	text := `{"attachments":{"1":{"data":"aGVsbG8="}},"bugs":{}}`
	document := mapping.NewDocument([]byte(text))
	document.ETag = "x"
	got, other := read(document), read(inPieces(text))
	if got.Status != 200 || got.Header["etag"] != "sent" || bytes.Contains(got.Body, []byte("aGVsbG8")) || !bytes.Equal(got.Body, other.Body) {
		t.Errorf("got %+v and %+v", got, other)
	}
	for name, test := range map[string]struct {
		text    string
		failure string
		long    bool
	}{
		"cut off":          {`{"a"`, "bad-answer", false},
		"a line break":     {`{"data":"` + strings.Repeat("QUJD", 4000) + "\n" + strings.Repeat("QUJD", 4000) + `"}`, "bad-answer", false},
		"content cut off":  {`{"data":"` + strings.Repeat("QUJD", 4000), "bad-answer", false},
		"a name twice":     {`{"data":"` + strings.Repeat("QUJD", 4000) + `","data":""}`, "bad-answer", false},
		"long content":     {`{"data":"` + strings.Repeat("QUJD", 400_000) + `"}`, "", false},
		"a long text":      {`{"text":"` + strings.Repeat("QUJD", 20_000) + `"}`, "", true},
		"a text too long":  {`{"text":"` + strings.Repeat("QUJD", 80_000) + `"}`, "endless", false},
		"as deep as it is": {`{"text":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "", false},
	} {
		for _, document := range []*mapping.Document{mapping.NewDocument([]byte(test.text)), inPieces(test.text)} {
			if got := read(document); got.Failure != test.failure || got.Long != test.long {
				t.Errorf("%s: got failure %q, long %t", name, got.Failure, got.Long)
			}
		}
	}
}

func at(class compare.Class, path string) compare.Difference {
	return compare.Difference{Class: class, Path: path, Pointer: path}
}

// between are the ways in which a tracker varies that gives these differences.
func between(differences ...compare.Difference) map[variation]bool { return variations(differences) }

func TestNoiseIsBelievedAfterASecondTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoise()
		defer n.close()
		varied := between(at(compare.ClassValue, "$.a"), at(compare.ClassMissing, "$.b"), compare.Difference{Class: compare.ClassValue, Pointer: "$.c", Rule: "r"})
		call := upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}}
		other := upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "Q"}}
		n.learn(call, varied)
		if n.known(call, at(compare.ClassValue, "$.a")) {
			t.Error("one time was enough")
		}
		time.Sleep(noiseLife - time.Second)
		n.learn(call, varied)
		time.Sleep(noiseLife - time.Second) // after the last time, not after the first
		for _, c := range []struct {
			class   compare.Class
			pointer string
			want    bool
		}{
			{compare.ClassValue, "$.a", true},
			{compare.ClassTime, "$.a", true}, // of the same family
			{compare.ClassOrder, "$.a", false},
			{compare.ClassType, "$.a", false},
			{compare.ClassMissing, "$.a", false},
			{compare.ClassMissing, "$.b", true},
			{compare.ClassExtra, "$.b", true},
			{compare.ClassValue, "$.b", false},
			{compare.ClassValue, "$.c", false}, // a rule explained it
		} {
			if got := n.known(call, at(c.class, c.pointer)); got != c.want {
				t.Errorf("%s at %s: %v", c.class, c.pointer, got)
			}
		}
		if n.known(other, at(compare.ClassValue, "$.a")) {
			t.Error("noise in the answers to one call counts for another")
		}
		for range 2 { // what is forgotten, and one time more
			time.Sleep(noiseLife)
			if n.known(call, at(compare.ClassValue, "$.a")) {
				t.Error("what was forgotten counts")
			}
			n.learn(call, varied)
		}
	})
}

// TestNotNoiseIsRemembered: the reference is not asked again about a class and path that was found not to be noise, for a while.
func TestNotNoiseIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoise()
		defer n.close()
		differences := []compare.Difference{at(compare.ClassValue, "$.a")}
		for _, step := range []struct {
			asked  int
			enough bool
			after  time.Duration
		}{{1, false, 0}, {maxAsked - 1, false, 0}, {maxAsked, false, 0}, {1, true, noiseLife - time.Second}, {1, false, time.Second}} {
			time.Sleep(step.after)
			if got := n.enough("", differences, step.asked); got != step.enough {
				t.Errorf("asked %d times, %v later: %v", step.asked, step.after, got)
			}
		}
		if !n.enough("", []compare.Difference{at(compare.ClassFailure, "failure")}, 1) {
			t.Error("what is never noise is asked about")
		}
	})
}

func TestNoiseIsBounded(t *testing.T) {
	n := newNoise()
	defer n.close()
	call := upstream.Call{Operation: mapping.OpFlagTypes, FlagTypes: &mapping.FlagTypesRequest{Product: "P"}}
	for i := range 2 * maxNoise {
		n.learn(call, between(at(compare.ClassValue, fmt.Sprintf("$.a%d", i))))
		n.enough("", []compare.Difference{at(compare.ClassValue, fmt.Sprint(i))}, maxAsked)
	}
	n.places.CleanUp()
	n.notNoise.CleanUp()
	if places, believed := n.places.EstimatedSize(), n.notNoise.EstimatedSize(); places > maxNoise || believed > maxBelieved {
		t.Errorf("%d places and %d signatures are remembered", places, believed)
	}
}

// TestBatchIsBounded: what waits to be written is bounded.
func TestBatchIsBounded(t *testing.T) {
	b := newBatch()
	for i := range 3 * maxFindings {
		b.count(state.Tally{Compared: 1})
		if kept := b.find(&state.Sighting{Finding: state.Finding{Signature: fmt.Sprint(i)}, Sample: []byte("{}")}); kept != (i < maxFindings) {
			t.Fatalf("finding %d is kept: %v", i, kept)
		}
	}
	sampled := 0
	for _, f := range b.findings {
		sampled += len(f.Sample) / len("{}")
	}
	if sampled != maxSamples {
		t.Errorf("%d samples wait", sampled)
	}
	if len(b.tallies) != 1 || b.tallies[""].Compared != 3*maxFindings || len(b.findings) != maxFindings {
		t.Errorf("%d tallies and %d findings wait", len(b.tallies), len(b.findings))
	}
}
