//go:build unix

package transport

import (
	"errors"
	"syscall"
)

// silent reports whether the tracker has neither closed an idle connection nor sent anything over it. A response that no request has asked
// for must not be taken for that to the next request.
func (c *conn) silent() bool {
	if c.in.Buffered() > 0 {
		return false
	}
	over, ok := c.Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := over.SyscallConn()
	if err != nil {
		return false
	}
	var peeked error
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, peeked = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && errors.Is(peeked, syscall.EAGAIN)
}
