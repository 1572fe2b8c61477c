package proxy

import (
	"net"
	"syscall"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT of tcp(7), which package syscall does not know.
const tcpNotSentLowat = 25

// boundUnsent lets the system take no more for a connection than it will soon send. What waits in a buffer of
// megabytes looks as if a slow client had taken it: for minutes then nothing would go on, and the client would be taken for
// one that has stopped. What is on its way is not bounded, so fast clients are as fast as before.
func boundUnsent(c net.Conn) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		if wrapper, wraps := c.(interface{ NetConn() net.Conn }); wraps {
			boundUnsent(wrapper.NetConn())
		}
		return
	}
	// A system that does not know the option only notices progress later. The listener cannot have it for all: one of Go's
	// speaks MPTCP, and connections that do not would have it from nowhere.
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, maxUnsent)
		})
	}
}
