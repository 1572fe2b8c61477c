package canary

import (
	"bytes"
	"crypto/sha256"
	"hash"

	"portico/mapping"
)

// looseDigest is a digest of a JSON text of any length that does not depend on the
// order of members, on white space nor on how characters are escaped: trackers order
// members at random, so that a digest of the bytes would never be the same twice
// (wire-facts.md section 2). What belongs to an object stays with it, and elements
// count in their order, but where the shape says that it means nothing. From where
// a text is no JSON, or too deep, its bytes count.
//
// The digest of an object is made of the sum of those of its members, that of an
// array of those of its elements in turn: no more is kept than what is open.
type looseDigest struct {
	// levels[:depth] are open. Those beyond are kept for the next that are opened.
	levels []level
	depth  int
	shape  *shape
	top    [sha256.Size]byte
	next   expected
	in     tokenKind
	token  hash.Hash
	// literal is the beginning of a number or a word.
	literal []byte
	escape  escapes
}

// Digest makes the Reply.Digest of an answer of any length that is written to it.
type Digest struct {
	loose *looseDigest
	size  int64
}

// NewDigest begins one of an answer to an operation, which says what the order of
// lists means.
func NewDigest(operation mapping.Operation) *Digest {
	return &Digest{loose: newLooseDigest(shapes[operation])}
}

// Write implements io.Writer and never fails.
func (d *Digest) Write(p []byte) (int, error) {
	d.size += int64(len(p))
	return d.loose.Write(p)
}

// Payload is what is compared of all that was written.
func (d *Digest) Payload() Payload { return Payload{Size: d.size, SHA256: d.loose.text()} }

// mostDeep is how many levels are told apart. Trackers refuse what is deeper.
const mostDeep = 512

// tokenKind is what is being read.
type tokenKind byte

const (
	inNothing tokenKind = 0
	inLiteral tokenKind = 'l'
	// inFraction is a literal that turned out to be a number with a point or an exponent.
	inFraction tokenKind = 'f'
	inText     tokenKind = 't'
	inName     tokenKind = 'n'
	inRest     tokenKind = 'r' // what is no JSON, to the end
)

// expected is what may come next.
type expected byte

const (
	aValue expected = iota
	aValueOrEnd
	aName
	aNameOrEnd
	aColon
	aCommaOrEnd
	noMore
)

func newLooseDigest(shape *shape) *looseDigest {
	return &looseDigest{token: sha256.New(), shape: shape}
}

// Write implements io.Writer and never fails.
func (d *looseDigest) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		switch d.in {
		case inRest:
			d.token.Write(p)
			return n, nil
		case inText, inName:
			p = p[d.inside(p):]
		default:
			d.outside(p[0])
			p = p[1:]
		}
	}
	return n, nil
}

// inside takes as much of a string as there is without a character that means
// something, or that character, and gives its length.
func (d *looseDigest) inside(p []byte) int {
	switch {
	case d.escape.open() || p[0] == '\\':
		d.take(d.escape.add(p[0]))
		return 1
	case p[0] == '"':
		d.take(d.escape.end())
		d.endText()
		return 1
	}
	n := plainLen(p)
	d.take(d.escape.end())
	d.take(p[:n])
	return n
}

// plainLen is how much of p has neither quotes nor backslashes.
func plainLen(p []byte) int {
	if i := bytes.IndexByte(p, '"'); i >= 0 {
		p = p[:i]
	}
	if i := bytes.IndexByte(p, '\\'); i >= 0 {
		p = p[:i]
	}
	return len(p)
}

// longestName is up to where names mean something for the shape.
const longestName = 64

// take takes characters of a string.
func (d *looseDigest) take(p []byte) {
	d.token.Write(p)
	if d.in == inName {
		l := &d.levels[d.depth-1]
		l.short = append(l.short, p[:min(len(p), longestName+1-len(l.short))]...)
	}
}

// outside takes a character that is in no string.
func (d *looseDigest) outside(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n':
		d.endLiteral()
	case '"', '{', '}', '[', ']', ':', ',':
		d.endLiteral()
		if !d.mark(c) {
			d.begin(inRest)
			d.token.Write([]byte{c})
		}
	default:
		switch {
		case d.in == inLiteral:
		case d.takesValue():
			d.begin(inLiteral)
			d.literal = d.literal[:0]
		default:
			d.begin(inRest)
		}
		d.token.Write([]byte{c})
		if d.in == inLiteral && len(d.literal) <= longestNumber {
			d.literal = append(d.literal, c)
		}
	}
}

func (d *looseDigest) takesValue() bool { return d.next == aValue || d.next == aValueOrEnd }

// mark takes a character that means something, false where it has no place.
func (d *looseDigest) mark(c byte) bool {
	kind := byte(0)
	if d.depth > 0 {
		kind = d.levels[d.depth-1].kind
	}
	switch {
	case c == '"' && (d.next == aName || d.next == aNameOrEnd):
		d.levels[d.depth-1].short = d.levels[d.depth-1].short[:0]
		d.begin(inName)
	case c == '"' && d.takesValue():
		d.begin(inText)
	case (c == '{' || c == '[') && d.takesValue() && d.depth < mostDeep:
		d.open(c)
	case c == '}' && kind == '{' && (d.next == aNameOrEnd || d.next == aCommaOrEnd),
		c == ']' && kind == '[' && (d.next == aValueOrEnd || d.next == aCommaOrEnd):
		d.close()
	case c == ':' && d.next == aColon, c == ',' && d.next == aCommaOrEnd && kind == '[':
		d.next = aValue
	case c == ',' && d.next == aCommaOrEnd:
		d.next = aName
	default:
		return false
	}
	return true
}
