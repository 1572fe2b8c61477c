package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"portico/mapping"
)

// Listener wraps a listener so that what net/http itself responds to requests that it cannot read, in plain text and before
// any handler runs, comes out as every other error does (docs/reference/clients.md duty 4). The server must have ConnState
// as its hook, or it rewrites errors of the first request of a connection only. Such a request has a line in the log too.
func Listener(inner net.Listener, logger *slog.Logger) net.Listener {
	return listener{Listener: inner, logger: logger}
}

// SecureListener is Listener with TLS below it: what net/http says by itself has to be changed before it is encrypted, so
// TLS cannot be left to net/http. timeout bounds a handshake. HTTP/2 needs a server that is told to speak it, and config must not
// offer it.
func SecureListener(inner net.Listener, logger *slog.Logger, config *tls.Config, timeout time.Duration) net.Listener {
	return listener{inner, logger, config, timeout}
}

type listener struct {
	net.Listener
	logger  *slog.Logger
	config  *tls.Config // nil without TLS
	timeout time.Duration
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	boundUnsent(accepted)
	if l.config == nil {
		return &conn{Conn: accepted, logger: l.logger}, nil
	}
	secure := tls.Server(accepted, l.config)
	return &secureConn{conn{Conn: secure, logger: l.logger}, secure, l.timeout}, nil
}

// ConnState is the hook of an http.Server that is served by Listener or SecureListener.
func ConnState(c net.Conn, state http.ConnState) {
	if ours, ok := c.(interface{ nextRequest() }); ok && state == http.StateIdle {
		ours.nextRequest()
	}
}

// maxRefusedBody bounds the time in which net/http reads what is left of a request that it has refused.
const maxRefusedBody = time.Second

// conn checks the first write of each response.
type conn struct {
	net.Conn
	logger    *slog.Logger
	responded atomic.Bool
}

func (c *conn) nextRequest() { c.responded.Store(false) }

// NetConn returns the connection below.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if !c.responded.Swap(true) {
		if status, plain := plainError(p); plain {
			_ = c.SetReadDeadline(time.Now().Add(maxRefusedBody))
			return len(p), c.refuse(c.Conn, status)
		}
	}
	return c.Conn.Write(p)
}

// CloseWrite lets net/http end its side of the connection first.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// secureConn is a conn that net/http asks for its TLS state.
type secureConn struct {
	conn
	secure  *tls.Conn
	timeout time.Duration
}

// ConnectionState implements what net/http looks for when a connection is not one of crypto/tls. It is called once and first,
// in the goroutine of the connection, so the handshake takes place here. A failed one shows again at the first read.
func (c *secureConn) ConnectionState() tls.ConnectionState {
	_ = c.SetDeadline(time.Now().Add(c.timeout))
	// The deadline bounds it; no context of the server reaches this place.
	if err := c.secure.HandshakeContext(context.Background()); err != nil {
		if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && record.Conn != nil { // a client that spoke plain HTTP
			_ = c.refuse(record.Conn, http.StatusBadRequest) // an error changes nothing: the connection is closed
		}
		_ = c.Close()
	}
	_ = c.SetDeadline(time.Time{})
	return c.secure.ConnectionState()
}

// plainError recognizes what net/http writes straight to a connection: a status line followed by just these two headers.
// No response of a handler looks like that, since it carries a date and a request id at least.
func plainError(p []byte) (status int, ok bool) {
	// That to an expectation that net/http does not know is the only one with other headers. Those of a Server have a request id, a long one
	// beyond what is written first.
	if len(p) > len("HTTP/1.0") && bytes.HasPrefix(p[len("HTTP/1.0"):], []byte(" 417 ")) && bytes.HasSuffix(p, []byte("\r\n\r\n")) &&
		!bytes.Contains(p, []byte("\r\n"+headerRequestID+":")) {
		return http.StatusExpectationFailed, true
	}
	line, rest, found := bytes.Cut(p, []byte("\r\n"))
	text, isResponse := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !found || !isResponse || len(text) < 3 ||
		!bytes.HasPrefix(rest, []byte("Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")) {
		return 0, false
	}
	status, err := strconv.Atoi(string(text[:3]))
	return status, err == nil
}

// refuse writes the whole response that a client gets instead, and a line of the log.
func (c *conn) refuse(to net.Conn, status int) error {
	failed := mapping.Refuse(mapping.CodeJSON, "The request could not be read as HTTP.")
	if status != http.StatusBadRequest {
		failed = mapping.Refuse(200000+status, "The request could not be read: %s.", http.StatusText(status))
	}
	if status == http.StatusRequestHeaderFieldsTooLarge {
		failed.Reason = mapping.ReasonTooLarge
	}
	body, id := errorBody(failed, mapping.DocumentationURL), requestID("")
	header := http.Header{
		"Connection": {"close"}, "Content-Length": {strconv.Itoa(len(body))}, "Content-Type": {typeJSON}, headerRequestID: {id},
	}
	setCommonHeaders(header)
	setErrorHeaders(header, failed)
	text := bytes.NewBufferString(fmt.Sprintf("HTTP/1.1 %d %s\r\n", status, http.StatusText(status)))
	_ = header.Write(text) // a buffer takes everything
	_, err := to.Write(append(append(text.Bytes(), "\r\n"...), body...))
	client, _, _ := net.SplitHostPort(to.RemoteAddr().String())
	c.logger.Info("request", "id", id, "client", client, "status", status, "reason", failed.Reason)
	return err
}
