package tracker

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// deliver sends the answer to a request, or fails as a fault says.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request, p plan) {
	f, hit := s.faults.pick(p.op)
	if !hit {
		s.send(w, r, p.run())
		return
	}
	switch f.Kind {
	case FaultError500, FaultHTML200, FaultEmpty200, FaultInternal, FaultHangBefore, FaultResetBefore, FaultBadStatus:
		s.failBefore(w, r, f)
	default:
		s.failAfter(w, r, f, p.run())
	}
}

// send writes an answer: with a length, or chunked as the real server does. Before that it reads what is left of the request, as web
// servers do: a connection that is closed with an unread body is reset, and the client loses the answer.
func (s *Server) send(w http.ResponseWriter, r *http.Request, a *reply) {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	if a.dropped {
		if conn := hijack(w); conn != nil {
			_ = conn.Close()
		}
		return
	}
	if s.has(QuirkKeepaliveDrop) {
		if conn := hijack(w); conn != nil {
			a.sized = true
			say(conn, a.head(true), a.body)
			_ = conn.Close()
		}
		return
	}
	maps.Copy(w.Header(), a.header)
	if a.sized {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	} else if s.mojolicious() {
		// The end of the connection ends the body.
		w.Header().Set("Transfer-Encoding", "identity")
	}
	w.WriteHeader(a.status)
	if !a.sized && a.status != http.StatusNotModified {
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = w.Write(a.body)
}

// say writes on a connection; a client that is gone by then does not matter.
func say(conn net.Conn, parts ...[]byte) {
	for _, part := range parts {
		if _, err := conn.Write(part); err != nil {
			return
		}
	}
}

// failBefore answers in place of the operation.
func (s *Server) failBefore(w http.ResponseWriter, r *http.Request, f Fault) {
	a := newReply(http.StatusOK)
	switch f.Kind {
	case FaultError500:
		a = webServerPage(http.StatusInternalServerError)
	case FaultHTML200:
		a = webServerPage(http.StatusOK)
	case FaultEmpty200:
		a.header["Content-Type"], a.sized = nil, true
	case FaultInternal:
		success := map[string]int{http.MethodPost: http.StatusCreated}[r.Method]
		a = s.restReply(r, form{contentType: typeJSON}, outcome{err: internal("planted"), success: success})
	case FaultHangBefore:
		// Only when the request is read does the server notice that the client goes away.
		_, _ = io.Copy(io.Discard, r.Body)
		s.wait(r, 0)
		return
	case FaultResetBefore:
		reset(hijack(w))
		return
	case FaultBadStatus:
		if conn := hijack(w); conn != nil {
			say(conn, []byte("HTTP/1.1 banana split\r\nContent-Length: 0\r\n\r\n"))
			_ = conn.Close()
		}
		return
	}
	s.send(w, r, a)
}

// failAfter spoils the answer of an operation that has been executed.
func (s *Server) failAfter(w http.ResponseWriter, r *http.Request, f Fault, a *reply) {
	switch f.Kind {
	case FaultTruncateJSON:
		a.body = a.body[:len(a.body)/2]
	case FaultGzipLie:
		a.header.Set("Content-Encoding", "gzip")
	case FaultWrongContentType:
		a.header.Set("Content-Type", "text/plain")
	case FaultSlow:
		s.wait(r, orDefault(f.Delay, time.Second))
	default:
		if conn := hijack(w); conn != nil {
			s.failRaw(conn, r, f, a)
		}
		return
	}
	s.send(w, r, a)
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// failRaw does on the connection itself what net/http would not do. It closes the connection.
func (s *Server) failRaw(conn net.Conn, r *http.Request, f Fault, a *reply) {
	defer func() { _ = conn.Close() }()
	a.sized = true
	half := a.body[:len(a.body)/2]
	if f.Kind != FaultCloseAfterCommit {
		say(conn, a.head(f.Kind != FaultEndlessHeaders))
	}
	switch f.Kind {
	case FaultHangAfterHeaders:
		s.hold(conn)
	case FaultResetAfterHeaders:
		reset(conn)
	case FaultResetMidBody:
		say(conn, half)
		reset(conn)
	case FaultWrongLength:
		say(conn, half)
	case FaultDrip:
		s.drip(conn, a.body, orDefault(f.Delay, 50*time.Millisecond))
	case FaultEndlessHeaders:
		line := "X-More: " + strings.Repeat("more ", 200) + "\r\n"
		for s.running() {
			if _, err := conn.Write([]byte(line)); err != nil {
				return
			}
		}
	}
}

// drip writes byte by byte until the body, the client or the server ends.
func (s *Server) drip(conn net.Conn, body []byte, pause time.Duration) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i := range body {
		if _, err := conn.Write(body[i : i+1]); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-s.done:
			return
		}
	}
}

// hold keeps a connection open until the client closes it or the server ends.
func (s *Server) hold(conn net.Conn) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = conn.Read(make([]byte, 1))
	}()
	select {
	case <-gone:
	case <-s.done:
		_ = conn.Close()
		<-gone
	}
}

// wait pauses, at most until the client is gone or the server ends; a pause of 0 has no end of its own.
func (s *Server) wait(r *http.Request, pause time.Duration) {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-r.Context().Done():
	case <-s.done:
	}
}

func (s *Server) running() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// hijack takes the connection over; nil when that is not possible.
func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	return conn
}

// reset closes a connection so that the other side sees a reset.
func reset(conn net.Conn) {
	if conn == nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// head is the status line and the headers as bytes, with the empty line after them or without.
func (a *reply) head(complete bool) []byte {
	h := a.header.Clone()
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if a.sized {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	_ = h.Write(&b)
	if complete {
		b.WriteString("\r\n")
	}
	return []byte(b.String())
}
