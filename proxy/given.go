package proxy

import (
	"bytes"
	"net/http"
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

// mayHold tells whether a word in small letters may be in what net/http holds.
func (g *given) mayHold(word string) bool {
	return g.lost || bytes.Contains(bytes.ToLower(g.text), []byte(word))
}

// over takes one request off, since net/http is through with it. A body is not looked for: what is taken off is never more
// than what net/http is through with, because every head ends like this, and what is left too much keeps the short way shut
// until the next request is over. Only net/http takes a bare line feed for the end of a line, too.
func (g *given) over() {
	if g.nothing() {
		return
	}
	head, rest, found := bytes.Cut(g.text, []byte("\r\n\r\n"))
	if !found || bytes.Count(head, []byte("\n")) != bytes.Count(head, []byte("\r\n")) {
		g.lost, g.text = true, nil
		return
	}
	g.text = append(g.text[:0], rest...)
}

// twoLengths tells whether a request may have said its length in both ways. Somebody on the way may have believed the other
// one, and takes what follows for a part of this request, so that nothing may follow (RFC 9112, section 6.1). net/http takes the
// one way and drops the header of the other; where the text is not at hand, every request in pieces is suspected.
func twoLengths(r *http.Request) bool {
	if len(r.TransferEncoding) == 0 {
		return false
	}
	address, ours := r.Context().Value(http.LocalAddrContextKey).(*localAddress)
	return !ours || address.conn.mayHold("content-length:")
}
