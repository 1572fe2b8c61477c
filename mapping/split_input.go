package mapping

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

const splitWindow = 32 << 10

// splitInput is the text seen through a window of fixed size.
type splitInput struct {
	src      io.Reader
	max      int64 // bytes that may be read
	base     int64 // offset of window[0] in the text
	pos, end int   // what is still unread of the window
	err      error // why no more comes
	window   [splitWindow]byte
}

// reset starts a new text.
func (in *splitInput) reset(src io.Reader, max int64) {
	in.src, in.max = src, max
	in.base, in.pos, in.end, in.err = 0, 0, 0, nil
}

func (in *splitInput) offset() int64  { return in.base + int64(in.pos) }
func (in *splitInput) unread() []byte { return in.window[in.pos:in.end] }

// fill adds at least one byte to what is unread, or says false.
func (in *splitInput) fill() bool {
	if in.pos > 0 {
		copy(in.window[:], in.unread())
		in.base += int64(in.pos)
		in.pos, in.end = 0, in.end-in.pos
	}
	for range 100 { // as bufio: a source may now and then have nothing to say
		if in.err != nil {
			return false
		}
		n, err := in.src.Read(in.window[in.end:])
		in.end, in.err = in.end+n, err
		if size := in.base + int64(in.end); size > in.max {
			in.end -= int(min(size-in.max, int64(n)))
			in.err = &LimitError{Kind: LimitBody, Max: in.max, Offset: in.max}
			return false
		}
		if n > 0 {
			return true
		}
	}
	in.err = io.ErrNoProgress
	return false
}

// more makes sure that something is unread, or says false.
func (in *splitInput) more() bool { return in.pos < in.end || in.fill() }

// skipSpace skips white space and tells whether something follows.
func (in *splitInput) skipSpace() bool {
	for in.more() {
		switch in.window[in.pos] {
		case ' ', '\t', '\r', '\n':
			in.pos++
		default:
			return true
		}
	}
	return false
}

// failure says why nothing more comes where something must.
func (in *splitInput) failure() error {
	var limit *LimitError
	switch {
	case errors.As(in.err, &limit):
		return in.err
	case !errors.Is(in.err, io.EOF):
		return fmt.Errorf("read a JSON text: %w", in.err)
	case in.offset() == 0 && in.end == 0:
		return newSyntaxError(SyntaxEmpty, 0)
	}
	return newSyntaxError(SyntaxTruncated, in.base+int64(in.end))
}

// wrong reports the unread byte at the given distance.
func (in *splitInput) wrong(kind SyntaxKind, distance int) error {
	return newSyntaxError(kind, in.offset()+int64(distance))
}

// stringRun returns the next piece of the inside of a string, as written and known to be valid, and whether it was the
// last one, up to the closing quote. The piece may be empty; it is valid until the next call.
func (in *splitInput) stringRun() (run []byte, last bool, err error) {
	if !in.more() {
		return nil, false, in.failure()
	}
	n, last, err := in.measure()
	if err != nil {
		return nil, false, err
	}
	if n == 0 && !last && !in.fill() { // a character reaches beyond the window
		return nil, false, in.failure()
	}
	run = in.unread()[:n]
	in.pos += n
	if last {
		in.pos++
	}
	return run, last, nil
}

// measure counts the unread bytes that are whole characters of a string, and tells whether its closing quote follows.
func (in *splitInput) measure() (n int, last bool, err error) {
	text := in.unread()
	for n < len(text) {
		c := text[n]
		switch {
		case plainBytes[c]:
			n++
			continue
		case c == '"':
			return n, true, nil
		}
		width, err := in.character(c, n)
		if err != nil || width == 0 {
			return n, false, err
		}
		n += width
	}
	return n, false, nil
}

// plainBytes are those that mean themselves in a string.
var plainBytes = makePlainBytes()

func makePlainBytes() *[256]bool {
	var t [256]bool
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return &t
}

// character measures the character of a string that begins with c, no plain byte, at distance n; zero means that more must be read.
func (in *splitInput) character(c byte, n int) (width int, err error) {
	switch {
	case c == '\\':
		_, width, err = in.escape(n)
		return width, err
	case c < ' ':
		return 0, in.wrong(SyntaxControl, n)
	}
	rest := in.unread()[n:]
	r, width := utf8.DecodeRune(rest)
	if r != utf8.RuneError || width > 1 {
		return width, nil
	}
	if !utf8.FullRune(rest) && !errors.Is(in.err, io.EOF) {
		return 0, nil
	}
	return 0, in.wrong(SyntaxUTF8, n)
}

// simpleEscapes are the letters that may follow a backslash, and what they mean.
var simpleEscapes = [256]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads the escape at distance n without taking it; width zero means that more must be read.
func (in *splitInput) escape(n int) (r rune, width int, err error) {
	rest := in.unread()[n:]
	if len(rest) < 2 {
		return 0, 0, nil
	}
	if rest[1] != 'u' {
		if r = simpleEscapes[rest[1]]; r == 0 {
			return 0, 0, in.wrong(SyntaxEscape, n)
		}
		return r, 2, nil
	}
	r, ok := hexEscape(rest)
	switch {
	case !ok:
		return 0, 0, in.wrong(SyntaxEscape, n)
	case len(rest) < 6:
		return 0, 0, nil
	case !utf16.IsSurrogate(r):
		return r, 6, nil
	}
	low, ok := hexEscape(rest[6:])
	if r = utf16.DecodeRune(r, low); ok && len(rest) >= 12 && r != utf8.RuneError {
		return r, 12, nil
	}
	if ok && len(rest) < 12 {
		return 0, 0, nil
	}
	return 0, 0, in.wrong(SyntaxSurrogate, n)
}

// hexEscape reads \uXXXX at the start of p. When p is shorter, ok says whether it may still become one.
func hexEscape(p []byte) (r rune, ok bool) {
	for i, c := range p[:min(len(p), 6)] {
		switch {
		case i < 2:
			if c != `\u`[i] {
				return 0, false
			}
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// done tells whether the text ended by itself.
func (in *splitInput) done() bool { return errors.Is(in.err, io.EOF) }
