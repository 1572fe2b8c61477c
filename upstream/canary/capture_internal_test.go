package canary

import (
	"bytes"
	"io"
	"testing"

	"portico/mapping"
	"portico/mapping/jsonblob"
	"portico/upstream"
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
		Trackers: map[string]upstream.Tracker{"old": nobody{}, "new": nobody{}}, Store: store, Candidate: "new",
		Split: jsonblob.SplitOptions{Dir: t.TempDir()},
	}))
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
			c.memory.Store(maxMemory - room)
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
			if left := maxMemory - c.memory.Load(); left != room {
				t.Errorf("%d bytes are left of %d", left, room)
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
	for range 10 { // more than there are workers; nobody's methods panic
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
