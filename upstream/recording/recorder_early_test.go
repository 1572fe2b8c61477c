package recording_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"portico/upstream/recording"
)

// hasty answers before it reads what is sent.
func hasty(t *testing.T) *url.URL {
	t.Helper()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(behind.Close)
	base, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// TestRecorderEarlyAnswers: the tracker answers while the client sends. What net/http still reads of the body disturbs nobody,
// which the race detector sees.
func TestRecorderEarlyAnswers(t *testing.T) {
	recorder := recording.NewRecorder(recording.RecorderOptions{To: io.Discard})
	front := httptest.NewServer(recorder.Handler(httputil.NewSingleHostReverseProxy(hasty(t))))
	defer front.Close()
	const rounds = 40
	for range rounds {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/rest/bug/1/attachment", bytes.NewReader(make([]byte, 4<<20)))
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil { // else the connection ended while it was sending
			_ = answer.Body.Close()
		}
	}
	front.Close()
	counts, err := recorder.Close()
	if dropped := counts.Dropped["aborted"] + counts.Dropped["queue"] + counts.Dropped["memory"]; err != nil || counts.Written+dropped != rounds {
		t.Errorf("got %+v, %v, want %d in all", counts, err, rounds)
	}
}

// TestRecorderLateReads: what is read when an exchange is over takes no memory from those that follow.
func TestRecorderLateReads(t *testing.T) {
	const size = 600 << 10
	recorder := recording.NewRecorder(recording.RecorderOptions{To: io.Discard, Memory: 2 << 20})
	var late io.Reader
	handler := recorder.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if late == nil {
			late = r.Body
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	post := func() {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/rest/x", strings.NewReader(strings.Repeat(" ", size))))
	}
	post()
	untilWritten(t, recorder, 1)
	if n, err := io.Copy(io.Discard, late); n != size || err != nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	post()
	if counts, err := recorder.Close(); err != nil || counts.Written != 2 {
		t.Errorf("got %+v, %v, want both written", counts, err)
	}
}

// untilWritten waits until so many exchanges are in the file.
func untilWritten(t *testing.T, recorder *recording.Recorder, want int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	for ctx.Err() == nil {
		if counts, _ := recorder.Counts(); counts.Written == want {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("nothing is written")
}

// TestRecorderAborted: an answer that breaks off is no answer to compare with, and is counted.
func TestRecorderAborted(t *testing.T) {
	var text bytes.Buffer
	recorder := recording.NewRecorder(recording.RecorderOptions{To: &text})
	front := httptest.NewServer(recorder.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"bugs":`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})))
	defer front.Close()
	if answer, err := http.Get(front.URL + "/rest/bug/1/attachment"); err == nil {
		if _, err := io.ReadAll(answer.Body); err == nil {
			t.Error("the answer has an end")
		}
		_ = answer.Body.Close()
	}
	front.Close()
	if counts, err := recorder.Close(); err != nil || counts.Dropped["aborted"] != 1 || counts.Written != 0 || text.Len() > 0 {
		t.Errorf("got %+v, %v, %s", counts, err, &text)
	}
}
