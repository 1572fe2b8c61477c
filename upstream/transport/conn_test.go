package transport_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "portico/upstream/transport"
)

// TestUnaskedResponseIsDiscarded: a tracker says something on a kept connection that nobody has asked for, with its response or after it.
// The next request must not get that.
func TestUnaskedResponseIsDiscarded(t *testing.T) {
	ok := func(text string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	unasked := ok("unasked")
	for name, c := range map[string]struct {
		with, after string        // what is sent with the response, and after it
		pause       time.Duration // before that
	}{
		"with the response":           {with: unasked},
		"after it":                    {after: unasked, pause: 10 * time.Millisecond},
		"in part with the next one's": {with: unasked[:9]},
	} {
		t.Run(name, func(t *testing.T) {
			said := make(chan struct{}, 2)
			tr := rawTracker(t, func(conn *net.TCPConn) {
				in, rest := bufio.NewReader(conn), ""
				for range 2 {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					_, _ = io.WriteString(conn, rest+ok("asked")+c.with)
					if rest = unasked[len(c.with):]; c.after != "" {
						time.Sleep(c.pause)
						_, _ = io.WriteString(conn, c.after)
						rest = ""
					}
					said <- struct{}{}
				}
			})
			w := newPlain(t, BaseOptions{})
			for range 2 {
				if _, text, err := do(w, get(t, tr.url)); text != "asked" || err != nil {
					t.Errorf("got %q, %v", text, err)
				}
				<-said
			}
		})
	}
}

// coalesced sends what is written to it at once where that is asked for.
type coalesced struct {
	net.Conn
	held []byte
}

func (c *coalesced) Write(p []byte) (int, error) {
	c.held = append(c.held, p...)
	return len(p), nil
}

func (c *coalesced) Read(p []byte) (int, error) {
	if len(c.held) > 0 {
		_, _ = c.Conn.Write(c.held)
		c.held = nil
	}
	return c.Conn.Read(p)
}

// TestUnaskedResponseUnderTLSIsDiscarded: it comes together with one that was asked for, in a record of its own.
func TestUnaskedResponseUnderTLSIsDiscarded(t *testing.T) {
	donor := httptest.NewTLSServer(http.NotFoundHandler())
	donor.Close()
	config := &tls.Config{Certificates: donor.TLS.Certificates}
	tr := rawTracker(t, func(conn *net.TCPConn) {
		secure := tls.Server(&coalesced{Conn: conn}, config)
		in := bufio.NewReader(secure)
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			for _, text := range []string{"asked", "other"} {
				_, _ = io.WriteString(secure, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"+text)
			}
		}
	})
	w := newPlain(t, BaseOptions{TLS: &tls.Config{RootCAs: donor.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}})
	for range 3 {
		if _, text, err := do(w, get(t, strings.Replace(tr.url, "http:", "https:", 1))); text != "asked" || err != nil {
			t.Errorf("got %q, %v", text, err)
		}
	}
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func longUpload(t *testing.T, url string) *http.Request {
	const size = 24 << 20 // more than the system takes on the way
	return upload(t, url, io.LimitReader(zeros{}, size), size)
}

// TestTrackerThatStopsReading: the wait for an answer begins after the last byte, so the sending needs a limit of its own.
func TestTrackerThatStopsReading(t *testing.T) {
	t.Parallel() // most of it waiting
	let := make(chan struct{})
	deaf := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-let })
	plain, secure := httptest.NewServer(deaf), httptest.NewTLSServer(deaf)
	t.Cleanup(func() { close(let); plain.Close(); secure.Close() })
	o := BaseOptions{HeaderTimeout: 200 * time.Millisecond, TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig}
	for _, url := range []string{plain.URL, secure.URL} {
		begun := time.Now()
		_, _, err := do(newPlain(t, o), longUpload(t, url)) // whose own context ends after a minute
		if took := time.Since(begun); ReasonOf(err) != Timeout || !OutcomeUnknown(err) || took > 30*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	}
}

// TestRefusedUploadIsCut: a tracker that refuses an upload at its header does not get the rest.
func TestRefusedUploadIsCut(t *testing.T) {
	refused, got := make(chan struct{}), make(chan int64, 1)
	tr := rawTracker(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
		select {
		case <-refused:
		case <-time.After(5 * time.Second): // of waiting for the rest
		}
		n, _ := io.Copy(io.Discard, c)
		got <- n
	})
	req := longUpload(t, tr.url)
	status, _, err := do(newPlain(t, BaseOptions{}), req)
	close(refused)
	if n := <-got; status != http.StatusRequestEntityTooLarge || err != nil || n >= req.ContentLength {
		t.Errorf("status %d, %v, after which the tracker has %d bytes", status, err, n)
	}
}

// TestSlowTrackerMayTakeItsTime: the limit is on the pause, not on the whole.
func TestSlowTrackerMayTakeItsTime(t *testing.T) {
	t.Parallel() // most of it waiting
	const pause, size = 1500 * time.Millisecond, 1 << 20
	tr := rawTracker(t, func(c *net.TCPConn) {
		_ = c.SetReadBuffer(64 << 10)
		for left, piece := size, make([]byte, 32<<10); left > 0; {
			time.Sleep(pause / 24)
			n, err := c.Read(piece)
			if left -= n; err != nil {
				return
			}
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	w := newPlain(t, BaseOptions{HeaderTimeout: pause, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
		}
		return c, err
	}})
	begun := time.Now()
	must(t, w, upload(t, tr.url, io.LimitReader(zeros{}, size), size))
	if took := time.Since(begun); took < pause {
		t.Errorf("%v are no test", took)
	}
}

// connectionsSeen counts the connections of GET requests at a tracker that responds to the requests that a test sends together at the
// same time.
type connectionsSeen struct {
	mu       sync.Mutex
	reads    map[string]bool
	together sync.WaitGroup // the requests that are still to come
}

func (s *connectionsSeen) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if r.Method == http.MethodGet {
		s.reads[r.RemoteAddr] = true
	}
	s.mu.Unlock()
	s.together.Done()
	s.together.Wait()
}

func (s *connectionsSeen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reads)
}

// TestKeptAfterALongRead: a read with a long body is refused once all of it was sent. Its connection serves the next read.
func TestKeptAfterALongRead(t *testing.T) {
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); n > 0 {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	s := newPlain(t, BaseOptions{})
	must(t, s, request(t, With(t.Context(), reads), http.MethodPost, tr.url, strings.Repeat("x", 100<<10)))
	must(t, s, get(t, tr.url))
}

// A tracker that was seen to serve many connections at once has workers for writes: reads keep their connections beside them.
func TestKeptConnectionsSurviveWrites(t *testing.T) {
	seen := &connectionsSeen{reads: map[string]bool{}}
	tr := newTracker(t, seen.ServeHTTP)
	w := newPlain(t, BaseOptions{})
	together := func(reads, writes int) {
		var all sync.WaitGroup
		seen.together.Add(reads + writes)
		for n := range reads + writes {
			req := get(t, tr.url)
			if n >= reads {
				req = post(t, tr.url)
			}
			all.Go(func() {
				must(t, w, req)
			})
		}
		all.Wait()
	}
	newConnections := func() int {
		together(12, 0) // the tracker serves that many at the same time
		together(0, 1)  // one more than that, so the idle connections end
		together(4, 0)
		before := seen.count()
		for range 10 {
			together(3, 1)
		}
		return seen.count() - before
	}
	more := newConnections()
	for end := time.Now().Add(30 * time.Second); more > 5 && time.Now().Before(end); { // a busy machine may let a connection wait for long
		more = newConnections()
	}
	if more > 5 {
		t.Errorf("30 reads beside 10 writes took %d new connections", more)
	}
}

// A connection that waits for its first byte only as long as a busy tracker needs is no reason to end others. A busy machine may let it wait
// for longer, so it is tried again.
func TestConnectionsAreKeptBesideAYoungOne(t *testing.T) {
	kept := func() bool {
		sent, goOn := make(chan struct{}), make(chan struct{})
		seen := map[string]bool{}
		tr := newTracker(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				close(sent)
				<-goOn
				return
			}
			seen[r.RemoteAddr] = true
		})
		w := newPlain(t, BaseOptions{})
		must(t, w, get(t, tr.url))
		var write sync.WaitGroup
		req := post(t, tr.url)
		write.Go(func() { must(t, w, req) })
		<-sent
		must(t, w, get(t, tr.url))
		close(goOn)
		write.Wait()
		return len(seen) == 1
	}
	for end := time.Now().Add(30 * time.Second); !kept(); {
		if time.Now().After(end) {
			t.Fatal("each read took a connection of its own")
		}
	}
}

// TestNoResponseIsLost: while connections wait for workers, idle ones are closed for them, and no other.
func TestNoResponseIsLost(t *testing.T) {
	workers := make(chan struct{}, 3)
	tr := rawTracker(t, func(c *net.TCPConn) {
		workers <- struct{}{}
		defer func() { <-workers }()
		for {
			if _, err := readRequest(c); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	w := newPlain(t, BaseOptions{})
	var all sync.WaitGroup
	for n := range 8 {
		method := []string{http.MethodGet, http.MethodPost}[n%2]
		all.Go(func() {
			for range 200 {
				if _, _, err := do(w, request(t, t.Context(), method, tr.url, "")); err != nil {
					t.Errorf("%s: %v", method, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// An idle connection ends by itself, because it may occupy a worker.
func TestIdleConnectionsEnd(t *testing.T) {
	t.Parallel() // most of it waiting
	ended := make(chan struct{})
	tr := rawTracker(t, respond("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", func(c *net.TCPConn) { hang(c); close(ended) }))
	must(t, newPlain(t, BaseOptions{}), get(t, tr.url))
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the connection stays")
	}
}
