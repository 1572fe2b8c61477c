package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// keys are the credentials of the fixture's users.
func keys() (map[string]string, error) {
	text, err := os.ReadFile("../wire/testdata/keys.json")
	if err != nil {
		return nil, err
	}
	var all map[string]string
	return all, json.Unmarshal(text, &all)
}

// client speaks HTTP over one socket by hand. It never sends anything twice, so it knows what it has done.
type client struct {
	address string
	keys    map[string]string
	conn    net.Conn
	in      *bufio.Reader
}

// ask is one request; body is JSON or nothing.
type ask struct{ method, path, user, id, body string }

// told is what came back: an answer, or an error of the socket.
type told struct {
	status int
	header http.Header
	body   []byte
	err    error
	took   time.Duration
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func (c *client) do(a ask) (t told) {
	start := time.Now()
	defer func() {
		t.took = time.Since(start)
		if t.err != nil || strings.EqualFold(t.header.Get("Connection"), "close") {
			c.close()
		}
	}()
	if t.err = c.send(a); t.err != nil {
		return t
	}
	response, err := c.response(a.method)
	if err != nil {
		return told{err: fmt.Errorf("read the head of the answer: %w", err)}
	}
	t.status, t.header = response.StatusCode, response.Header
	if response.Close {
		t.header.Set("Connection", "close")
	}
	if t.body, err = io.ReadAll(response.Body); err != nil {
		t.err = fmt.Errorf("read the answer: %w", err)
	}
	return t
}

// response reads the head of an answer. Interim answers, which only what passes through has, are left out.
func (c *client) response(method string) (*http.Response, error) {
	for {
		response, err := http.ReadResponse(c.in, &http.Request{Method: method})
		if err != nil || response.StatusCode >= http.StatusOK {
			return response, err
		}
	}
}

func (c *client) send(a ask) error {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.address, hangLimit)
		if err != nil {
			return err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(hangLimit)); err != nil {
		return err
	}
	_, err := c.conn.Write(a.bytes(c.keys))
	return err
}

func (a ask) bytes(keys map[string]string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: tracker.example\r\nUser-Agent: faults\r\n", a.method, a.path)
	if a.user != "" {
		fmt.Fprintf(&b, "X-BUGZILLA-API-KEY: %s\r\n", keys[a.user])
	}
	if a.id != "" {
		fmt.Fprintf(&b, "X-Request-Id: %s\r\n", a.id)
	}
	if a.body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(a.body))
	}
	b.WriteString("\r\n" + a.body)
	return b.Bytes()
}

// verdict is what a client may conclude from what it was told.
type verdict uint8

const (
	pending verdict = iota // nothing yet
	ok                     // it was done
	refused                // it was not done
	unknown                // Portico says that the outcome is unknown
	lost                   // the connection ended without an answer
)

func (v verdict) String() string {
	return [...]string{"pending", "acknowledged", "refused", "unknown", "lost"}[v]
}

// streams tells whether an answer is one of those that pass on to the client while the tracker still sends them. It may break
// off, since nothing else can be said once it has begun, and a client sees that: there is less than announced, or no last chunk.
func (t told) streams() bool {
	const head = 64 << 10 // what is waited for before anything is said
	length, err := strconv.Atoi(t.header.Get("Content-Length"))
	return t.status == http.StatusOK && (err != nil || length >= head)
}

// judge reads an answer. problem says what no answer may be.
func (t told) judge() (v verdict, problem string) {
	if t.err != nil {
		if timeout, is := errors.AsType[net.Error](t.err); is && timeout.Timeout() {
			return lost, "hang: no answer within " + hangLimit.String()
		}
		return lost, ""
	}
	var said struct {
		Error   any
		Code    *int
		Message string
	}
	if err := json.Unmarshal(t.body, &said); err != nil {
		return lost, fmt.Sprintf("shape: status %d and a body that is no JSON object: %.120q", t.status, t.body)
	}
	if t.status < 300 {
		if said.Error != nil {
			return lost, fmt.Sprintf("shape: an error under status %d: %.120q", t.status, t.body)
		}
		return ok, ""
	}
	if t.status < 400 || said.Error != true || said.Code == nil || said.Message == "" {
		return lost, fmt.Sprintf("shape: status %d without error, code and message: %.120q", t.status, t.body)
	}
	if !strings.Contains(t.header.Get("Portico-Error"), "outcome=unknown") {
		return refused, ""
	}
	if t.status != http.StatusGatewayTimeout {
		return unknown, fmt.Sprintf("shape: an unknown outcome with status %d", t.status)
	}
	return unknown, ""
}
