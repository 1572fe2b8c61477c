package bugzilla

import (
	"io"

	"portico/upstream/transport"
)

// guard passes a long response on and keeps its last byte back until the JSON
// object is seen to be closed. A text that was cut short but framed well by
// HTTP would else look complete to the client.
type guard struct {
	io.ReadCloser
	scan  jsonScan
	held  byte
	holds bool
}

// newGuard starts in the state that head leaves.
func newGuard(head []byte, body io.ReadCloser) *guard {
	g := &guard{ReadCloser: body}
	_, _ = g.scan.Write(head)
	return g
}

// Read implements io.Reader.
func (g *guard) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	start := 0
	if g.holds {
		p[0], start = g.held, 1
	}
	n, err := g.ReadCloser.Read(p[start:])
	_, _ = g.scan.Write(p[start : start+n])
	n += start
	switch {
	case err == io.EOF && !g.scan.closed():
		cut := bad("the tracker's response ends in the middle of its JSON")
		transport.Fail(g.ReadCloser, cut)
		return 0, cut
	case err == io.EOF:
		g.holds = false
		return n, io.EOF
	case n > 0:
		g.held, g.holds = p[n-1], true
		n--
	}
	return n, err
}
