package canary

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// level is an object or an array that is open.
type level struct {
	kind  byte // { or [
	shape *shape
	// loose says that the order of what is in it means nothing: then sum is of all
	// that, and else inTurn.
	loose  bool
	sum    [4]uint64
	inTurn hash.Hash
	// name is the digest of the name of the member that comes, and short its beginning.
	name  [sha256.Size]byte
	short []byte
}

// begin begins a token.
func (d *looseDigest) begin(kind tokenKind) {
	d.in = kind
	d.token.Reset()
	d.token.Write([]byte{byte(kind)})
}

func (d *looseDigest) endLiteral() {
	if d.in != inLiteral {
		return
	}
	if kind, number := plainNumber(d.literal); kind != inNothing {
		d.begin(kind)
		d.token.Write(number)
	}
	d.in = inNothing
	d.value([sha256.Size]byte(d.token.Sum(nil)))
}

// longestNumber is up to where numbers of one value have one digest.
const longestNumber = 64

// plainNumber gives what all spellings of a number have in common, inNothing for what is
// no number or has one only. An integer is not the same as a fraction of its value.
func plainNumber(literal []byte) (kind tokenKind, number []byte) {
	integer, value := isInteger(literal), jsontext.Value(literal)
	switch {
	case integer && string(literal) != "-0", len(literal) > longestNumber, value.Kind() != '0' || !value.IsValid():
		return inNothing, nil
	case integer:
		return inLiteral, []byte("0")
	}
	return inFraction, []byte(decimal(string(literal)))
}

func (d *looseDigest) endText() {
	kind := d.in
	d.in = inNothing
	sum := [sha256.Size]byte(d.token.Sum(nil))
	if kind == inName {
		d.levels[d.depth-1].name, d.next = sum, aColon
		return
	}
	d.value(sum)
}

// open begins an object or an array.
func (d *looseDigest) open(kind byte) {
	inner := d.shape
	if d.depth > 0 {
		switch outer := &d.levels[d.depth-1]; outer.kind {
		case '{':
			inner = outer.shape.member(outer.short)
		default:
			inner = outer.shape.element()
		}
	}
	if d.depth == len(d.levels) {
		d.levels = append(d.levels, level{inTurn: sha256.New()})
	}
	l := &d.levels[d.depth]
	d.depth++
	l.inTurn.Reset()
	l.kind, l.shape, l.sum, l.loose = kind, inner, [4]uint64{}, kind == '{' || inner.anyOrder()
	d.next = aValueOrEnd
	if kind == '{' {
		d.next = aNameOrEnd
	}
}

// anyOrder tells whether the order of an array's elements means nothing.
func (s *shape) anyOrder() bool {
	return s != nil && (s.array == inAnyOrder || s.array == withoutOrder)
}

func (d *looseDigest) close() {
	d.depth--
	d.value(d.levels[d.depth].digest())
}

// digest is that of all that is in a level until now.
func (l *level) digest() [sha256.Size]byte {
	of := []byte{l.kind}
	if l.loose {
		for _, part := range l.sum {
			of = binary.LittleEndian.AppendUint64(of, part)
		}
	} else {
		of = l.inTurn.Sum(of)
	}
	return sha256.Sum256(of)
}

// value adds the digest of a value to what it belongs to.
func (d *looseDigest) value(one [sha256.Size]byte) {
	if d.depth == 0 {
		d.top, d.next = one, noMore
		return
	}
	l := &d.levels[d.depth-1]
	d.next = aCommaOrEnd
	if l.kind == '{' {
		one = sha256.Sum256(append(l.name[:len(l.name):len(l.name)], one[:]...))
	}
	if !l.loose {
		l.inTurn.Write(one[:])
		return
	}
	var carry uint64
	for i := range l.sum {
		l.sum[i], carry = bits.Add64(l.sum[i], binary.LittleEndian.Uint64(one[8*i:]), carry)
	}
}

// text gives the digest of all that was written.
func (d *looseDigest) text() string {
	d.endLiteral()
	if d.depth == 0 && d.next == noMore && d.in == inNothing {
		return hex.EncodeToString(d.top[:])
	}
	all := sha256.New() // it broke off, or is no JSON
	all.Write(d.top[:])
	for i := range d.depth {
		l := &d.levels[i]
		inside := l.digest()
		all.Write(inside[:])
		all.Write(l.name[:])
	}
	all.Write([]byte{byte(d.next), byte(d.in)})
	all.Write(d.token.Sum(nil))
	all.Write(d.escape.pending)
	return hex.EncodeToString(all.Sum(nil))
}
