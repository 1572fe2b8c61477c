package fuzz

import (
	"bufio"
	"bytes"
	"flag"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/test/process"
	"portico/upstream/transport"
)

// counting is a tracker that carries out everything and counts it.
type counting struct{ asked atomic.Int64 }

// ServeHTTP implements http.Handler.
func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked.Add(1)
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	answer := `{"id":1,"ids":[1],"flagtypes":[],"attachments":[]}`
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = io.WriteString(w, answer)
}

var must = process.Must

// front serves Portico in front of a tracker, with everything else passed through, and gives its address.
func front(t *testing.T, tracker http.Handler) string {
	t.Helper()
	base, stack := process.Listen(t, tracker), transport.New(transport.Options{})
	t.Cleanup(stack.Close)
	handler, err := proxy.New(proxy.Options{
		Tracker: process.Client(t, base, stack, "bugzilla-5"), BlobDir: t.TempDir(),
		Passthrough: proxy.Passthrough{Target: proxy.Target{Base: base, Transport: stack}, Prefixes: []string{"/"}},
	})
	must(t, err)
	portico := httptest.NewUnstartedServer(handler)
	portico.Listener = proxy.Listener(portico.Listener, slog.New(slog.DiscardHandler))
	portico.Config.ConnState = proxy.ConnState
	portico.Config.MaxHeaderBytes = 32 << 10
	portico.Config.ErrorLog = log.New(io.Discard, "", 0)
	portico.Start()
	t.Cleanup(portico.Close)
	return portico.Listener.Addr().String()
}

// exchange sends a request and reads the first answer. A cut request ends with the sign that nothing more comes.
func exchange(t *testing.T, address, request string, cut bool) (status int, body []byte, err error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(5*time.Second)))
	// A server may answer before it has read everything, and stop listening; its answer counts.
	written := make(chan struct{})
	go func() {
		defer close(written)
		if _, err := io.WriteString(conn, request); err == nil && cut {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}()
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodPost})
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	conn.Close()
	<-written
	return answer.StatusCode, body, err
}

// TestMalformed sends every class to every operation.
func TestMalformed(t *testing.T) {
	tracker := &counting{}
	address := front(t, tracker)
	sent, refused := 0, 0
	for _, class := range Classes() {
		for _, to := range Targets() {
			if !class.SentTo(to.Operation) {
				continue
			}
			for _, contentType := range class.ContentTypes() {
				before := tracker.asked.Load()
				what := class.Group + ": " + class.Name + ", " + string(to.Operation) + ", " + contentType
				status, body, err := exchange(t, address, class.Request(to, contentType), class.Cut)
				if err != nil {
					t.Errorf("%s: no answer: %v", what, err)
					continue
				}
				sent++
				if want := class.OutcomeOn(to.Operation); want.Accepted() {
					checkAccepted(t, what, to, status, body, tracker.asked.Load()-before)
				} else {
					refused++
					checkRefused(t, what, want, status, body, tracker.asked.Load()-before)
				}
			}
		}
	}
	t.Logf("%d classes, %d requests, %d of them refused", len(Classes()), sent, refused)
}

func checkAccepted(t *testing.T, what string, to Target, status int, body []byte, asked int64) {
	t.Helper()
	if status != to.Operation.SuccessStatus() || asked != 1 {
		t.Errorf("%s: the tracker was asked %d times, and the answer is %d %s", what, asked, status, body)
	}
}

func checkRefused(t *testing.T, what string, want Outcome, status int, body []byte, asked int64) {
	t.Helper()
	if asked != 0 {
		t.Errorf("%s: reached the tracker", what)
	}
	members, err := mapping.ParseMembers(body)
	code, _ := mapping.Int(members.Get("code"))
	if err != nil || status != want.Status || int(code) != want.Code || !strings.HasPrefix(string(body), `{"error":true,`) {
		t.Errorf("%s: got %d %s, want %s", what, status, body, want)
	}
}

// TestMalformedNoticesALeak shows that TestMalformed can fail: without Portico everything reaches the tracker.
func TestMalformedNoticesALeak(t *testing.T) {
	tracker := &counting{}
	_, _, err := exchange(t, process.Listen(t, tracker).Host, Classes()[5].Request(Targets()[0], "application/json"), false)
	if err != nil || tracker.asked.Load() != 1 {
		t.Error("the count of requests does not count")
	}
}

func TestClassesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, class := range Classes() {
		if name := class.Group + ": " + class.Name; seen[name] {
			t.Errorf("%s is there twice", name)
		} else {
			seen[name] = true
		}
	}
}

var update = flag.Bool("update", false, "write docs/evidence/malformed.md")

// TestTableIsCurrent compares docs/evidence/malformed.md with the classes.
func TestTableIsCurrent(t *testing.T) {
	const path = "../../docs/evidence/malformed.md"
	var want bytes.Buffer
	must(t, WriteTable(&want))
	if *update {
		must(t, os.WriteFile(path, want.Bytes(), 0o644))
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("docs/evidence/malformed.md is out of date (%v); run: go test ./test/fuzz -update", err)
	}
}
