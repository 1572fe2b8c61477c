package transport_test

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
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	. "portico/upstream/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestReadsAndWrites makes each call twice in one context, which are measured apart. Reads keep their connection, and each write has its own.
func TestReadsAndWrites(t *testing.T) {
	conns := map[string]bool{}
	tr := newTracker(t, func(w http.ResponseWriter, r *http.Request) {
		conns[r.RemoteAddr] = true
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+string(body))
		if r.Close != (r.Method == "POST") {
			t.Errorf("%s: Connection: close is %v", r.Method, r.Close)
		}
	})
	var seen recorder
	stack, ctx := newStack(t, Options{Observer: &seen}), With(t.Context(), func(c *Call) { c.Operation = "op" })
	for _, method := range []string{"GET", "GET", "POST", "POST"} {
		if got := must(t, stack, request(t, ctx, method, tr.url, "sent")); got != method+" sent" {
			t.Errorf("answer %q", got)
		}
		s := seen.last(t)
		if s.Operation != "op" || s.Status != 200 || s.Tries != 1 || s.BytesOut != 4 ||
			s.BytesIn != int64(len(method)+5) || s.Reason != "" || s.Total <= 0 {
			t.Errorf("sample %+v", s)
		}
	}
	if n := stack.Limiter.Load().InUse; n != 0 || len(conns) != 3 {
		t.Errorf("%d slots held after the end, %d connections", n, len(conns))
	}
}

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
// No error has the tracker's own text: net/http quotes what it cannot read, and that may be a credential.
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
		"hangs in the status line":  {respond("HTTP/1.1 20", hangUp), Timeout, true},
		"hangs in a header's name":  {respond(ok+"Content-Ty", hangUp), Timeout, true},
		"cut inside the header":     {respond(ok+"X-A: ", nil), Reset, true},
		"header too large":          {respond(ok+"X-A: "+strings.Repeat("a", 70<<10)+"\r\n\r\n", nil), ResponseHeaderTooLarge, true},
		"another protocol":          {respond("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", hangUp), BadResponse, true},
		"status below 200":          {respond("HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", nil), BadResponse, true},
		"status above 599":          {respond("HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n", nil), BadResponse, true},
		"not HTTP":                  {respond("SSH-2.0-OpenSSH\r\n\r\n", nil), BadResponse, true},
		"body cut short":            {respond(ok+"Content-Length: 9\r\n\r\nabc", nil), CutShort, true},
		"body reset":                {respond(ok+"Content-Length: 9\r\n\r\nabc", reset), CutShort, true},
		"chunked body cut short":    {respond(ok+"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", nil), CutShort, true},
		"chunks that are none":      {respond(ok+"Transfer-Encoding: chunked\r\n\r\nzzz\r\n", nil), CutShort, true},
		"silence inside the body":   {respond(ok+"Content-Length: 9\r\n\r\nabc", hangUp), Timeout, true},
		"header without a colon":    {respond(ok+"Set-Cookie Bugzilla_logincookie=SECRET\r\n\r\n", nil), BadResponse, true},
		"no status line":            {respond("Set-Cookie: Bugzilla_logincookie=SECRET oh\r\n\r\n", nil), BadResponse, true},
		"no status":                 {respond("HTTP/1.1 SECRET x\r\n\r\n", nil), BadResponse, true},
		"no length":                 {respond(ok+"Content-Length: SECRET\r\n\r\n", nil), BadResponse, true},
		"unknown encoding":          {respond(ok+"Transfer-Encoding: SECRET\r\n\r\n", nil), BadResponse, true},
		"trailer without a colon":   {respond(ok+"Transfer-Encoding: chunked\r\n\r\n0\r\nSet-Cookie SECRET\r\n\r\n", nil), CutShort, true},
		"a whole answer":            {respond(ok+"Content-Length: 3\r\n\r\nabc", nil), "", false},
		"a whole answer of failure": {respond("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", nil), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var o BaseOptions // with limits of half a minute, that a slow machine does not reach
			if c.reason == Timeout {
				o.HeaderTimeout = 100 * time.Millisecond
			}
			tr, w := rawTracker(t, c.serve), newPlain(t, o)
			begun := time.Now()
			_, _, err := do(w, post(t, tr.url))
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("took %v: the limit on silence did not hold", took)
			}
			if ReasonOf(err) != c.reason || OutcomeUnknown(err) != c.unknown {
				t.Errorf("POST: %v; want %q, unknown %v", err, c.reason, c.unknown)
			}
			_, _, err = do(w, get(t, tr.url))
			if ReasonOf(err) != c.reason || OutcomeUnknown(err) || strings.Contains(fmt.Sprint(err), "SECRET") {
				t.Errorf("GET: %v; want %q and never unknown", err, c.reason)
			}
		})
	}
}

// TestUnsentWrites: where not a byte of the request can have reached a tracker the outcome is known. Those of a TLS handshake do not count.
// A guard is asked before the request, and again before its body.
func TestUnsentWrites(t *testing.T) {
	plain := newTracker(t, func(http.ResponseWriter, *http.Request) {})
	blocked := BaseOptions{ConnectTimeout: 50 * time.Millisecond, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
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
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("spoke %s", r.Proto)
		}
		panic(http.ErrAbortHandler)
	}))
	secure.EnableHTTP2, secure.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	trusted, taken := secure.Client().Transport.(*http.Transport).TLSClientConfig, atomic.Bool{}
	old := BaseOptions{TLS: &tls.Config{RootCAs: trusted.RootCAs, MaxVersion: tls.VersionTLS11}}
	// The connection takes the handshake and then not a byte more.
	afterHandshake := BaseOptions{
		TLS: &tls.Config{RootCAs: trusted.RootCAs, VerifyConnection: func(tls.ConnectionState) error { taken.Store(true); return nil }},
		Dial: func(_ context.Context, network, address string) (net.Conn, error) {
			c, err := net.Dial(network, address)
			return shutAfter{c, &taken}, err
		},
	}
	silent := rawTracker(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c); time.Sleep(100 * time.Millisecond) })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	guarded := func(answers ...error) *http.Request {
		ctx := With(t.Context(), func(c *Call) {
			c.Guard = func() error {
				said := answers[0]
				answers = answers[min(1, len(answers)-1):]
				return said
			}
		})
		return request(t, ctx, http.MethodPost, plain.url, "{}")
	}
	for name, c := range map[string]struct {
		o       BaseOptions
		req     *http.Request
		reason  Reason
		unknown bool
	}{
		"guarded":           {BaseOptions{}, guarded(errors.New("not now")), Canceled, false},
		"guarded meanwhile": {BaseOptions{}, guarded(nil, errors.New("not now")), RequestBody, true},
		"dead port":         {BaseOptions{}, post(t, deadURL(t)), Connect, false},
		"dial timeout":      {blocked, post(t, plain.url), Connect, false},
		"TLS to plain HTTP": {BaseOptions{}, post(t, strings.Replace(plain.url, "http:", "https:", 1)), Connect, false},
		"not trusted":       {BaseOptions{}, post(t, secure.URL), Connect, false},
		"old TLS":           {old, post(t, secure.URL), Connect, false},
		"nothing sent":      {halfShut, post(t, silent.url), Reset, false},
		"nothing over TLS":  {afterHandshake, post(t, secure.URL), Reset, false},
		"sent over TLS":     {BaseOptions{TLS: trusted}, post(t, secure.URL), Reset, true},
		"canceled before":   {BaseOptions{}, request(t, ended, http.MethodPost, plain.url, "{}"), Canceled, false},
		"no host":           {BaseOptions{}, post(t, "http:///path"), Other, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := do(newPlain(t, c.o), c.req)
			if ReasonOf(err) != c.reason || OutcomeUnknown(err) != c.unknown {
				t.Errorf("%v; want %q, unknown %v", err, c.reason, c.unknown)
			}
		})
	}
}

// TestACertificateThatIsMissing: with TLS 1.3 the tracker refuses a client after the handshake. Errors name its alert.
func TestACertificateThatIsMissing(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog, server.TLS = log.New(io.Discard, "", 0), &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	w := newPlain(t, BaseOptions{TLS: server.Client().Transport.(*http.Transport).TLSClientConfig})
	for _, req := range []*http.Request{get(t, server.URL), post(t, server.URL)} {
		_, _, err := do(w, req)
		if ReasonOf(err) != Connect || OutcomeUnknown(err) != (req.Method == http.MethodPost) || !strings.Contains(fmt.Sprint(err), "tls: certificate required") {
			t.Errorf("%s: %v; want %q and the alert", req.Method, err, Connect)
		}
	}
}

// shutAfter takes one more write, the last one of the handshake, once it is told so.
type shutAfter struct {
	net.Conn
	soon *atomic.Bool
}

func (c shutAfter) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.soon.Load() {
		_ = c.Conn.(*net.TCPConn).CloseWrite()
	}
	return n, err
}

func TestEndsOfTheCaller(t *testing.T) {
	seen := make(chan struct{}, 2)
	tr := rawTracker(t, func(c *net.TCPConn) {
		_, _ = readRequest(c)
		seen <- struct{}{}
		hang(c)
	})
	w := newPlain(t, BaseOptions{})
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

// TestCallerLeavesDuringAFailure: the caller goes away after a connection has failed and before the failure is judged.
func TestCallerLeavesDuringAFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := newPlain(t, BaseOptions{Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go hang(theirs)
		return &leaving{Conn: ours, cancel: cancel, closed: make(chan struct{})}, nil
	}})
	if _, _, err := do(w, request(t, ctx, http.MethodGet, "http://tracker.test/", "")); ReasonOf(err) != Reset {
		t.Errorf("got %v", err)
	}
}

// leaving is a connection whose reads fail. Who asks once more after the read whether that was a timeout gets to know it when the caller has gone and
// the connection is closed.
type leaving struct {
	net.Conn
	cancel func()
	closed chan struct{}
	asked  int
}

func (c *leaving) Read([]byte) (int, error) { return 0, c }
func (c *leaving) Error() string            { return "no more bytes" }
func (c *leaving) Temporary() bool          { return false }
func (c *leaving) Close() error             { defer close(c.closed); return c.Conn.Close() }

func (c *leaving) Timeout() bool {
	if c.asked++; c.asked == 2 {
		c.cancel()
		<-c.closed
	}
	return false
}

// TestRequestBodyFailures: what the caller sends badly is not the tracker's failure, and a response to a part of it does not count.
func TestRequestBodyFailures(t *testing.T) {
	tr := rawTracker(t, func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1<<10))
		time.Sleep(50 * time.Millisecond)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		hang(c)
	})
	broken := iotest.ErrReader(errors.New("the client hung up"))
	for name, body := range map[string]io.Reader{
		"fails":     io.MultiReader(strings.NewReader("ab"), broken),
		"is sent":   io.MultiReader(strings.NewReader(strings.Repeat("a", 20<<10)), broken),
		"too short": strings.NewReader("ab"),
		"not there": strings.NewReader(""),
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := do(newPlain(t, BaseOptions{}), upload(t, tr.url, body, 30<<10)); ReasonOf(err) != RequestBody {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestErrorsThroughTheClient: http.Client wraps in *url.Error, which shows the URL; ours must not, and must be found.
func TestErrorsThroughTheClient(t *testing.T) {
	client := http.Client{Transport: newPlain(t, BaseOptions{})}
	req := request(t, With(t.Context(), func(c *Call) { c.Operation = "update attachments" }), http.MethodPut, deadURL(t)+"/?api_key=secret", "{}")
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
	w := newPlain(t, BaseOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
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
	if len(dialed) != 1 || dialed[0] != "tracker.test:80" {
		t.Errorf("dialed %v", dialed)
	}
}

// TestOwnShortageIsNotTheTrackersFailure: without files or ports of our own there is no connection, and nothing was sent.
func TestOwnShortageIsNotTheTrackersFailure(t *testing.T) {
	lacks := map[bool]error{true: os.NewSyscallError("socket", syscall.EMFILE), false: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}
	tries := 0
	none := func(context.Context, string, string) (net.Conn, error) {
		tries++
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: lacks[tries%2 == 0]}
	}
	b := newStack(t, Options{Base: BaseOptions{Dial: none}})
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

// TestResetInsideARequest is the tracker's failure, although the body was not sent to its end.
func TestResetInsideARequest(t *testing.T) {
	tr := rawTracker(t, func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1<<10))
		reset(c)
	})
	for range 10 {
		if _, _, err := do(newPlain(t, BaseOptions{}), longUpload(t, tr.url)); ReasonOf(err) != Reset || !OutcomeUnknown(err) {
			t.Fatal(err)
		}
	}
}
