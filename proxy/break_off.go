package proxy

import "net"

// breakOff ends the connection of an answer that broke off, so that a client which speaks HTTP/1.0 can tell. It takes the end of
// the connection for the end of an answer without a length, so the connection must not end, but break.
func (w *recorder) breakOff() {
	if !w.final || w.desk != nil || w.status == 0 || w.Header().Get("Content-Length") != "" {
		return
	}
	taken, _, err := w.control.Hijack()
	if err != nil {
		return // then net/http closes it
	}
	if socket := socketOf(taken); socket != nil {
		_ = socket.SetLinger(0)
		_ = socket.Close() // before TLS says good-bye
	}
	_ = taken.Close()
}

// socketOf finds the socket beneath a connection, nil where there is none.
func socketOf(c net.Conn) *net.TCPConn {
	for {
		switch known := c.(type) {
		case *net.TCPConn:
			return known
		case *conn:
			c = known.Conn
		case *secureConn:
			c = known.secure
		case interface{ NetConn() net.Conn }:
			c = known.NetConn()
		default:
			return nil
		}
	}
}
