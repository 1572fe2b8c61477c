package transport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
)

// TestAnswersLongerThanAnybodyReads: a flood ends at the bound and counts as a failure; what is within it does not.
func TestAnswersLongerThanAnybodyReads(t *testing.T) {
	piece := bytes.Repeat([]byte(" "), 32<<10)
	flood := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := w.Write([]byte("{"))
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(piece)
		}
	})
	short := newTracker(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(piece) })
	const most = 256 << 10
	stack := newStack(t, Options{})
	for range 10 {
		read, err := bounded(t, stack, short.url, most)
		if read != len(piece) || err != nil {
			t.Fatalf("read %d bytes of a short answer: %v", read, err)
		}
	}
	var refused int
	for range 20 {
		read, err := bounded(t, stack, flood.url, most)
		said, ok := errors.AsType[*Error](err)
		switch {
		case !ok:
			t.Fatalf("a flood ended with %v", err)
		case said.Reason == BreakerOpen:
			refused++
		case said.Reason != BadAnswer || read > most+len(piece):
			t.Fatalf("a flood ended with %v after %d bytes", err, read)
		}
	}
	if refused == 0 {
		t.Error("the breaker took floods for answers")
	}
}

// bounded reads an answer of which nobody reads more than most bytes.
func bounded(t *testing.T, stack *Stack, url string, most int64) (int, error) {
	t.Helper()
	request := get(t, url)
	response, err := stack.RoundTrip(request.WithContext(WithMost(request.Context(), most)))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return len(text), err
}
