package canary

import (
	"bytes"
	"io"
	"os"
	"testing"

	"portico/mapping"
	"portico/upstream"
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
	c, err := New(Options{
		Trackers: map[string]upstream.Tracker{"old": nobody{}, "new": nobody{}}, Store: store, Candidate: "new",
		Split: mapping.SplitOptions{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type nobody struct{ upstream.Tracker }

// stream is a client's document of several pieces.
func stream(text []byte) *mapping.Document {
	head := min(len(text), 1000)
	return mapping.NewStream(text[:head], io.NopCloser(bytes.NewReader(text[head:])), -1)
}

// TestFullMemoryNeverHurtsTheClient: the client reads on, and all is given back.
func TestFullMemoryNeverHurtsTheClient(t *testing.T) {
	for name, room := range map[string]int64{"none": 0, "for the head": 1500, "for a part": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			c := quiet(t)
			c.memory.left.Store(room)
			text := []byte(`{"a":"` + string(bytes.Repeat([]byte("x"), 4<<20)) + `"}`)
			document := stream(text)
			about := subject{reference: "old", candidate: "new", operation: mapping.OpAttachment}
			c.capture(c.newJob(about, upstream.Caller{}, upstream.Call{}, (*Canary).compare), upstream.Answer{Document: document})
			var got bytes.Buffer
			if _, err := document.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), text) {
				t.Errorf("the client got %d bytes (%v), want %d", got.Len(), err, len(text))
			}
			_ = document.Close()
			if err := c.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			report, err := c.Report(t.Context())
			if err != nil || report.Dropped[string(DropMemory)] != 1 {
				t.Errorf("dropped %v (%v), want one for want of memory", report.Dropped, err)
			}
			if left := c.memory.left.Load(); left != room {
				t.Errorf("%d bytes are left of %d", left, room)
			}
		})
	}
}

// TestBrokenSpoolNeverHurtsTheClient: there is no place for files.
func TestBrokenSpoolNeverHurtsTheClient(t *testing.T) {
	c := quiet(t)
	if err := os.RemoveAll(c.options.Split.Dir); err != nil {
		t.Fatal(err)
	}
	text := []byte(`{"a":"` + string(bytes.Repeat([]byte("x"), 4<<20)) + `"}`)
	document := stream(text)
	about := subject{reference: "old", candidate: "new", operation: mapping.OpAttachment}
	c.capture(c.newJob(about, upstream.Caller{}, upstream.Call{}, (*Canary).compare), upstream.Answer{Document: document})
	if n, err := document.WriteTo(io.Discard); err != nil || n != int64(len(text)) {
		t.Errorf("the client got %d bytes (%v), want %d", n, err, len(text))
	}
	_ = document.Close()
	if err := c.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := c.Report(t.Context())
	if err != nil || report.Dropped[string(DropSpoolFailed)] != 1 {
		t.Errorf("dropped %v (%v), want one whose file failed", report.Dropped, err)
	}
	if load := c.Load(); load != (Load{}) {
		t.Errorf("got %+v at the end, want nothing", load)
	}
}

// TestMistakeIsSurvived: a panic in a comparison ends that comparison only.
func TestMistakeIsSurvived(t *testing.T) {
	c := quiet(t)
	c.SetSampling(Sampling{Default: 1})
	call := upstream.Call{Operation: mapping.OpAttachment, Attachments: &mapping.AttachmentsRequest{}}
	for range 10 { // more than there are workers; nobody's methods panic
		answer := upstream.Answer{Document: mapping.NewDocument([]byte(`{}`))}
		_ = c.Answered(t.Context(), upstream.Caller{}, call, upstream.Sides{Answered: "old", Other: "new"}, answer).Close()
	}
	if err := c.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := c.Report(t.Context())
	if err != nil || report.Dropped[string(DropInternal)] != 10 {
		t.Errorf("dropped %v (%v), want all by a mistake", report.Dropped, err)
	}
}
