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
	process.Must(t, w.open())
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

// What follows are ways of a wire to fail. Each takes over at the begin of a request and tells whether the connection
// may go on.

// acceptAndClose and acceptAndReset end a connection before a byte has passed.
func acceptAndClose(*crossing) bool { return true }

func acceptAndReset(x *crossing) bool {
	reset(x.conn)
	return true
}

// blackhole takes everything and gives nothing.
func blackhole(x *crossing) bool {
	x.hold()
	return false
}

// blackholeAnswer carries the request out and keeps the answer.
func blackholeAnswer(x *crossing) bool {
	if x.answer(x.request()) != nil {
		x.hold()
	}
	return false
}

// toTracker reads a request and opens a connection to the tracker for it, which ends with do.
func toTracker(do func(x *crossing, request []byte, conn net.Conn) bool) func(*crossing) bool {
	return func(x *crossing) bool {
		request := x.request()
		conn := x.dial()
		if request == nil || conn == nil {
			return false
		}
		defer x.wire.drop(conn)
		return do(x, request, conn)
	}
}

// resetUp resets both sides after a part of the request.
func resetUp(x *crossing, request []byte, conn net.Conn) bool {
	_, _ = conn.Write(request[:x.wire.below(len(request))])
	reset(conn)
	reset(x.conn)
	return false
}

// resetUnread resets after some bytes of the request, the rest of which is unread.
func resetUnread(x *crossing) bool {
	_, _ = x.conn.Read(make([]byte, 1+x.wire.below(100)))
	reset(x.conn)
	return false
}

// cutAnswer carries the request out and gives a part of the answer to end.
func cutAnswer(end func(*crossing)) func(*crossing) bool {
	return func(x *crossing) bool {
		if answer := x.answer(x.request()); answer != nil {
			x.say(answer[:x.wire.below(len(answer))])
			end(x)
		}
		return false
	}
}

// finUp ends the sending side toward the tracker before the answer, as a client does that has nothing more to say.
func finUp(x *crossing, request []byte, conn net.Conn) bool {
	if _, err := conn.Write(request); err != nil {
		return false
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	answer := readAnswer(conn)
	return answer != nil && x.say(answer)
}

// halfRequest gives the tracker a part of the request and a FIN, and passes its answer on.
func halfRequest(x *crossing, request []byte, conn net.Conn) bool {
	finUp(x, request[:x.wire.below(len(request))], conn)
	return false
}

// inPieces sends both ways in pieces with pauses: single bytes, or a narrow band.
func inPieces(size, most int, pause time.Duration) func(*crossing) bool {
	return toTracker(func(x *crossing, request []byte, conn net.Conn) bool {
		if !pieces(conn, request, size, most, pause) {
			return false
		}
		answer := readAnswer(conn)
		return answer != nil && pieces(x.conn, answer, size, most, pause)
	})
}

// pieces writes up to most pieces, then the rest at once.
func pieces(conn net.Conn, data []byte, size, most int, pause time.Duration) bool {
	for range most {
		if len(data) <= size {
			break
		}
		if _, err := conn.Write(data[:size]); err != nil {
			return false
		}
		data = data[size:]
		time.Sleep(pause)
	}
	_, err := conn.Write(data)
	return err == nil
}

// late delays the request and the answer.
func late(x *crossing) bool {
	request := x.request()
	if request == nil {
		return false
	}
	time.Sleep(time.Duration(x.wire.below(700)) * time.Millisecond)
	answer := x.answer(request)
	time.Sleep(time.Duration(x.wire.below(700)) * time.Millisecond)
	return answer != nil && x.say(answer)
}

// spoken answers with bytes of its own, with or without carrying the request out.
func spoken(executed bool, say string) func(*crossing) bool {
	return func(x *crossing) bool {
		request := x.request()
		if request == nil {
			return false
		}
		if executed {
			x.answer(request)
		}
		x.say([]byte(say))
		x.finish()
		return false
	}
}

// twoAnswers gives the answer twice in one piece. A second one that comes after the next request has been sent could not
// be told from that request's own by a client.
func twoAnswers(x *crossing) bool {
	answer := x.answer(x.request())
	return answer != nil && x.say(bytes.Repeat(answer, 2))
}

// earlyAnswer refuses before the request has been read, and reads none of its body.
func earlyAnswer(x *crossing) bool {
	if _, err := readHead(x.in); err != nil {
		return false
	}
	x.say(withLength("400 Bad Request", "Connection: close\r\n", []byte(`{"error":true,"code":32000,"message":"too early","documentation":"d"}`)))
	x.finish()
	return false
}

// keptDrop ends a kept connection when its next request has come: before it is carried out or after.
func keptDrop(executed bool) func(*crossing) bool {
	return func(x *crossing) bool {
		if x.met == 0 {
			return x.pass()
		}
		if request := x.request(); executed {
			x.answer(request)
		}
		reset(x.conn)
		return false
	}
}

// idle408 says goodbye on an idle connection, as web servers do.
func idle408(x *crossing) bool {
	if !x.pass() {
		return false
	}
	time.Sleep(time.Duration(x.wire.below(4)) * time.Millisecond)
	x.say(withLength("408 Request Timeout", "Connection: close\r\n", []byte(`{"error":true,"code":1,"message":"idle"}`)))
	return false
}

// reshaped carries the request out and gives its answer in another form, then ends the connection.
func reshaped(form func(head string, body []byte) []byte) func(*crossing) bool {
	return func(x *crossing) bool {
		if answer := x.answer(x.request()); answer != nil {
			x.say(form(split(answer)))
			x.finish()
		}
		return false
	}
}

// interim puts many answers before the answer.
func interim(head string, body []byte) []byte {
	before := strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n", 40)
	return append([]byte(before+head), body...)
}

// unframed is an answer without a length, which ends with the connection, in the middle.
func unframed(_ string, body []byte) []byte {
	return append([]byte("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"), body[:len(body)/2]...)
}

// chunked spoils chunks: a bad size, or no end.
func chunked(after string) func(string, []byte) []byte {
	return func(_ string, body []byte) []byte {
		half := len(body) / 2
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s%s", half, body[:half], after)
	}
}

// withStatus gives the answer's body under another status.
func withStatus(line string) func(string, []byte) []byte {
	return func(_ string, body []byte) []byte { return withLength(line, "", body) }
}

// withBody gives another body under the answer's status.
func withBody(text string) func(string, []byte) []byte {
	return func(head string, _ []byte) []byte {
		status, _, _ := strings.Cut(strings.TrimPrefix(head, "HTTP/1.1 "), "\r\n")
		return withLength(status, "", []byte(text))
	}
}
