package recording_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"portico/test/process"
	"portico/test/tracker"
	"portico/upstream/recording"
)

// recordedTracker is a recorder before a reference tracker.
type recordedTracker struct {
	*recording.Recorder
	front *httptest.Server
}

func recorded(t *testing.T, o recording.RecorderOptions) recordedTracker {
	t.Helper()
	r := recordedTracker{Recorder: recording.NewRecorder(o)}
	t.Cleanup(func() { r.end(t) })
	r.front = httptest.NewServer(r.Handler(process.Reference(t, tracker.Options{})))
	return r
}

// end waits for the requests under way before it closes the recorder.
func (r recordedTracker) end(t *testing.T) recording.Counts {
	t.Helper()
	r.front.Close()
	counts, err := r.Close()
	if err != nil {
		t.Error(err)
	}
	return counts
}

func send(t *testing.T, base, method, path, text string, header http.Header) recording.Response {
	t.Helper()
	r := recording.Request{Method: method, Path: path, Headers: map[string]string{}}
	for name := range header {
		r.Headers[name] = header.Get(name)
	}
	if text != "" {
		r.Body = []byte(text)
	}
	answer, err := recording.Send(t.Context(), base, r, 1<<20)
	must(t, err)
	return answer
}

// kept closes a recorder and reads what it wrote.
func kept(t *testing.T, recorder recordedTracker, text *bytes.Buffer) ([]recording.Exchange, recording.Counts) {
	t.Helper()
	counts := recorder.end(t)
	in := recording.NewReader(bytes.NewReader(text.Bytes()))
	var list []recording.Exchange
	for {
		e, err := in.Next()
		if err == io.EOF {
			return list, counts
		}
		must(t, err)
		list = append(list, e)
	}
}

const editorKey = "EditorKey0000000000000000000000000000000"

// TestRecorder: what went by is in the file, can be made again, and gets the same answers.
func TestRecorder(t *testing.T) {
	var text bytes.Buffer
	recorder := recorded(t, recording.RecorderOptions{To: &text})
	first := send(t, recorder.front.URL, "GET", "/rest/bug/1/attachment?include_fields=id,creator", "", nil)
	send(t, recorder.front.URL, "POST", "/rest/flag_type", `{"name":"n","description":"d","Bugzilla_api_key":"`+editorKey+`"}`, http.Header{"Content-Type": {"application/json"}})
	send(t, recorder.front.URL, "PUT", "/rest/flag_type/19?api_key="+editorKey, "", http.Header{"Content-Type": {"application/json"}, "Content-Length": {"0"}})
	list, counts := kept(t, recorder, &text)
	if len(list) != 3 || counts.Written != 3 || counts.Unsendable != 0 || len(counts.Dropped) != 0 {
		t.Fatalf("got %d exchanges, %+v", len(list), counts)
	}
	if strings.Contains(text.String(), editorKey) || strings.Contains(text.String(), "@example.com") {
		t.Errorf("a key or an address is in %s", &text)
	}
	if e := list[0]; e.Name != "000001" || e.Operation != "attachment.list" || e.Response.Status != 200 || e.Request.Body != nil ||
		!strings.Contains(string(e.Response.Body), `"creator":"{{address-1}}"`) {
		t.Errorf("the first is %+v (%s)", e, e.Response.Body)
	}
	if e := list[1]; e.Response.Status != 201 || strings.Join(e.Callers, " ") != "caller-1" {
		t.Errorf("the second is %+v", e)
	}
	if e := list[2]; e.Request.Body == nil || e.Request.Path != "/rest/flag_type/19?api_key={{caller-1}}" {
		t.Errorf("the third is %+v", e)
	}
	behind := process.Listen(t, process.Reference(t, tracker.Options{}))
	again, err := recording.Send(t.Context(), behind.String(), list[0].Request, 1<<20)
	if err != nil || again.Status != first.Status || len(again.Body) != len(first.Body) {
		t.Errorf("made again: %v %+v", err, again)
	}
}

// stuck is a file that takes nothing until it is let go.
type stuck struct{ free chan struct{} }

func (s stuck) Write(p []byte) (int, error) { <-s.free; return len(p), nil }

// TestRecorderNeverWaits: with a file that takes nothing, clients are answered, and what waits too long is counted.
func TestRecorderNeverWaits(t *testing.T) {
	file := stuck{make(chan struct{})}
	free := sync.OnceFunc(func() { close(file.free) })
	t.Cleanup(free)
	recorder := recorded(t, recording.RecorderOptions{To: file})
	// The recorder takes some before it is stuck, how many depends on the scheduler.
	sent := 0
	for counts, _ := recorder.Counts(); counts.Dropped[recording.DropQueue] < 5; counts, _ = recorder.Counts() {
		if sent++; sent > 2000 {
			t.Fatalf("got %+v, want at least 5 dropped", counts)
		}
		if a := send(t, recorder.front.URL, "GET", "/rest/version", "", nil); a.Status != 200 {
			t.Fatalf("got %+v", a)
		}
	}
	recorder.front.Close()
	free()
	counts := recorder.end(t)
	if counts.Written+counts.Dropped[recording.DropQueue] != sent {
		t.Errorf("got %+v, want %d in all", counts, sent)
	}
}

// TestRecorderTellsAtOnce that the file cannot be written, and tells it once.
func TestRecorderTellsAtOnce(t *testing.T) {
	told := make(chan error, 9)
	var recorder *recording.Recorder
	recorder = recording.NewRecorder(recording.RecorderOptions{To: full{}, Failed: func(err error) {
		if counts, first := recorder.Counts(); counts.Dropped[recording.DropWrite] != 1 || !errors.Is(first, err) { // as one that shows progress asks
			t.Errorf("at the first error there are %+v, %v", counts, first)
		}
		told <- err
	}})
	front := httptest.NewServer(recorder.Handler(process.Reference(t, tracker.Options{})))
	defer front.Close()
	send(t, front.URL, "GET", "/rest/version", "", nil)
	if err := <-told; !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("told is %v", err)
	}
	send(t, front.URL, "GET", "/rest/version", "", nil)
	front.Close()
	if counts, err := recorder.Close(); err == nil || counts.Dropped[recording.DropWrite] != 2 || len(told) > 0 {
		t.Errorf("%+v, %v; told %d times more", counts, err, len(told))
	}
}

// TestRecorderMemory: exchanges whose bodies are too much all together are dropped.
func TestRecorderMemory(t *testing.T) {
	var text bytes.Buffer
	recorder := recorded(t, recording.RecorderOptions{To: &text, Memory: 100 << 10})
	upload := func(size int) {
		t.Helper()
		data := base64.StdEncoding.EncodeToString(make([]byte, size))
		answer := send(t, recorder.front.URL, "POST", "/rest/bug/1/attachment?api_key="+editorKey,
			`{"data":"`+data+`","file_name":"f","summary":"s","content_type":"text/plain"}`, http.Header{"Content-Type": {"application/json"}})
		if answer.Status != 201 {
			t.Errorf("got %d %s", answer.Status, answer.Body)
		}
	}
	upload(500_000)
	send(t, recorder.front.URL, "GET", "/rest/version", "", nil)
	if list, counts := kept(t, recorder, &text); len(list) != 1 || counts.Dropped[recording.DropMemory] != 1 {
		t.Errorf("got %d exchanges, %+v", len(list), counts)
	}
}

// TestRecorderLetsFlushesThrough: an answer that comes in pieces does.
func TestRecorderLetsFlushesThrough(t *testing.T) {
	recorder := recording.NewRecorder(recording.RecorderOptions{To: io.Discard})
	defer recorder.Close()
	arrived := make(chan struct{})
	front := httptest.NewServer(recorder.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-arrived
	})))
	defer front.Close()
	answer, err := http.Get(front.URL)
	must(t, err)
	defer answer.Body.Close()
	piece := make([]byte, 5)
	_, err = io.ReadFull(answer.Body, piece)
	close(arrived)
	if err != nil || string(piece) != "first" {
		t.Errorf("got %q, %v", piece, err)
	}
}

// hasty answers before it reads what is sent.
func hasty(t *testing.T) *url.URL {
	t.Helper()
	return process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "{}")
	}))
}

// TestRecorderEarlyAnswers: the tracker answers while the client sends. What net/http still reads of the body is no data race,
// which the race detector sees.
func TestRecorderEarlyAnswers(t *testing.T) {
	recorder := recording.NewRecorder(recording.RecorderOptions{To: io.Discard})
	front := httptest.NewServer(recorder.Handler(httputil.NewSingleHostReverseProxy(hasty(t))))
	defer front.Close()
	const rounds = 40
	for range rounds {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/rest/bug/1/attachment", bytes.NewReader(make([]byte, 4<<20)))
		must(t, err)
		if answer, err := http.DefaultClient.Do(request); err == nil { // else the connection ended while it was sending
			_ = answer.Body.Close()
		}
	}
	front.Close()
	counts, err := recorder.Close()
	if dropped := counts.Dropped[recording.DropAborted] + counts.Dropped[recording.DropQueue] + counts.Dropped[recording.DropMemory]; err != nil || counts.Written+dropped != rounds {
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
	process.Eventually(t, "the first exchange in the file", func() bool { counts, _ := recorder.Counts(); return counts.Written == 1 })
	if n, err := io.Copy(io.Discard, late); n != size || err != nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	post()
	if counts, err := recorder.Close(); err != nil || counts.Written != 2 {
		t.Errorf("got %+v, %v, want both written", counts, err)
	}
}

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestRecorderOddEnds: an answer that breaks off is no answer to compare with. A request whose body was not read to its end cannot be sent
// again. Where the disk is full, Close returns the error, and clients get their responses.
func TestRecorderOddEnds(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		to      io.Writer
		ends    bool // the client's response
		failed  bool // Close
		counts  func(recording.Counts) bool
	}{
		"aborted": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"bugs":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, nil, false, false, func(c recording.Counts) bool { return c.Dropped[recording.DropAborted] == 1 && c.Written == 0 }},
		"unread": {func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadFull(r.Body, make([]byte, 2)) }, nil, true, false,
			func(c recording.Counts) bool { return c.Written == 1 && c.Unsendable == 1 }},
		"early hints": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "{}")
		}, nil, true, false, func(c recording.Counts) bool { return c.Written == 1 }},
		"full disk": {http.NotFound, full{}, true, true, func(c recording.Counts) bool { return c.Written+c.Dropped[recording.DropWrite] > 0 }},
	} {
		var text bytes.Buffer
		if c.to == nil {
			c.to = &text
		}
		recorder := recording.NewRecorder(recording.RecorderOptions{To: c.to})
		front := httptest.NewServer(recorder.Handler(c.handler))
		answer, err := http.Post(front.URL+"/rest/flag_type", "application/json", strings.NewReader(`{}{"name":"n"}`))
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		front.Close()
		counts, failed := recorder.Close()
		if (err == nil) != c.ends || (failed != nil) != c.failed || !c.counts(counts) || strings.Contains(text.String(), `"n"`) || strings.Contains(text.String(), `"status":103`) {
			t.Errorf("%s: the client got %v; %+v, %v; %s", name, err, counts, failed, &text)
		}
	}
}

var must = process.Must
