package mapping

import (
	"encoding/base64"
	"encoding/binary"
	"hash"
)

const (
	stageText = 32 << 10 // bytes of text that are decoded, hashed and written at a time; a multiple of 4
	stageRaw  = stageText / 4 * 3

	quadInvalid = 0xff000000 // marks a character outside the alphabet
)

// quadValues holds for each place in a group of four characters what the character adds to the 24 bits of the group.
var quadValues = makeQuadValues()

func makeQuadValues() *[4][256]uint32 {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var t [4][256]uint32
	for place := range t {
		for c := range t[place] {
			t[place][c] = quadInvalid
		}
		for v, c := range []byte(alphabet) {
			t[place][c] = uint32(v) << (18 - 6*place)
		}
	}
	return &t
}

// quad decodes the four characters in the low bytes of v, the first one lowest.
func quad(t *[4][256]uint32, v uint64) uint32 {
	return t[0][byte(v)] | t[1][byte(v>>8)] | t[2][byte(v>>16)] | t[3][byte(v>>24)]
}

// decodeQuads decodes whole groups of src until one holds a character outside the alphabet, and returns how many
// characters it took. Decoding is the scan for the end of the string at the same time, as a quote is outside the
// alphabet. dst must have room for the result and two bytes more.
func decodeQuads(dst, src []byte) int {
	t, n := quadValues, 0
	for len(src) >= 8 && len(dst) >= 8 {
		v := binary.LittleEndian.Uint64(src)
		a, b := quad(t, v), quad(t, v>>32)
		if (a|b)&quadInvalid != 0 {
			break
		}
		binary.BigEndian.PutUint64(dst, uint64(a)<<40|uint64(b)<<16)
		src, dst, n = src[8:], dst[6:], n+8
	}
	for len(src) >= 4 {
		a := quad(t, uint64(binary.LittleEndian.Uint32(src)))
		if a&quadInvalid != 0 {
			break
		}
		dst[0], dst[1], dst[2] = byte(a>>16), byte(a>>8), byte(a)
		src, dst, n = src[4:], dst[3:], n+4
	}
	return n
}

// base64Stage takes base64 text in pieces, and sends it on in canonical form to a spool, and decoded to a hash.
type base64Stage struct {
	out    *blobSpool
	hash   hash.Hash
	exact  bool // nothing is repaired: a text that is not canonical is refused
	size   int64
	quad   [4]byte // characters of a group that is not complete yet
	chars  int     // how many there are
	pads   int     // how many '=' came after them
	filled int     // of text
	text   [stageText]byte
	raw    [stageRaw + 8]byte
}

// begin starts a new text.
func (e *base64Stage) begin(out *blobSpool, exact bool) {
	e.out, e.exact = out, exact
	e.size, e.chars, e.pads, e.filled = 0, 0, 0, 0
	e.hash.Reset()
}

// bulk takes the whole groups at the start of p and returns how many characters these are. It takes none while a
// group begun by push is incomplete.
func (e *base64Stage) bulk(p []byte) (int, error) {
	if e.chars > 0 {
		return 0, nil
	}
	taken := 0
	for {
		piece := p[taken:min(len(p), taken+stageText-e.filled)]
		n := decodeQuads(e.raw[e.filled/4*3:], piece)
		copy(e.text[e.filled:], piece[:n])
		e.filled += n
		taken += n
		if e.filled < stageText {
			return taken, nil
		}
		if err := e.flush(0); err != nil {
			return taken, err
		}
	}
}

// push takes one character. A kind other than zero says that it was not taken, and why.
func (e *base64Stage) push(c rune) (SyntaxKind, error) {
	switch {
	case c == '\r' || c == '\n' || c == ' ' || c == '\t':
		if e.exact {
			return SyntaxBase64Alphabet, nil
		}
		return 0, nil
	case c == '=':
		if e.chars < 2 || e.chars+e.pads == 4 {
			return SyntaxBase64Padding, nil
		}
		e.pads++
		return 0, nil
	case c > 0x7f || quadValues[0][c] == quadInvalid:
		return SyntaxBase64Alphabet, nil
	case e.pads > 0:
		return SyntaxBase64Padding, nil
	}
	e.quad[e.chars] = byte(c)
	if e.chars++; e.chars < 4 {
		return 0, nil
	}
	e.chars = 0
	_, err := e.bulk(e.quad[:])
	return 0, err
}

// canonical tells whether the text so far, taken as the whole, needs no repair at its end.
func (e *base64Stage) canonical() bool {
	switch {
	case e.chars+e.pads == 0:
		return true
	case e.chars+e.pads != 4:
		return false
	}
	group, _ := e.lastGroup()
	return e.quad[e.chars-1] == group[e.chars-1]
}

// lastGroup is the incomplete group as it should be spelt, and what it means: padded, and with zero in the bits beyond
// the last byte, as RFC 4648 (section 3.5) asks of an encoder.
func (e *base64Stage) lastGroup() (group [4]byte, raw []byte) {
	copy(group[copy(group[:], e.quad[:e.chars]):], "AAA")
	raw = make([]byte, 8)
	decodeQuads(raw, group[:])
	raw = raw[:e.chars-1]
	base64.StdEncoding.Encode(group[:], raw)
	return group, raw
}

// finish completes the text and sends on what is left of it.
func (e *base64Stage) finish() (SyntaxKind, error) {
	switch {
	case e.chars == 1, e.exact && !e.canonical():
		return SyntaxBase64Length, nil
	case e.chars == 0:
		return 0, e.flush(0)
	}
	group, raw := e.lastGroup()
	copy(e.raw[e.filled/4*3:], raw)
	e.filled += copy(e.text[e.filled:], group[:])
	return 0, e.flush(4 - e.chars)
}

// flush sends on what is staged. The last drop bytes come from padding and do not count.
func (e *base64Stage) flush(drop int) error {
	raw := e.raw[:e.filled/4*3-drop]
	e.size += int64(len(raw))
	e.hash.Write(raw) // never fails (hash.Hash)
	return e.flushText()
}

// flushText sends on the staged text alone.
func (e *base64Stage) flushText() error {
	text := e.text[:e.filled]
	e.filled = 0
	return e.out.write(text)
}

// giveUp sends on the characters taken so far as they came, because the text turned out not to be base64.
func (e *base64Stage) giveUp() error {
	if err := e.flushText(); err != nil {
		return err
	}
	return e.out.write(append(e.quad[:e.chars:4], "=="[:e.pads]...))
}
