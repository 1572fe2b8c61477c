package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"portico/test/process"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hostile is a request that no honest client sends, as bytes, and the one answer that it gets.
type hostile struct {
	name string
	text string
	// answer is "STATUS" or "STATUS, code CODE", for every answer on the connection, or "closed".
	answer string
	// tracker is the request line of what the tracker gets, empty for nothing.
	tracker string
	// look is asked about what the tracker got, if there is more to say.
	look func(t *testing.T, got witnessed)
}

// witnessed is one request as a tracker got it.
type witnessed struct {
	line   string
	host   string
	header http.Header
	body   string
	length int64
}

// witness is a tracker that answers everything with an empty object and takes down what it was asked.
type witness struct {
	mu   sync.Mutex
	seen []witnessed
}

// ServeHTTP implements http.Handler.
func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = []byte("broken: " + err.Error())
	}
	if r.URL.Path != "/rest/version" { // Portico asks that by itself, to know the dialect
		w.mu.Lock()
		w.seen = append(w.seen, witnessed{r.Method + " " + r.RequestURI, r.Host, r.Header, string(body), r.ContentLength})
		w.mu.Unlock()
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(out, `{}`)
}

// take gives what was asked since the last time.
func (w *witness) take() []witnessed {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// decoy is a host that Portico must not call. It gives its address and counts the connections.
func decoy(t *testing.T) (address string, visits func() int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var mu sync.Mutex
	count, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			count++
			mu.Unlock()
			connection.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// answersTo sends bytes as they are and tells what came back until the server hung up: an answer, several, or nothing.
func answersTo(t *testing.T, base, text string) string {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	must(t, err)
	defer connection.Close()
	must(t, connection.SetDeadline(time.Now().Add(30*time.Second)))
	if _, err := io.WriteString(connection, text); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	reader, all := bufio.NewReader(connection), []string{}
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
			break
		}
		all = append(all, describe(t, response))
	}
	if len(all) == 0 {
		return "closed"
	}
	return strings.Join(all, " + ")
}

var errorShape = regexp.MustCompile(`^\{"error":true,"code":(\d+),"message":"[^"]`)

// describe tells status and code of an answer, and demands that every error has the tracker's shape.
func describe(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the answer breaks off: %v", err)
	}
	if response.StatusCode < 400 {
		return fmt.Sprint(response.StatusCode)
	}
	shape := errorShape.FindSubmatch(body)
	if shape == nil || response.Header.Get("Content-Type") != "application/json; charset=UTF-8" || response.Header.Get("X-Request-Id") == "" {
		t.Errorf("an error without the tracker's shape: %d %q", response.StatusCode, body)
		return fmt.Sprint(response.StatusCode)
	}
	return fmt.Sprintf("%d, code %s", response.StatusCode, shape[1])
}

// The whole program is sent what no honest client sends. Each has one answer, those of docs/evidence/security.md, and the tracker sees
// either nothing or one well-formed request.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	behind := &witness{}
	tracker := process.Listen(t, behind)
	elsewhere, visits := decoy(t)
	p := startFacade(t, tracker.String(), "TIMEOUTS_HEADER=1s", "TIMEOUTS_READ=1s", "LIMITS_HEADER=16KiB", "TRACKERS_MAIN_DIALECT=bugzilla-5")
	for _, c := range hostileRequests() {
		t.Run(c.name, func(t *testing.T) {
			answer := answersTo(t, p.base, strings.ReplaceAll(c.text, "ELSEWHERE", elsewhere))
			if answer != c.answer {
				t.Errorf("answered %s, want %s", answer, c.answer)
			}
			got := behind.take()
			lines := make([]string, len(got))
			for i, one := range got {
				lines[i] = one.line
				one.wellFormed(t, tracker.Host)
				if c.look != nil {
					c.look(t, one)
				}
			}
			if joined := strings.Join(lines, " + "); joined != strings.ReplaceAll(c.tracker, "ELSEWHERE", elsewhere) {
				t.Errorf("the tracker got %q, want %q", joined, c.tracker)
			}
		})
	}
	if n := visits(); n != 0 {
		t.Errorf("another host was called %d times", n)
	}
}

// wellFormed demands what holds for every request that reaches a tracker.
func (w witnessed) wellFormed(t *testing.T, tracker string) {
	t.Helper()
	if w.host != tracker {
		t.Errorf("the tracker was called %q", w.host)
	}
	for _, name := range []string{"Transfer-Encoding", "Te", "Upgrade", "Expect", "Proxy-Connection", "Keep-Alive", "X-Original-Url", "X-Rewrite-Url", "Forwarded"} {
		if value := w.header.Get(name); value != "" {
			t.Errorf("the tracker got %s: %s", name, value)
		}
	}
	if w.length < 0 || int64(len(w.body)) != w.length {
		t.Errorf("a body of %d bytes was announced and %q came", w.length, w.body)
	}
	if from := w.header.Get("X-Forwarded-For"); from != "" && from != "127.0.0.1" {
		t.Errorf("the tracker was told that %q asks", from)
	}
}

// Every row of the table in docs/evidence/security.md is a request here, and the other way round.
func TestHostileRequestsAreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/evidence/security.md")
	must(t, err)
	_, section, found := strings.Cut(string(page), "## Hostile requests")
	if !found {
		t.Fatal("docs/evidence/security.md has no section on hostile requests")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var want strings.Builder
	for _, c := range hostileRequests() {
		got := "nothing"
		if c.tracker != "" {
			got = "`" + c.tracker + "`"
		}
		fmt.Fprintf(&want, "| %s | %s | %s |\n", c.name, c.answer, got)
	}
	if !strings.Contains(section, want.String()) {
		t.Errorf("docs/evidence/security.md should have these rows:\n%s", &want)
	}
}
