package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recording stands before a tracker and takes down what reaches it and what it answers, byte by byte.
type recording struct {
	mu   sync.Mutex
	list []*seen
	// busy counts exchanges under way: an answer can be with the client before it is taken down.
	busy sync.WaitGroup
}

// seen is one exchange as the tracker saw it.
type seen struct {
	method, uri string
	header      http.Header
	host        string
	length      int64
	chunked     bool
	body        []byte
	status      int
	given       http.Header
	answer      []byte
}

func (r *recording) over(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.busy.Add(1)
		defer r.busy.Done()
		body, _ := io.ReadAll(request.Body)
		one := &seen{
			method: request.Method, uri: request.RequestURI, header: request.Header.Clone(), host: request.Host,
			length: request.ContentLength, chunked: slices.Contains(request.TransferEncoding, "chunked"), body: body,
		}
		r.mu.Lock()
		r.list = append(r.list, one)
		r.mu.Unlock()
		request.Body = io.NopCloser(bytes.NewReader(body))
		copied := &copying{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(copied, request)
		one.status, one.given, one.answer = copied.status, w.Header().Clone(), copied.body.Bytes()
	})
}

// copying keeps a copy of an answer.
type copying struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (c *copying) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *copying) Write(p []byte) (int, error) {
	c.body.Write(p)
	return c.ResponseWriter.Write(p)
}

// Flush and Unwrap let the reference tracker answer as it is used to.
func (c *copying) Flush()                      { _ = http.NewResponseController(c.ResponseWriter).Flush() }
func (c *copying) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// all gives what was seen so far, without the question for the version that Portico asks by itself.
func (r *recording) all() []*seen {
	r.busy.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.list), func(s *seen) bool {
		return strings.HasSuffix(s.uri, "/version") && s.header.Get("User-Agent") != versionAsker
	})
}

// versionAsker is the user agent of tests that ask for the version themselves.
const versionAsker = "a legacy client"

// last gives what was seen last.
func (r *recording) last(t testing.TB) *seen {
	t.Helper()
	list := r.all()
	if len(list) == 0 {
		t.Fatal("nothing reached the tracker")
	}
	return list[len(list)-1]
}

// String is the request as text, with sorted headers.
func (s *seen) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\n", s.method, s.uri)
	_ = s.header.Write(&text)
	fmt.Fprintf(&text, "\n%s", s.body)
	return text.String()
}

// passed checks that a request reached the tracker as it was, and that the client got the tracker's response.
func (r *reply) passed(s *seen) error {
	_, wanted, _ := strings.Cut(r.ask.path, "?")
	_, query, _ := strings.Cut(s.uri, "?")
	if s.method != cmp.Or(r.ask.method, http.MethodGet) || query != wanted || string(s.body) != r.ask.body || s.length != int64(len(r.ask.body)) || s.chunked {
		return fmt.Errorf("it reached the tracker as %.300s", s)
	}
	if r.status != s.status || !bytes.Equal(r.body, s.answer) {
		return fmt.Errorf("the tracker sent %d %.100q, the client got %d %.100q", s.status, s.answer, r.status, r.body)
	}
	return nil
}
