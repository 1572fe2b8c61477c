package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"
)

// counted tells how many bytes have come.
type counted struct {
	net.Conn
	got *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.got.Add(int64(n))
	return n, err
}

// TestAnAnswerToNobody: a tracker says something between two requests on a kept connection, in the moment in which
// net/http already expects the answer to the second. That one must not get it.
func TestAnAnswerToNobody(t *testing.T) {
	const first, stray, second = "first", "stray", "right"
	speak := make(chan struct{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		answer := func(text string) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
		_, _ = http.ReadRequest(in)
		answer(first)
		<-speak
		answer(stray)
		_, _ = http.ReadRequest(in)
		answer(second)
		_, _ = io.Copy(io.Discard, in)
	}()
	var got atomic.Int64
	w := newBase(t, BaseOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return counted{conn, &got}, err
	}})
	get := func(ctx context.Context) (string, error) {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String(), http.NoBody)
		response, err := w.RoundTrip(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	if text, err := get(t.Context()); text != first || err != nil {
		t.Fatal(text, err)
	}
	before, spoken := got.Load(), false
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaderField: func(string, []string) {
		if spoken { // the head is in a buffer and not yet sent
			return
		}
		spoken = true
		close(speak)
		for got.Load() == before {
		}
	}})
	text, err := get(ctx)
	if !errors.Is(err, errForeign) || ReasonOf(err) != Reset {
		t.Errorf("the second request got %q, %v", text, err)
	}
}

// TestWhatCameBeforeIsForeign: also when net/http looks at it only after the request was sent.
func TestWhatCameBeforeIsForeign(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	conn := &tap{Conn: here, pause: time.Minute}
	defer conn.Close()
	say := func(text string) {
		go func() { _, _ = io.WriteString(there, text) }()
		_, _ = io.ReadFull(conn, make([]byte, len(text)))
	}
	say("the answer to the request before")
	conn.silent.Store(true) // as for a request that gets the connection
	say("and another one")
	if !conn.foreign() {
		t.Error("an answer to nothing is believed")
	}
	go func() { _, _ = io.ReadFull(there, make([]byte, len("asked"))) }()
	if _, err := io.WriteString(conn, "asked"); err != nil || !conn.foreign() {
		t.Errorf("what came before the request is believed, %v", err)
	}
	if say("the right one"); conn.foreign() {
		t.Error("the right answer is not believed")
	}
}
