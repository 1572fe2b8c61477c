package canary

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math/bits"
)

// looseDigest is a digest of a JSON text of any length that does not depend on the
// order of members and elements nor on white space: trackers order members at
// random, so that a digest of the bytes would never be the same twice
// (wire-facts.md section 2). It is the sum of the SHA-256 of all scalars, each with
// the member name before it, and of all brackets.
type looseDigest struct {
	token    hash.Hash
	begun    bool
	inString bool
	escaped  bool
	sum      [4]uint64
}

func newLooseDigest() *looseDigest { return &looseDigest{token: sha256.New()} }

// Write implements io.Writer and never fails.
func (d *looseDigest) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if d.inString {
			p = p[d.inside(p):]
		} else {
			d.outside(p[0])
			p = p[1:]
		}
	}
	return n, nil
}

// inside takes as much of a string as there is without a character that means
// something, or that character, and gives its length.
func (d *looseDigest) inside(p []byte) int {
	n := 1
	switch {
	case d.escaped:
		d.escaped = false
	case p[0] == '"':
		d.inString = false
	case p[0] == '\\':
		d.escaped = true
	default:
		n = plainLen(p)
	}
	d.token.Write(p[:n])
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

func (d *looseDigest) outside(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n':
	case ',':
		d.end()
	case '{', '}', '[', ']':
		d.end()
		d.take(c)
		d.end()
	default:
		d.inString = c == '"'
		d.take(c)
	}
}

func (d *looseDigest) take(c byte) {
	d.token.Write([]byte{c})
	d.begun = true
}

// end adds a token to the sum.
func (d *looseDigest) end() {
	if !d.begun {
		return
	}
	var one [sha256.Size]byte
	d.token.Sum(one[:0])
	d.token.Reset()
	d.begun = false
	var carry uint64
	for i := range d.sum {
		d.sum[i], carry = bits.Add64(d.sum[i], binary.LittleEndian.Uint64(one[8*i:]), carry)
	}
}

// text gives the digest of all that was written.
func (d *looseDigest) text() string {
	d.end()
	var all [sha256.Size]byte
	for i, part := range d.sum {
		binary.LittleEndian.PutUint64(all[8*i:], part)
	}
	return hex.EncodeToString(all[:])
}
