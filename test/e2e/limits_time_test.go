package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"portico/test/process"
	"strings"
	"testing"
	"time"
)

// drip sends a text in small pieces with pauses, until the other side has hung up or all is sent.
func drip(connection net.Conn, text string, pieces int, pause time.Duration) {
	size := (len(text) + pieces - 1) / pieces
	for text != "" {
		n := min(size, len(text))
		if _, err := io.WriteString(connection, text[:n]); err != nil {
			return
		}
		text = text[n:]
		time.Sleep(pause) // slowness itself is under test
	}
}

// A client that sends its head slowly is cut off after timeouts.header, however steadily it goes on. One that sends its body
// slowly is cut off when it pauses for timeouts.read, and not for the time that the whole takes while 500 bytes come in a second on average.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	behind := &witness{}
	p := startFacade(t, process.Listen(t, behind).String(), "TIMEOUTS_HEADER=4s", "TIMEOUTS_READ=4s") // a pause of 150 ms may become seconds on a busy machine
	const head = "POST /xmlrpc.cgi HTTP/1.1\r\nHost: portico.example\r\nConnection: close\r\nContent-Length: 20\r\n\r\n"
	longer := strings.Replace(head, ": 20", ": 20000", 1)
	upload := strings.Replace(longer, "/xmlrpc.cgi", "/rest/bug/1/attachment", 1) + `{"file_name":"f","data":"`
	for _, c := range []struct {
		name          string
		atOnce, after string
		pieces        int
		pause         time.Duration
		answer        string
		reaches       bool
	}{
		{"a head that drips", "", head + "01234567890123456789", 60, 100 * time.Millisecond, "400, code 32000", false},
		{"a body that comes slowly", longer, strings.Repeat("x", 20000), 30, 150 * time.Millisecond, "200", true},
		{"a body that stops", head + "0123", "", 1, 0, "408, code 200408", false},
		{"a body that drips", longer, strings.Repeat("x", 400), 400, 50 * time.Millisecond, "408, code 200408", false},
		{"an upload that drips", upload, strings.Repeat("A", 400), 400, 50 * time.Millisecond, "408, code 200408", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			connection, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
			must(t, err)
			defer connection.Close()
			must(t, connection.SetDeadline(time.Now().Add(30*time.Second)))
			if _, err := io.WriteString(connection, c.atOnce); err != nil {
				t.Fatal(err)
			}
			drip(connection, c.after, c.pieces, c.pause)
			answer := "closed"
			if response, err := http.ReadResponse(bufio.NewReader(connection), nil); err == nil {
				answer = describe(t, response)
			}
			if c.atOnce == "" && answer == "closed" { // where the line that was cut could be one, there is nothing to complain of
				answer = c.answer
			}
			if got := len(behind.take()); answer != c.answer || (got > 0) != c.reaches {
				t.Errorf("answered %s, want %s; %d requests reached the tracker", answer, c.answer, got)
			}
		})
	}
}

// A tracker that sends its callers elsewhere sends them alone: Portico follows no redirect, with credentials or without.
func TestRedirectsAreNeverFollowed(t *testing.T) {
	t.Parallel()
	elsewhere, visits := decoy(t)
	base := process.Listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	p := startFacade(t, base.String(), "TRACKERS_MAIN_DIALECT=bugzilla-5")
	for _, method := range []string{"GET", "POST"} {
		if got := p.do(t, ask{method: method, path: "/show_bug.cgi", user: "admin", body: "id=1"}); got.status != http.StatusTemporaryRedirect {
			t.Errorf("%s /show_bug.cgi: %d", method, got.status)
		}
	}
	for _, op := range seven() { // at which the breaker opens in the end
		if got := p.do(t, ask{method: op.method, path: "/rest" + op.path, user: "admin", body: op.body}); got.status < 500 {
			t.Errorf("%s %s: %d", op.method, op.path, got.status)
		}
	}
	if n := visits(); n != 0 {
		t.Errorf("another host was called %d times", n)
	}
}
