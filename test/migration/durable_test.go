package migration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portico/test/process"
	"portico/test/tracker"
)

// durable is the reference tracker in a process of its own, whose data survive a SIGKILL: it appends each write to a file before it carries it
// out, one at a time, and carries out the file again when it starts. So a write that a kill interrupts is carried out or not, as with the
// transaction of a database, and its response is lost.
type durable struct {
	tracker *tracker.Server
	// now is the time of the write that is carried out again, 0 for the present.
	now atomic.Int64
	mu  sync.Mutex
	// writes are all writes, served are requests that were carried out, with their times.
	writes, served *json.Encoder
}

// logged is a write in the file.
type logged struct {
	At     time.Time
	Method string
	URL    string
	Header http.Header
	Body   []byte
}

// served is a write that the tracker has carried out, with the time at which it came and the time at which it was done.
type served struct {
	Begin, End time.Time
	RequestID  string
	Status     int
	URL        string
	Body       []byte
}

const (
	durableEnv        = "PORTICO_TEST_TRACKER_DIR"
	durableAddressEnv = "PORTICO_TEST_TRACKER_ADDRESS"
	writesFile        = "writes.jsonl"
	servedFile        = "served.jsonl"
	// maxPause is how long a write may wait before it is carried out, and again before its response.
	maxPause = 12 * time.Millisecond
)

// serveDurable is the program of such a tracker.
func serveDurable(dir, address string) error {
	d := &durable{}
	d.tracker = tracker.New(tracker.Options{Seed: tracker.SeedDemo, Now: func() time.Time {
		if at := d.now.Load(); at != 0 {
			return time.Unix(0, at)
		}
		return time.Now()
	}})
	if err := d.again(filepath.Join(dir, writesFile)); err != nil {
		return err
	}
	for name, into := range map[string]**json.Encoder{writesFile: &d.writes, servedFile: &d.served} {
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = file.WriteString("\n") // ends a line that a kill has cut off
		}
		if err != nil {
			return err
		}
		*into = json.NewEncoder(file)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	return http.Serve(listener, d) //nolint:gosec // it is for one test
}

// again carries out the writes of the file.
func (d *durable) again(path string) error {
	defer d.now.Store(0)
	return eachLine(path, func(line logged) {
		d.now.Store(line.At.UnixNano())
		r := httptest.NewRequestWithContext(context.Background(), line.Method, line.URL, bytes.NewReader(line.Body))
		r.Header = line.Header
		d.tracker.ServeHTTP(httptest.NewRecorder(), r)
	})
}

// eachLine reads a file of JSON lines. One that a kill has cut off is left out.
func eachLine[T any](path string, do func(T)) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for line := range bytes.Lines(text) {
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			continue
		}
		do(one)
	}
	return err
}

// ServeHTTP implements http.Handler.
func (d *durable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		d.tracker.ServeHTTP(w, r)
		return
	}
	done := served{Begin: time.Now(), RequestID: r.Header.Get("X-Request-Id"), URL: r.RequestURI}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client was killed
	}
	done.Body = body
	pause := func() { time.Sleep(rand.N(maxPause)) }
	pause()
	if rand.IntN(60) == 0 {
		time.Sleep(300 * time.Millisecond)
	}
	recorder := httptest.NewRecorder()
	d.mu.Lock()
	err = d.writes.Encode(logged{time.Now(), r.Method, r.RequestURI, r.Header, body})
	if err == nil {
		again := httptest.NewRequestWithContext(r.Context(), r.Method, r.RequestURI, bytes.NewReader(body))
		again.Header, again.Host = r.Header, r.Host
		d.tracker.ServeHTTP(recorder, again)
		done.End, done.Status = time.Now(), recorder.Code
		err = d.served.Encode(done)
	}
	d.mu.Unlock()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pause()
	header := w.Header()
	maps.Copy(header, recorder.Header())
	header.Set("Content-Length", strconv.Itoa(recorder.Body.Len()))
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

// durableTracker is such a process as a test sees it.
type durableTracker struct {
	*process.Process
	name, base, dir string
}

func startDurable(t *testing.T, name string) *durableTracker {
	t.Helper()
	address := process.FreeAddress(t)
	d := &durableTracker{name: name, base: "http://" + address, dir: t.TempDir()}
	program, err := os.Executable()
	must(t, err)
	d.Process = process.Launch(t, process.Spec{
		Program: program, Env: []string{durableEnv + "=" + d.dir, durableAddressEnv + "=" + address}, Fails: true,
		Ready: func(*process.Process) bool { return process.Listens(address) },
	})
	return d
}

// served lists the writes that the tracker has carried out, by the time at which they came.
func (d *durableTracker) served(t *testing.T) (all []served) {
	t.Helper()
	must(t, eachLine(filepath.Join(d.dir, servedFile), func(one served) { all = append(all, one) }))
	slices.SortFunc(all, func(a, b served) int { return a.Begin.Compare(b.Begin) })
	return all
}
