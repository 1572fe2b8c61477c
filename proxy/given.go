package proxy

import (
	"bytes"
	"strconv"
)

// given is what a connection gave to net/http and net/http may still hold in its buffer: a request is for the short way only if
// there is nothing before it. Its methods follow each other, whichever goroutine net/http reads in.
type given struct {
	text []byte
	// lost says that nobody can tell any more.
	lost bool
}

// mostGiven bounds what is kept to find the end of requests in. Longer ones are no reads of flag types.
const mostGiven = 8 << 10

// nothing tells whether net/http holds nothing.
func (g *given) nothing() bool { return !g.lost && len(g.text) == 0 }

// add takes note of what net/http gets. Now and then that is the first byte of a request, because net/http listens for the
// client's hanging up until an answer is out.
func (g *given) add(text []byte) {
	g.lost = g.lost || len(g.text)+len(text) > mostGiven
	if g.lost {
		g.text = nil
		return
	}
	g.text = append(g.text, text...)
}

// over takes one request off: net/http is through with it.
func (g *given) over() {
	const end = "\r\n\r\n"
	head, rest, found := bytes.Cut(g.text, []byte(end))
	switch {
	case !found && len(g.text) == 0:
	case !found || !endsThere(head):
		g.lost, g.text = true, nil
	default:
		g.text = append(g.text[:0], rest...)
	}
}

// endsThere tells whether a request is over with its head. net/http takes a bare line feed for the end of a line.
func endsThere(head []byte) bool {
	if bytes.Count(head, []byte("\n")) != bytes.Count(head, []byte("\r\n")) {
		return false
	}
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			return false
		}
		if !bytes.EqualFold(name, []byte("Content-Length")) {
			continue
		}
		if length, err := strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length != 0 {
			return false
		}
	}
	return true
}
