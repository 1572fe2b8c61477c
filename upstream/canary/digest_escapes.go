package canary

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes undoes the escapes of a JSON string that comes in pieces. What is no
// escape, and half a surrogate pair, stays as it is, after a byte that no text has.
type escapes struct {
	pending []byte // an escape that is not complete yet
	high    rune   // the first half of a pair, 0 when there is none
	out     []byte
}

const noText = 0xff

// open tells whether the next byte belongs to an escape.
func (e *escapes) open() bool { return len(e.pending) > 0 }

// add takes the next byte of an escape, and gives the text that is complete by it.
func (e *escapes) add(c byte) []byte {
	e.out = e.out[:0]
	e.pending = append(e.pending, c)
	p := e.pending
	if len(p) < 2 || p[1] == 'u' && len(p) < 6 {
		return nil
	}
	if p[1] == 'u' {
		e.unit(p)
	} else {
		e.flush()
		if i := bytes.IndexByte([]byte(`"\/bfnrt`), p[1]); i >= 0 {
			e.out = append(e.out, "\"\\/\b\f\n\r\t"[i])
		} else {
			e.odd(p)
		}
	}
	e.pending = p[:0]
	return e.out
}

// unit takes a UTF-16 code unit.
func (e *escapes) unit(p []byte) {
	code, err := strconv.ParseUint(string(p[2:]), 16, 16)
	r := rune(code)
	switch {
	case err != nil:
		e.flush()
		e.odd(p)
	case e.high != 0 && utf16.DecodeRune(e.high, r) != utf8.RuneError:
		e.out = utf8.AppendRune(e.out, utf16.DecodeRune(e.high, r))
		e.high = 0
	case utf16.IsSurrogate(r) && r < 0xdc00:
		e.flush()
		e.high = r
	case utf16.IsSurrogate(r):
		e.flush()
		e.odd([]byte{byte(r >> 8), byte(r)})
	default:
		e.flush()
		e.out = utf8.AppendRune(e.out, r)
	}
}

func (e *escapes) odd(p []byte) { e.out = append(append(e.out, noText), p...) }

// flush writes the first half of a pair that has no second one.
func (e *escapes) flush() {
	if e.high != 0 {
		e.odd([]byte{byte(e.high >> 8), byte(e.high)})
		e.high = 0
	}
}

// end gives what is left where no escape follows.
func (e *escapes) end() []byte {
	e.out = e.out[:0]
	e.flush()
	return e.out
}
