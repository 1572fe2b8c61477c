package transport_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "portico/upstream/transport"

	"portico/test/process"
)

// tracker is a server on a real socket.
type tracker struct {
	url  string
	hits atomic.Int64
}

func newTracker(t *testing.T, h http.HandlerFunc) *tracker {
	t.Helper()
	tr := &tracker{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tr.hits.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	tr.url = s.URL
	return tr
}

// rawTracker gives every connection to serve, which reads and writes what it likes.
func rawTracker(t *testing.T, serve func(c *net.TCPConn)) *tracker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	process.Must(t, err)
	tr := &tracker{url: "http://" + l.Addr().String()}
	var open sync.Map
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tr.hits.Add(1)
			open.Store(c, true)
			all.Go(func() { defer c.Close(); serve(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		all.Wait()
	})
	return tr
}

// readRequest takes one request off a raw connection.
func readRequest(c net.Conn) (*http.Request, error) {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	return r, err
}

// reset ends a connection the hard way.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// hang reads until the other side gives up.
func hang(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// deadURL is an address without a listener.
func deadURL(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	process.Must(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

func newStack(t testing.TB, o Options) *Stack {
	t.Helper()
	s := New(o)
	t.Cleanup(s.Close)
	return s
}

// plain has one try and breakers that never open.
func plain(base BaseOptions) Options {
	return Options{Base: base, Tries: 1, Break: BreakOptions{MinRequests: 1 << 30, Unanswered: 1 << 30}}
}

func newPlain(t testing.TB, base BaseOptions) *Stack {
	t.Helper()
	return newStack(t, plain(base))
}

// shadow, writes and streamed say one thing each about a call.
func shadow(c *Call)   { c.Shadow = true }
func reads(c *Call)    { c.Reads = true }
func writes(c *Call)   { c.Writes = true }
func streamed(c *Call) { c.Stream = true }

// request ends by itself after a while, so that a broken rule is a failed test and not a hung one.
func request(t *testing.T, ctx context.Context, method, url, body string) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	process.Must(t, err)
	return req
}

func get(t *testing.T, url string) *http.Request {
	return request(t, t.Context(), http.MethodGet, url, "")
}

func post(t *testing.T, url string) *http.Request {
	return request(t, t.Context(), http.MethodPost, url, "{}")
}

// do makes a call, reads its answer to the end and gives status, body and the first error.
func do(rt http.RoundTripper, req *http.Request) (int, string, error) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// background makes a call in a goroutine of its own, and returns where its error will be.
func background(rt http.RoundTripper, req *http.Request) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, _, err := do(rt, req)
		done <- err
	}()
	return done
}

// must makes a call that succeeds, and returns the body of its response.
func must(t *testing.T, rt http.RoundTripper, req *http.Request) string {
	t.Helper()
	_, body, err := do(rt, req)
	if err != nil {
		t.Errorf("%s: %v", req.Method, err)
	}
	return body
}

// upload is a POST with a body of a declared length that cannot be sent again.
func upload(t *testing.T, url string, body io.Reader, length int64) *http.Request {
	t.Helper()
	req := post(t, url)
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(body), length, nil
	return req
}

// recorder is an Observer that remembers.
type recorder struct {
	mu      sync.Mutex
	samples []Sample
}

func (r *recorder) Observe(s Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, s)
}

func (r *recorder) all() []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.samples)
}

func (r *recorder) last(t *testing.T) Sample {
	t.Helper()
	process.Eventually(t, "a sample", func() bool { return len(r.all()) > 0 })
	all := r.all()
	return all[len(all)-1]
}
