package fastpath

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"portico/mapping"
	"portico/proxy"
	"portico/upstream"
)

// Nothing of one request is seen by the next one that uses the same fastRequest.
func TestRequestsAreReset(t *testing.T) {
	f := newRequest().(*fastRequest)
	if !f.parse([]byte("GET /a?x=y HTTP/1.1\r\nHost: one\r\nX-Bugzilla-Api-Key: secret\r\n\r\n"), "client") {
		t.Fatal("not read")
	}
	f.Header().Set("Set-Cookie", "secret")
	f.WriteHeader(http.StatusTeapot)
	_, _ = f.Write([]byte("secret"))
	if _ = f.SetWriteDeadline(time.Now().Add(time.Minute)); f.pause > time.Minute || f.pause < time.Second {
		t.Errorf("the client may pause for %s", f.pause)
	}
	f.response()
	if !f.parse([]byte("GET /b HTTP/1.1\r\nHost: two\r\n\r\n"), "other") {
		t.Fatal("not read")
	}
	r := &f.request
	if len(r.Header) > 0 || r.Host != "two" || r.URL.String() != "/b" || r.RequestURI != "/b" || r.RemoteAddr != "other" {
		t.Errorf("got %+v", r)
	}
	if len(f.Header()) > 0 || f.status != 0 || f.pause != defaultPause {
		t.Errorf("got %+v", f)
	}
	_, _ = f.Write([]byte("fine"))
	f.date, f.second = []byte("secret: the time of another second"), 1
	if response := string(f.response()); strings.Contains(response, "secret") || !strings.HasPrefix(response, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("got %s", response)
	}
}

// One huge response does not stay in memory.
func TestHugeResponsesAreNotKept(t *testing.T) {
	f := newRequest().(*fastRequest)
	_, _ = f.Write(make([]byte, maxKept))
	f.response()
	f.reset()
	if cap(f.body)+f.out.Cap() > maxKept {
		t.Errorf("%d and %d bytes are kept", cap(f.body), f.out.Cap())
	}
}

// A field that could end the head is written as net/http writes it.
func TestFieldsAreWrittenAsByNetHTTP(t *testing.T) {
	for _, header := range []http.Header{
		{"Etag": {"x"}, "Age": {"1"}},
		{"Etag": {"x\r\nEvil: y"}},
		{"Etag": {"x\nEvil: y"}},
		{"Etag": {"x"}, "Other": {"1", "2"}},
		{"Age": {"1", "2"}},
	} {
		f := newRequest().(*fastRequest)
		f.header = header
		f.writeHeader()
		var want bytes.Buffer
		_ = header.Write(&want) // a buffer takes everything
		if f.out.String() != want.String() {
			t.Errorf("got %q, want %q", f.out.String(), want.String())
		}
	}
}

// Whatever the fast path reads as a request, net/http reads as the same one.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"GET /rest/flag_type/P HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /rest/flag_type/A%2FB%20c/d%21!?a=b HTTP/1.1\r\nHost: x:80\r\nAccept: a\r\naccept:b \r\n\r\n",
		"GET //x?y=z? HTTP/1.1\r\nHost: [::1]\r\nConnection: Keep-Alive\r\nX_y: 1\r\n\r\n",
		"GET /? HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n",
		"GET /a#b HTTP/1.1\r\nHost: x\r\nTE: z\r\nUser-Agent:\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: x\r\nPragma: no-cache\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: x\r\n",
		"POST /a HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://y/a HTTP/1.1\r\nHost: x\r\n\r\n",
		"/a HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	used := newRequest().(*fastRequest)
	f.Fuzz(func(t *testing.T, text []byte) {
		if !used.parse(text, "client") {
			return
		}
		got := &used.request
		reader := bufio.NewReader(bytes.NewReader(text))
		want, err := http.ReadRequest(reader)
		if err != nil || want.Close || want.ContentLength != 0 || reader.Buffered() > 0 {
			t.Fatalf("net/http takes %q for %+v, %v", text, want, err)
		}
		if got.Method != want.Method || got.RequestURI != want.RequestURI || got.Host != want.Host || got.Proto != want.Proto ||
			*got.URL != *want.URL || got.URL.EscapedPath() != want.URL.EscapedPath() || !reflect.DeepEqual(got.Header, want.Header) {
			t.Errorf("%q is\n%+v, net/http has\n%+v", text, got, want)
		}
	})
}

// A response that is sent in several writes arrives whole. A connection that is being closed has little time for one, and net/http gets a connection
// without the deadline of the last one.
func TestWriteDeadlines(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(20 * closeTime))
	c := &conn{Conn: server, listener: &listener{filter: func([]byte) bool { return false }}}
	want, got := make([]byte, 3*maxPiece+1), make(chan []byte)
	for i := range want {
		want[i] = byte(i % 251)
	}
	go func() {
		text := make([]byte, len(want))
		n, _ := io.ReadFull(client, text)
		got <- text[:n]
	}()
	c.send(want, time.Hour)
	if !bytes.Equal(<-got, want) {
		t.Error("the response is another one")
	}
	_ = c.SetWriteDeadline(time.Unix(1, 0)) // as if the time for that response was over
	go func() { _, _ = io.WriteString(client, "POST / HTTP/1.1\r\n\r\n") }()
	c.idle = true
	_, _ = c.Read(make([]byte, 1024))
	go func() { _, _ = client.Read(make([]byte, 1)) }()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Errorf("net/http cannot write: %v", err)
	}
	c.closing.Store(true)
	ended := make(chan struct{})
	go func() {
		c.send(want, time.Hour)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(20 * closeTime):
		t.Error("a response that the client does not take keeps a connection from being closed")
	}
	if _, err := server.Write(nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("another response could follow what was not sent whole: %v", err)
	}
}

// However many clients read nothing of their responses, closing their connections takes closeTime and not that for each.
func TestCloseTimeIsShared(t *testing.T) {
	const many = 20
	inner, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	outer, stuck := Listener(inner, nil, nil), make(chan *conn, many)
	for range many {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		accepted, err := outer.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := accepted.(*conn)
		c.serving.Lock()
		go func() {
			defer c.serving.Unlock()
			stuck <- c
			_ = c.send(make([]byte, 64<<20), time.Hour)
		}()
	}
	start := time.Now()
	for range many {
		_ = (<-stuck).Close() // the response that failed has closed it already
	}
	if took := time.Since(start); took > 10*closeTime {
		t.Errorf("it took %v", took)
	}
}

var text = []byte(strings.Repeat("x", 2500))

// local has every response in memory.
type local struct{ upstream.Tracker }

func (local) Peek(context.Context, upstream.Caller, mapping.FlagTypesRequest) (mapping.Reply, error) {
	document := mapping.NewDocument(text)
	document.ETag = `"0123456789abcdef"`
	return mapping.Reply{Document: document, Cache: &mapping.CacheInfo{Hit: true, TTL: time.Minute, Detail: "local"}}, nil
}

// sink takes what a connection sends.
type sink struct {
	net.Conn
	taken int
}

func (s *sink) Write(p []byte) (int, error) {
	s.taken += len(p)
	return len(p), nil
}

func (*sink) SetWriteDeadline(time.Time) error { return nil }

// cachedRead returns a function that serves one cached read, behind the read of its connection.
func cachedRead(t testing.TB, log slog.Handler) func() {
	server, err := proxy.New(proxy.Options{Tracker: local{}, Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	request := []byte("GET /rest/flag_type/TestProduct?Bugzilla_api_key=0123456789012345678901234567890123456789 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")
	f, client := newRequest().(*fastRequest), new(sink)
	c := &conn{Conn: client}
	return func() {
		f.conn, client.taken = c, 0
		if !f.parse(request, "127.0.0.1:1234") || !server.ServeAtOnce(f, &f.request) || client.taken < len(text) || f.status != 200 {
			t.Fatal(f.status)
		}
	}
}

// BenchmarkCachedRead is what one cached read costs, with its log line in a file.
func BenchmarkCachedRead(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	serve := cachedRead(b, proxy.LogHandler(file, func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) }))
	b.ReportAllocs()
	for b.Loop() {
		serve()
	}
}
