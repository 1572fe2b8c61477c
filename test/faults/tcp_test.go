package faults

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	"portico/test/process"
)

// wire is a connection between Portico and the tracker that can be made to misbehave. It takes requests apart, so that
// a fault meets a request and not a connection that happens to carry many.
type wire struct {
	tracker string
	address string
	// accept spoils a connection before anything is read; it tells whether it has.
	accept func(*crossing) bool
	// meet takes over in place of passing a request on; it tells whether the connection may go on.
	meet func(*crossing) bool
	// percent is how many are met.
	percent int

	mu       sync.Mutex
	rng      *rand.Rand
	listener net.Listener
	conns    map[net.Conn]struct{}
	closed   bool
	all      sync.WaitGroup
}

// crossing is one connection of Portico's.
type crossing struct {
	wire *wire
	conn net.Conn
	in   *bufio.Reader
	// met counts the requests on this connection before the present one.
	met int
}

func startWire(t testing.TB, tracker string, k kind, seed uint64) *wire {
	t.Helper()
	w := &wire{
		tracker: tracker, address: process.FreeAddress(t), accept: k.accept, meet: k.meet, percent: k.percent,
		rng: rand.New(rand.NewPCG(seed, 1)), conns: map[net.Conn]struct{}{},
	}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	return w
}

// open begins to listen; shut ends that, so that connections are refused.
func (w *wire) open() error {
	l, err := net.Listen("tcp", w.address)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.listener = l
	w.mu.Unlock()
	w.all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if w.keep(conn) {
				w.all.Go(func() { w.serve(conn) })
			}
		}
	})
	return nil
}

func (w *wire) shut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.listener.Close()
}

// cut resets every connection that there is.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		reset(conn)
	}
}

func (w *wire) end() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.shut()
	w.cut()
	w.all.Wait()
}

func (w *wire) keep(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		_ = conn.Close()
		return false
	}
	w.conns[conn] = struct{}{}
	return true
}

func (w *wire) drop(conn net.Conn) {
	_ = conn.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, conn)
}

// below gives a number from 0 to n-1.
func (w *wire) below(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(max(n, 1))
}

func (w *wire) serve(conn net.Conn) {
	defer w.drop(conn)
	x := &crossing{wire: w, conn: conn, in: bufio.NewReader(conn)}
	if w.accept != nil && w.below(100) < w.percent && w.accept(x) {
		return
	}
	for ; ; x.met++ {
		if _, err := x.in.Peek(1); err != nil {
			return
		}
		pass := (*crossing).pass
		if w.meet != nil && w.below(100) < w.percent {
			pass = func(x *crossing) bool { return w.meet(x) }
		}
		if !pass(x) {
			return
		}
	}
}

// request reads one request as it stands on the wire. nil is the end of the connection.
func (x *crossing) request() []byte {
	head, err := readHead(x.in)
	if err != nil {
		return nil
	}
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
	if err != nil {
		return nil
	}
	body := make([]byte, max(0, request.ContentLength))
	if _, err := io.ReadFull(x.in, body); err != nil {
		return nil
	}
	return append([]byte(head), body...)
}

// readHead reads up to the empty line and not a byte further.
func readHead(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		c, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		b.WriteByte(c)
		if c == '\n' && strings.HasSuffix(b.String(), "\r\n\r\n") {
			return b.String(), nil
		}
	}
}

// dial reaches the tracker.
func (x *crossing) dial() net.Conn {
	conn, err := net.DialTimeout("tcp", x.wire.tracker, 5*time.Second)
	if err != nil {
		return nil
	}
	if !x.wire.keep(conn) {
		return nil
	}
	return conn
}

// answer has the tracker carry a request out and gives its answer with a length, nil where there is no request.
func (x *crossing) answer(request []byte) []byte {
	if request == nil {
		return nil
	}
	conn := x.dial()
	if conn == nil {
		return nil
	}
	defer x.wire.drop(conn)
	if _, err := conn.Write(request); err != nil {
		return nil
	}
	return readAnswer(conn)
}

// readAnswer reads one answer and gives it with a length in place of chunks.
func readAnswer(conn net.Conn) []byte {
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil
	}
	response.Body, response.ContentLength, response.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	response.Header.Del("Connection")
	response.Close = false
	raw, err := httputil.DumpResponse(response, true)
	if err != nil {
		return nil
	}
	return raw
}

// pass does what a good wire does.
func (x *crossing) pass() bool {
	answer := x.answer(x.request())
	return answer != nil && x.say(answer)
}

func (x *crossing) say(parts ...[]byte) bool {
	for _, part := range parts {
		if _, err := x.conn.Write(part); err != nil {
			return false
		}
	}
	return true
}

// hold keeps the connection until Portico ends it.
func (x *crossing) hold() { _, _ = io.Copy(io.Discard, x.in) }

// finish sends a FIN and reads on.
func (x *crossing) finish() {
	if tcp, is := x.conn.(*net.TCPConn); is {
		_ = tcp.CloseWrite()
	}
	_ = x.conn.SetReadDeadline(time.Now().Add(time.Second))
	x.hold()
}

// reset ends a connection with a RST.
func reset(conn net.Conn) {
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// split parts an answer into head, with its empty line, and body.
func split(answer []byte) (head string, body []byte) {
	i := bytes.Index(answer, []byte("\r\n\r\n"))
	if i < 0 {
		return string(answer), nil
	}
	return string(answer[:i+4]), answer[i+4:]
}

// withLength makes an answer of a status line, headers and body.
func withLength(status, headers string, body []byte) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", status, headers, len(body), body)
}
