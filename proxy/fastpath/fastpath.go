package fastpath

import (
	"bytes"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Handler serves a request and returns true, or returns false and has written nothing. It keeps nothing of the request but strings. It waits for
// nothing but the client, by Flush, which sends the response: nothing can be written after it. A write deadline that it sets bounds how long the
// client may pause while it takes the response.
type Handler func(w http.ResponseWriter, r *http.Request) bool

// Filter reports whether the handler is to see a request, by its text. It must be quick.
type Filter func(request []byte) bool

const (
	// closeTime bounds how long responses may still be sent once a server closes their connections.
	closeTime = time.Second
	// maxDeadlineLag is how late a deadline may be moved. Moving it for every response costs more than routing the request.
	maxDeadlineLag = time.Second
	// maxPiece is the size up to which a response is sent in one write. The deadline is moved for each piece of a longer one.
	maxPiece = 128 << 10
)

// Listener wraps a listener so that handler is shown the requests of its connections first, if they pass filter. It is for plain HTTP/1.1: TLS
// must not be below it.
func Listener(inner net.Listener, filter Filter, handler Handler) net.Listener {
	return &listener{Listener: inner, filter: filter, handler: handler, requests: sync.Pool{New: newRequest}}
}

type listener struct {
	net.Listener
	filter   Filter
	handler  Handler
	requests sync.Pool

	mu sync.Mutex
	// closeBy is the write deadline of responses whose connections are closed.
	closeBy time.Time
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: accepted, listener: l, client: accepted.RemoteAddr().String()}, nil
}

// closeDeadline returns one deadline for all connections that are closed at about the same time, since a server closes them one
// after the other.
func (l *listener) closeDeadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.closeBy) > closeTime {
		l.closeBy = now.Add(closeTime)
	}
	return l.closeBy
}

// ConnState must be called from the hook of the same name of the http.Server, or no request takes the fast path.
func ConnState(c net.Conn, state http.ConnState) {
	if found := find(c); found != nil {
		found.idle = state == http.StateIdle // a request that net/http held already ends that without a read
	}
}

// LastUsed returns when the fast path last sent something on a connection, zero for never. net/http takes such a connection for idle.
func LastUsed(c net.Conn) time.Time {
	found := find(c)
	if found == nil || found.lastUsed.Load() == 0 {
		return time.Time{}
	}
	return time.Unix(0, found.lastUsed.Load())
}

// find returns the fast path's connection below a wrapped one, or nil.
func find(c net.Conn) *conn {
	for {
		if found, ok := c.(*conn); ok {
			return found
		}
		wrapper, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = wrapper.NetConn()
	}
}

// conn is one connection. The fields without a lock belong to the goroutine that net/http reads in.
type conn struct {
	net.Conn
	listener *listener
	client   string // its address
	// buffer is how much net/http reads while it holds nothing: the size of its buffer. It reads less behind bytes that it holds,
	// which may be the beginning of a request.
	buffer int
	// idle says that net/http waits for the next request, and idleTime for how long.
	idle     bool
	idleTime time.Duration
	// moved is when the fast path last moved the deadlines, zero where they are net/http's.
	moved time.Time

	// serving is held while a response is written; closing says that Close waits for that.
	serving  sync.Mutex
	closing  atomic.Bool
	lastUsed atomic.Int64 // in nanoseconds since 1970
}

// NetConn returns the connection below.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn. It serves requests until there is one for net/http.
func (c *conn) Read(p []byte) (int, error) {
	if c.buffer == 0 {
		c.buffer = len(p)
	}
	for {
		n, err := c.Conn.Read(p)
		switch {
		case err != nil || !c.idle:
			return n, err
		case len(p) == c.buffer && c.listener.filter(p[:n]) && c.serve(p[:n]):
			continue
		}
		c.idle = false
		if !c.moved.IsZero() {
			c.moved = time.Time{}
			_ = c.SetWriteDeadline(time.Time{})
		}
		return n, nil
	}
}

// serve returns false where the request is for net/http.
func (c *conn) serve(text []byte) bool {
	f := c.listener.requests.Get().(*fastRequest)
	defer c.listener.requests.Put(f)
	if !f.parse(text, c.client) {
		return false
	}
	f.conn = c
	c.serving.Lock()
	defer c.serving.Unlock()
	if !c.listener.handler(f, &f.request) {
		return false
	}
	_ = f.FlushError() // the next read finds out how it failed
	return true
}

// fastRequest is one request and its response. It is used again for others, so that one costs little to collect.
type fastRequest struct {
	request http.Request
	address url.URL
	values  []string // of the request's header

	header http.Header
	body   []byte
	status int
	pause  time.Duration
	conn   *conn // until the response is sent

	out bytes.Buffer
	// date is the text of its second, which most responses share with the one before.
	date   []byte
	second int64
}

const (
	// maxKept is the size in bytes above which buffers are not used again.
	maxKept = 64 << 10
	// defaultPause bounds the pauses of a client where the handler sets no write deadline.
	defaultPause = 30 * time.Second
)

func newRequest() any {
	return &fastRequest{header: http.Header{}, request: http.Request{
		Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Header: http.Header{},
	}}
}

// reset removes what the last request left.
func (f *fastRequest) reset() {
	if cap(f.body)+f.out.Cap() > maxKept {
		f.body, f.out = nil, bytes.Buffer{}
	}
	clear(f.header)
	clear(f.request.Header)
	clear(f.values)
	f.body, f.values, f.status, f.pause, f.request.Host = f.body[:0], f.values[:0], 0, defaultPause, ""
}

// parse reads a GET request, and returns false where text is not exactly one, or there is anything about it that net/http would not just read. Everything in the
// request is part of one copy of the text, which the connection overwrites.
func (f *fastRequest) parse(text []byte, client string) bool {
	f.reset()
	line, rest, _ := strings.Cut(string(text), "\r\n")
	target, ok := strings.CutSuffix(strings.TrimPrefix(line, "GET "), " HTTP/1.1")
	if !ok || !strings.HasPrefix(line, "GET /") || !isVisible(target, "") || strings.Contains(target, "#") || !f.parseTarget(target) {
		return false
	}
	f.request.URL, f.request.RequestURI, f.request.RemoteAddr = &f.address, target, client
	for rest != "\r\n" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, found := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !found || name == "" || !isAlphanumeric(name, "-_") || !isVisible(value, " \t") || !f.addField(textproto.CanonicalMIMEHeaderKey(name), value) {
			return false
		}
	}
	return f.request.Host != ""
}

func (f *fastRequest) parseTarget(target string) bool {
	path, query, asked := strings.Cut(target, "?")
	if isAlphanumeric(path, "-_.~/") && asked == (query != "") {
		f.address = url.URL{Path: path, RawQuery: query}
		return true
	}
	parsed, err := url.ParseRequestURI(target)
	if err == nil {
		f.address = *parsed
	}
	return err == nil
}

// addField returns false for a field that says something about the connection or about a body.
func (f *fastRequest) addField(name, value string) bool {
	switch name {
	case "Connection":
		if !strings.EqualFold(value, "keep-alive") {
			return false
		}
	case "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Expect", "Upgrade", "Http2-Settings", "Keep-Alive", "Pragma":
		return false
	case "Host":
		first := f.request.Host == ""
		f.request.Host = value
		return first && value != "" && isAlphanumeric(value, "-._:[]")
	}
	if others := f.request.Header[name]; others != nil {
		f.request.Header[name] = append(others, value)
		return true
	}
	f.values = append(f.values, value)
	at := len(f.values)
	f.request.Header[name] = f.values[at-1 : at : at]
	return true
}

// isVisible reports whether text consists of visible ASCII characters and those of besides.
func isVisible(text, besides string) bool {
	for i := range len(text) {
		if (text[i] <= ' ' || text[i] >= 0x7f) && strings.IndexByte(besides, text[i]) < 0 {
			return false
		}
	}
	return true
}

// isAlphanumeric reports whether text consists of ASCII letters and digits and of the characters of besides.
func isAlphanumeric(text, besides string) bool {
	for i := range len(text) {
		c := text[i]
		if letter := c | 0x20; (letter < 'a' || letter > 'z') && (c < '0' || c > '9') && strings.IndexByte(besides, c) < 0 {
			return false
		}
	}
	return true
}

// Header implements http.ResponseWriter.
func (f *fastRequest) Header() http.Header { return f.header }

// WriteHeader implements http.ResponseWriter.
func (f *fastRequest) WriteHeader(status int) {
	if f.status == 0 {
		f.status = status
	}
}

// Write implements http.ResponseWriter.
func (f *fastRequest) Write(p []byte) (int, error) {
	f.WriteHeader(http.StatusOK)
	f.body = append(f.body, p...)
	return len(p), nil
}

// SetWriteDeadline is for an http.ResponseController.
func (f *fastRequest) SetWriteDeadline(deadline time.Time) error {
	f.pause = time.Until(deadline)
	return nil
}

// FlushError sends the response, once. It is for an http.ResponseController.
func (f *fastRequest) FlushError() error {
	c := f.conn
	if c == nil {
		return nil
	}
	f.conn = nil
	return c.send(f.response(), f.pause)
}

// response returns the whole response as net/http would send it. It is valid until the fastRequest is used again.
func (f *fastRequest) response() []byte {
	if f.header["Content-Length"] == nil && f.status != http.StatusNotModified {
		f.header["Content-Length"] = []string{strconv.Itoa(len(f.body))}
	}
	if now := time.Now(); now.Unix() != f.second {
		f.date, f.second = now.UTC().AppendFormat(f.date[:0], http.TimeFormat), now.Unix()
	}
	f.out.Reset()
	f.write("HTTP/1.1 ", strconv.Itoa(f.status), " ", http.StatusText(f.status), "\r\n")
	f.writeHeader()
	f.out.WriteString("Date: ")
	f.out.Write(f.date)
	f.out.WriteString("\r\n\r\n")
	f.out.Write(f.body)
	return f.out.Bytes()
}

func (f *fastRequest) write(texts ...string) {
	for _, text := range texts {
		f.out.WriteString(text)
	}
}

// usualFields are the fields of nearly every response, in the order of net/http.
var usualFields = []string{
	"Access-Control-Allow-Headers", "Access-Control-Allow-Origin", "Age", "Cache-Control", "Cache-Status", "Content-Length", "Content-Type", "Etag",
	"Portico-Error", "Retry-After", "Vary", "X-Content-Type-Options", "X-Frame-Options", "X-Request-Id", "X-Xss-Protection",
}

// writeHeader writes the fields in their order, without sorting where there are only the usual ones.
func (f *fastRequest) writeHeader() {
	before, written := f.out.Len(), 0
	for _, name := range usualFields {
		if values := f.header[name]; len(values) == 1 && strings.IndexByte(values[0], '\r') < 0 && strings.IndexByte(values[0], '\n') < 0 {
			f.write(name, ": ", values[0], "\r\n")
			written++
		}
	}
	if written < len(f.header) {
		f.out.Truncate(before)
		_ = f.header.Write(&f.out) // a buffer takes everything
	}
}

// send sends a response, or closes the connection.
func (c *conn) send(response []byte, pause time.Duration) error {
	for len(response) > 0 {
		c.moveDeadlines(pause)
		n, err := c.Conn.Write(response[:min(len(response), maxPiece)])
		if err != nil {
			_ = c.Conn.Close()
			return err
		}
		response = response[n:]
	}
	return nil
}

func (c *conn) moveDeadlines(pause time.Duration) {
	now := time.Now()
	c.lastUsed.Store(now.UnixNano())
	if lag := now.Sub(c.moved); lag > min(maxDeadlineLag, pause/4) || c.idleTime > 0 && lag > c.idleTime/4 {
		c.moved = now
		_ = c.SetWriteDeadline(now.Add(pause))
		if c.idleTime > 0 {
			_ = c.Conn.SetReadDeadline(now.Add(c.idleTime))
		}
	}
	if c.closing.Load() { // Close may have set its deadline before this one
		_ = c.SetWriteDeadline(c.listener.closeDeadline())
	}
}

// SetReadDeadline implements net.Conn. The deadline of an idle connection is that of its next request.
func (c *conn) SetReadDeadline(deadline time.Time) error {
	if c.idle {
		c.idleTime = time.Until(deadline)
	}
	return c.Conn.SetReadDeadline(deadline)
}

// Close implements net.Conn. A response of the fast path is sent first, because net/http takes the connection for idle.
func (c *conn) Close() error {
	if !c.serving.TryLock() {
		c.closing.Store(true)
		_ = c.SetWriteDeadline(c.listener.closeDeadline())
		c.serving.Lock()
	}
	defer c.serving.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets net/http end its side of the connection first.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
