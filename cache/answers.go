package cache

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"syscall"
)

// Bounds of one answer of Redis. The largest text is maxRemoteValue, the longest list
// has little more than maxIndexed items; whatever is far beyond does not come from a
// Redis that is well.
const (
	maxAnswerBytes = 4 * maxRemoteValue
	maxAnswerItems = 1 << 18
	maxAnswerDepth = 16
)

var errAnswer = errors.New("an answer of redis has no known form, or is larger than any that was asked for")

// boundedConn reads answers of Redis up to the first one that is beyond the bounds. The
// client makes room for as much as an answer announces, and a lie about that would end
// the process.
type boundedConn struct {
	net.Conn
	answers answers
	refused error
}

// bounded keeps a plain connection one that the client can look at before it uses it
// again: there are no retries, so one that has ended meanwhile would cost a command.
func bounded(conn net.Conn) net.Conn {
	if plain, ok := conn.(syscall.Conn); ok {
		return struct {
			*boundedConn
			syscall.Conn
		}{&boundedConn{Conn: conn}, plain}
	}
	return &boundedConn{Conn: conn}
}

// Read implements net.Conn.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.refused != nil {
		return 0, c.refused
	}
	n, err := c.Conn.Read(p)
	if c.refused = c.answers.take(p[:n]); c.refused != nil {
		return 0, c.refused
	}
	return n, err
}

// answers follows the framing of RESP2 and RESP3 and nothing else.
type answers struct {
	// line is the beginning of a line that has not ended, length how long it is so far.
	line   [24]byte
	length int
	// skip is how much of a text is still to come.
	skip int
	// left are how many parts are still to come of all that is open.
	left [maxAnswerDepth]int
	open int
	// size and items are what the present answer has, or announced.
	size, items int
}

// take follows the stream a little further. What texts hold is not looked at.
func (a *answers) take(p []byte) error {
	for len(p) > 0 {
		if a.skip > 0 {
			n := min(a.skip, len(p))
			if a.skip, p = a.skip-n, p[n:]; a.skip == 0 {
				a.done()
			}
			continue
		}
		end := bytes.IndexByte(p, '\n') + 1
		part := p
		if end > 0 {
			part = p[:end]
		}
		if a.length < len(a.line) {
			copy(a.line[a.length:], part)
		}
		a.length += len(part)
		a.size += len(part)
		if a.size > maxAnswerBytes {
			return errAnswer
		}
		if end > 0 && !a.begin() {
			return errAnswer
		}
		p = p[len(part):]
	}
	return nil
}

// begin reads a whole line, with which something begins or a short thing is said.
func (a *answers) begin() bool {
	kind, n, known := a.line[0], 0, true
	switch kind {
	case '$', '!', '=', '*', '~', '>', '%', '|':
		n, known = a.announced()
	}
	a.length = 0
	if !known {
		return false
	}
	switch kind {
	case '+', '-', ':', '_', ',', '#', '(':
		a.done()
		return true
	case '$', '!', '=':
		return a.text(n)
	case '*', '~', '>':
		return a.parts(n, n)
	case '%':
		return a.parts(n, 2*n)
	case '|': // what is said of the answer that follows
		return a.parts(n, 2*max(n, 0)+1)
	}
	return false
}

// announced gives the length that a line says; -1 stands for nothing at all.
func (a *answers) announced() (int, bool) {
	if a.length < len("*0\r\n") || a.length > len(a.line) || a.line[a.length-2] != '\r' {
		return 0, false
	}
	n, err := strconv.Atoi(string(a.line[1 : a.length-2]))
	return n, err == nil && n >= -1 && n <= maxAnswerBytes
}

func (a *answers) text(n int) bool {
	if n < 0 {
		a.done()
		return true
	}
	a.skip = n + len("\r\n")
	a.size += a.skip
	return a.size <= maxAnswerBytes
}

// parts begins something that holds others.
func (a *answers) parts(n, parts int) bool {
	if parts <= 0 {
		a.done()
		return true
	}
	a.items += parts
	if n > maxAnswerItems || a.items > maxAnswerItems || a.open == maxAnswerDepth {
		return false
	}
	a.left[a.open] = parts
	a.open++
	return true
}

// done ends one part, and all that it was the last part of.
func (a *answers) done() {
	for ; a.open > 0; a.open-- {
		a.left[a.open-1]--
		if a.left[a.open-1] > 0 {
			return
		}
	}
	a.size, a.items = 0, 0
}
