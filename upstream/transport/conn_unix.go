//go:build unix

package transport

import "syscall"

// silent reports whether the tracker has neither closed an idle connection nor sent anything over it. A response that no request has asked
// for must not be taken for that to the next request.
func (c *conn) silent() bool {
	nothing := c.raw == nil
	if !nothing {
		_ = c.raw.Control(func(fd uintptr) { nothing = isEmpty(fd) }) // after an error the connection is not used
	}
	return nothing
}

// await waits for the first byte, or for an end of the wait that reading will tell.
func (c *conn) await() {
	if c.raw == nil {
		return
	}
	waited := false
	_ = c.raw.Read(func(fd uintptr) bool {
		ready := waited || !isEmpty(fd)
		waited = true
		return ready
	})
}

// isEmpty reports whether a socket is open and has no bytes to read.
func isEmpty(fd uintptr) bool {
	var one [1]byte
	_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err == syscall.EAGAIN
}
