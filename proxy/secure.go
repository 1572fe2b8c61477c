package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// SecureListener is Listener with TLS beneath it: what net/http says by itself has to be put right before it is encrypted, so
// TLS cannot be left to net/http. A handshake may take as long as patience says. HTTP/2 needs a server that is told to speak
// it, and config must not offer it.
func SecureListener(inner net.Listener, config *tls.Config, patience time.Duration) net.Listener {
	return secureListener{Listener: inner, config: config, patience: patience, parting: &parting{}}
}

type secureListener struct {
	net.Listener
	config   *tls.Config
	patience time.Duration
	parting  *parting
}

// Accept implements net.Listener.
func (l secureListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	boundUnsent(accepted)
	secure := tls.Server(accepted, l.config)
	return &secureConn{conn: conn{Conn: secure, parting: l.parting}, secure: secure, patience: l.patience}, nil
}

// secureConn is a conn that net/http asks for its TLS state.
type secureConn struct {
	conn
	secure   *tls.Conn
	patience time.Duration
}

// ConnectionState implements what net/http looks for when a connection is not one of crypto/tls. It is called once and first,
// in the goroutine of the connection, so the handshake takes place here. A failed one shows again at the first read.
func (c *secureConn) ConnectionState() tls.ConnectionState {
	_ = c.SetDeadline(time.Now().Add(c.patience))
	// The deadline bounds it; no context of the server reaches this place.
	if err := c.secure.HandshakeContext(context.Background()); err != nil {
		c.refuse(err)
	}
	_ = c.SetDeadline(time.Time{})
	return c.secure.ConnectionState()
}

// refuse answers a client that spoke plain HTTP, in plain HTTP, and hangs up.
func (c *secureConn) refuse(err error) {
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && record.Conn != nil {
		_, _ = record.Conn.Write(jsonError(http.StatusBadRequest)) // nobody is left to tell
	}
	_ = c.Close()
}
