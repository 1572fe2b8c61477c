package bugzilla

import (
	"bytes"
	"io"

	"portico/upstream/transport"
)

// guard passes a long response on and keeps its last byte back until the JSON
// object is seen to be closed. A text that was cut short but framed well by
// HTTP would else look complete to the client.
type guard struct {
	body  io.ReadCloser
	scan  bracketScan
	held  byte
	holds bool
}

// newGuard starts in the state that head leaves.
func newGuard(head []byte, body io.ReadCloser) *guard {
	g := &guard{body: body}
	g.scan.feed(head)
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
	n, err := g.body.Read(p[start:])
	g.scan.feed(p[start : start+n])
	n += start
	switch {
	case err == io.EOF && !g.scan.closed():
		cut := bad("the tracker's response ends in the middle of its JSON")
		transport.Fail(g.body, cut)
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

// Close implements io.Closer.
func (g *guard) Close() error { return g.body.Close() }

// bracketScan follows JSON only as far as to know whether all brackets are
// closed; strings are skipped at the speed of bytes.IndexByte.
type bracketScan struct {
	depth    int
	inString bool
	escaped  bool
	begun    bool
}

func (s *bracketScan) feed(p []byte) {
	for len(p) > 0 {
		if s.inString {
			p = s.skipString(p)
			continue
		}
		switch p[0] {
		case '"':
			s.inString = true
		case '{', '[':
			s.depth++
			s.begun = true
		case '}', ']':
			s.depth--
		}
		p = p[1:]
	}
}

// skipString returns what follows the closing quote, or nothing. A quote is
// escaped when an odd number of backslashes stands before it, so nothing else of
// the string needs a look.
func (s *bracketScan) skipString(p []byte) []byte {
	if s.escaped {
		s.escaped = false
		p = p[1:]
	}
	for from := 0; ; {
		quote := bytes.IndexByte(p[from:], '"')
		if quote < 0 {
			s.escaped = endsInEscape(p)
			return nil
		}
		from += quote
		if !endsInEscape(p[:from]) {
			s.inString = false
			return p[from+1:]
		}
		from++
	}
}

// endsInEscape reports whether the byte after p is escaped.
func endsInEscape(p []byte) bool {
	trimmed := bytes.TrimRight(p, `\`)
	return (len(p)-len(trimmed))%2 == 1
}

func (s *bracketScan) closed() bool { return s.begun && s.depth == 0 && !s.inString }
