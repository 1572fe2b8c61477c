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
	"portico/test/tracker"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// book holds what clients asked for and were told.
type book struct {
	mu      sync.Mutex
	writes  map[string]*write
	count   map[verdict]int
	wrong   []string
	slowest time.Duration
}

// write is one request that changes something, found again everywhere by its id.
type write struct {
	id, op string
	said   verdict
	// made are the ids in the answer to a create.
	made []int
}

func newBook() *book { return &book{writes: map[string]*write{}, count: map[verdict]int{}} }

// begin notes a write before it is sent.
func (b *book) begin(w *write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes[w.id] = w
}

// end notes what a client was told.
func (b *book) end(w *write, said verdict, made []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.said, w.made = said, made
}

func (b *book) answered(v verdict, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[v]++
	b.slowest = max(b.slowest, took)
}

// violation notes something that must not be.
func (b *book) violation(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// entry is a line of the tracker's journal.
type entry struct {
	Op        string `json:"op"`
	RequestID string `json:"request_id"`
	IDs       []int  `json:"ids"`
}

// compare holds every write of a client against the journal, and every entry of the journal against the clients.
func (b *book) compare(journal []entry) {
	done := map[string][]entry{}
	for _, e := range journal {
		done[e.RequestID] = append(done[e.RequestID], e)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, entries := range done {
		if w := b.writes[id]; w == nil || w.op != entries[0].Op {
			b.wrong = append(b.wrong, fmt.Sprintf("no client asked for this: %s %q", entries[0].Op, id))
		}
		if len(entries) > 1 {
			b.wrong = append(b.wrong, fmt.Sprintf("twice: %s %s was executed %d times", entries[0].Op, id, len(entries)))
		}
	}
	for id, w := range b.writes {
		entries := done[id]
		switch {
		case w.said == ok && len(entries) == 0:
			b.wrong = append(b.wrong, fmt.Sprintf("missing: %s %s was acknowledged and not executed", w.op, id))
		case w.said == refused && len(entries) > 0:
			b.wrong = append(b.wrong, fmt.Sprintf("false failure: %s %s was refused and executed", w.op, id))
		case w.said == ok && w.made != nil && !slices.Equal(w.made, entries[0].IDs):
			b.wrong = append(b.wrong, fmt.Sprintf("false answer: %s %s made %v, and the client was told %v", w.op, id, entries[0].IDs, w.made))
		}
	}
}

// register is one value in the tracker that a single client changes, so that every reading of it can be judged.
type register struct {
	mu sync.Mutex
	// id is that of the flag type or attachment.
	id    int
	acked int
	said  []verdict // by number
}

// next begins a change.
func (r *register) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, pending)
	return len(r.said) - 1
}

func (r *register) end(n int, v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said[n] = v; v == ok {
		r.acked = n
	}
}

// floor is the last acknowledged change: a reading that begins now must not show an older one.
func (r *register) floor() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acked
}

// judge tells what is wrong with a value that was read, empty if nothing. With late, a write whose outcome was unknown
// may have taken effect long after its client was told so.
func (r *register) judge(value string, floor int, late bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var n int
	if _, err := fmt.Sscanf(value, valueFormat, &n); err != nil || n >= len(r.said) {
		return fmt.Sprintf("wrong: %d holds %q, which no client wrote", r.id, value)
	}
	switch {
	case r.said[n] == refused:
		return fmt.Sprintf("false failure: %d shows change %d, which was refused", r.id, n)
	case n < floor && !(late && r.said[n] != ok):
		return fmt.Sprintf("stale: %d shows change %d (%s) after %d was acknowledged", r.id, n, r.said[n], floor)
	}
	return ""
}

// valueFormat is the description or summary that a register's change n writes.
const valueFormat = "change %d of this value"

// summary joins violations of a kind for people: the first of each class.
func (b *book) summary() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := map[string]int{}
	var lines []string
	for _, w := range b.wrong {
		class, _, _ := strings.Cut(w, ":")
		if seen[class]++; seen[class] <= 3 {
			lines = append(lines, "  "+w)
		}
	}
	for class, n := range seen {
		if n > 3 {
			lines = append(lines, fmt.Sprintf("  %s: %d in all", class, n))
		}
	}
	return strings.Join(lines, "\n")
}

// client speaks HTTP over one socket by hand. It never sends anything twice, so it knows what it has done.
type client struct {
	address string
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
	_, err := c.conn.Write(a.bytes())
	return err
}

func (a ask) bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: tracker.example\r\nUser-Agent: faults\r\n", a.method, a.path)
	if a.user != "" {
		fmt.Fprintf(&b, "X-BUGZILLA-API-KEY: %s\r\n", tracker.FixtureKeys()[a.user])
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
