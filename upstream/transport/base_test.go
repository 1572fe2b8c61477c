package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// respond answers one request with raw bytes and then goes on with then.
func respond(text string, then func(*net.TCPConn)) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		if _, err := readRequest(c); err != nil {
			return
		}
		_, _ = io.WriteString(c, text)
		if then != nil {
			then(c)
		}
	}
}

func hangUp(c *net.TCPConn) { hang(c) }

// TestFailures is the truth table of Reason and Unknown over real sockets. Unknown is asked of a POST; a GET is never unknown.
func TestFailures(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct {
		serve   func(*net.TCPConn)
		reason  Reason
		unknown bool
	}{
		"reset after the request":   {respond("", reset), Reset, true},
		"closed after the request":  {respond("", nil), Reset, true},
		"hangs":                     {respond("", hangUp), Timeout, true},
		"cut inside the header":     {respond(ok+"X-A: ", nil), Reset, true},
		"header too large":          {respond(ok+"X-A: "+strings.Repeat("a", 9000)+"\r\n\r\n", nil), ResponseHeaderTooLarge, true},
		"another protocol":          {respond("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", hangUp), BadAnswer, true},
		"status below 200":          {respond("HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", nil), BadAnswer, true},
		"status above 599":          {respond("HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n", nil), BadAnswer, true},
		"not HTTP":                  {respond("SSH-2.0-OpenSSH\r\n\r\n", nil), BadAnswer, true},
		"body cut short":            {respond(ok+"Content-Length: 9\r\n\r\nabc", nil), CutShort, true},
		"body reset":                {respond(ok+"Content-Length: 9\r\n\r\nabc", reset), CutShort, true},
		"chunked body cut short":    {respond(ok+"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", nil), CutShort, true},
		"chunks that are none":      {respond(ok+"Transfer-Encoding: chunked\r\n\r\nzzz\r\n", nil), CutShort, true},
		"silence inside the body":   {respond(ok+"Content-Length: 9\r\n\r\nabc", hangUp), Timeout, true},
		"a whole answer":            {respond(ok+"Content-Length: 3\r\n\r\nabc", nil), "", false},
		"a whole answer of failure": {respond("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", nil), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := BaseOptions{MaxResponseHeaderBytes: 4096} // with limits of half a minute, that nobody runs into by being slow
			if c.reason == Timeout {
				o.ResponseHeaderTimeout, o.BodyIdleTimeout = 100*time.Millisecond, 100*time.Millisecond
			}
			tr, w := rawTracker(t, c.serve), newBase(t, o)
			begun := time.Now()
			_, _, err := do(w, post(t, tr.url))
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("took %v: the limit on silence did not hold", took)
			}
			if ReasonOf(err) != c.reason || OutcomeUnknown(err) != c.unknown {
				t.Errorf("POST: %v; want %q, unknown %v", err, c.reason, c.unknown)
			}
			_, _, err = do(w, get(t, tr.url))
			if ReasonOf(err) != c.reason || OutcomeUnknown(err) {
				t.Errorf("GET: %v; want %q and never unknown", err, c.reason)
			}
		})
	}
}

// TestCleanFailuresOfWrites are those where not a byte of the request can have reached a tracker.
func TestCleanFailuresOfWrites(t *testing.T) {
	plain := newTracker(t, func(http.ResponseWriter, *http.Request) {})
	blocked := BaseOptions{DialTimeout: 50 * time.Millisecond, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	// A connection whose sending half is shut: net/http has written the header into its buffer, the socket took none of it.
	halfShut := BaseOptions{Dial: func(_ context.Context, network, address string) (net.Conn, error) {
		c, err := net.Dial(network, address)
		if err == nil {
			err = c.(*net.TCPConn).CloseWrite()
		}
		return c, err
	}}
	silent := rawTracker(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c); time.Sleep(100 * time.Millisecond) })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		o      BaseOptions
		req    *http.Request
		reason Reason
	}{
		"dead port":         {BaseOptions{}, post(t, deadURL(t)), Connect},
		"dial timeout":      {blocked, post(t, plain.url), Connect},
		"TLS to plain HTTP": {BaseOptions{}, post(t, strings.Replace(plain.url, "http:", "https:", 1)), Connect},
		"nothing sent":      {halfShut, post(t, silent.url), Reset},
		"canceled before":   {BaseOptions{}, request(t, ended, http.MethodPost, plain.url, "{}"), Canceled},
		"no host":           {BaseOptions{}, post(t, "http:///path"), Other},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := do(newBase(t, c.o), c.req)
			if ReasonOf(err) != c.reason || OutcomeUnknown(err) {
				t.Errorf("%v; want %q and a known outcome", err, c.reason)
			}
		})
	}
}

func TestUntrustedCertificateIsConnect(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	_, _, err := do(newBase(t, BaseOptions{}), post(t, s.URL))
	if ReasonOf(err) != Connect || OutcomeUnknown(err) {
		t.Errorf("%v", err)
	}
}

// TestUnknownOverTLS: the bytes of the handshake are not bytes of the request.
func TestUnknownOverTLS(t *testing.T) {
	got := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			close(got)
			panic(http.ErrAbortHandler)
		}
		if r.ProtoMajor != 1 {
			t.Errorf("spoke %s", r.Proto)
		}
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	w := newBase(t, BaseOptions{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
	if _, _, err := do(w, get(t, s.URL)); err != nil {
		t.Fatal(err)
	}
	_, _, err := do(w, post(t, s.URL))
	<-got
	if ReasonOf(err) != Reset || !OutcomeUnknown(err) {
		t.Errorf("aborted after the request: %v", err)
	}
	old := BaseOptions{TLS: &tls.Config{RootCAs: x509Pool(s), MaxVersion: tls.VersionTLS11}}
	if _, _, err = do(newBase(t, old), post(t, s.URL)); ReasonOf(err) != Connect || OutcomeUnknown(err) {
		t.Errorf("handshake refused: %v", err)
	}
}

// TestNothingSentOverTLS: the connection takes the handshake and then not a byte more.
func TestNothingSentOverTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	var conn net.Conn
	w := newBase(t, BaseOptions{
		TLS: &tls.Config{RootCAs: x509Pool(s)},
		Dial: func(_ context.Context, network, address string) (c net.Conn, err error) {
			conn, err = net.Dial(network, address)
			return conn, err
		},
	})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{TLSHandshakeDone: func(tls.ConnectionState, error) {
		_ = conn.(*net.TCPConn).CloseWrite()
	}})
	if _, _, err := do(w, request(t, ctx, http.MethodPost, s.URL, "{}")); ReasonOf(err) != Reset || OutcomeUnknown(err) {
		t.Errorf("%v", err)
	}
}

func TestEndsOfTheCaller(t *testing.T) {
	seen := make(chan struct{}, 2)
	tr := rawTracker(t, func(c *net.TCPConn) {
		_, _ = readRequest(c)
		seen <- struct{}{}
		hang(c)
	})
	w := newBase(t, BaseOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-seen; cancel() }()
	_, _, err := do(w, request(t, ctx, http.MethodPost, tr.url, "{}"))
	if ReasonOf(err) != Canceled || !OutcomeUnknown(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = do(w, request(t, ctx, http.MethodPost, tr.url, "{}"))
	if ReasonOf(err) != Timeout || !OutcomeUnknown(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
}

// TestRequestBodyFailures: what the caller sends badly is not the tracker's failure.
func TestRequestBodyFailures(t *testing.T) {
	tr := newTracker(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for name, c := range map[string]struct {
		body     io.Reader
		declared int64
	}{
		"fails":     {io.MultiReader(strings.NewReader("ab"), errReader{}), 9},
		"too short": {strings.NewReader("ab"), 9},
		"not there": {strings.NewReader(""), 9},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, t.Context(), http.MethodPost, tr.url, "x")
			req.Body, req.ContentLength, req.GetBody = io.NopCloser(c.body), c.declared, nil
			if _, _, err := do(newBase(t, BaseOptions{}), req); ReasonOf(err) != RequestBody {
				t.Errorf("%v", err)
			}
		})
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("the client hung up") }

// TestErrorsThroughTheClient: http.Client wraps in *url.Error, which shows the URL; ours must not, and must be found.
func TestErrorsThroughTheClient(t *testing.T) {
	client := http.Client{Transport: newBase(t, BaseOptions{})}
	req := request(t, WithOperation(t.Context(), "update attachments"), http.MethodPut, deadURL(t)+"/?api_key=secret", "{}")
	_, err := client.Do(req)
	var wrapped *url.Error
	var own *Error
	if !errors.As(err, &wrapped) || !errors.As(err, &own) || own.Reason != Connect || own.Op != "update attachments" {
		t.Fatalf("%#v", err)
	}
	if strings.Contains(own.Error(), "secret") || !strings.Contains(own.Error(), "update attachments") {
		t.Errorf("text: %s", own)
	}
}

// TestNoProxyNoCompression: a tracker on a name is dialed itself, whatever the environment says.
func TestNoProxyNoCompression(t *testing.T) {
	t.Setenv("HTTP_PROXY", deadURL(t))
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Header.Values("Accept-Encoding")) })
	var mu sync.Mutex
	var dialed []string
	w := newBase(t, BaseOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		dialed = append(dialed, address)
		var d net.Dialer
		return d.DialContext(ctx, network, strings.TrimPrefix(tr.url, "http://"))
	}})
	_, body, err := do(w, get(t, "http://tracker.test/"))
	if err != nil || body != "[]" {
		t.Errorf("sent Accept-Encoding %s, error %v", body, err)
	}
	if w.reads.Proxy != nil || w.writes.Proxy != nil { // the environment is read once per process, maybe before this test set it
		t.Error("there is a proxy function")
	}
	if len(dialed) != 1 || dialed[0] != "tracker.test:80" {
		t.Errorf("dialed %v", dialed)
	}
}

// TestSilenceIsBoundedByDefault: who says how long an answer may take to begin has said how long it may pause.
func TestSilenceIsBoundedByDefault(t *testing.T) {
	for header, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Second: time.Second, time.Minute: 30 * time.Second} {
		if got := (BaseOptions{ResponseHeaderTimeout: header}).withDefaults().BodyIdleTimeout; got != want {
			t.Errorf("with %v for the header, silence may last %v, want %v", header, got, want)
		}
	}
}

// TestOwnShortageIsNotTheTrackersFailure: without files of our own there is no connection, and nothing was sent.
func TestOwnShortageIsNotTheTrackersFailure(t *testing.T) {
	none := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	}
	b := Break(newBase(t, BaseOptions{Dial: none}), BreakOptions{})
	t.Cleanup(b.Close)
	for range 20 {
		_, _, err := do(b, post(t, "http://tracker.example/"))
		var e *Error
		if !errors.As(err, &e) || e.Reason != LimitFull || e.Unknown || e.RetryAfter == 0 {
			t.Fatalf("%+v", e)
		}
	}
	if s := b.Writes.State(); s != Closed {
		t.Errorf("the breaker is %s", s)
	}
}
