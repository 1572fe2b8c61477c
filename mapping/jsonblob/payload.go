package jsonblob

import "strings"

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// isBase64 tells the bytes of the alphabet. Comparisons with its ranges take three times as long as a table.
var isBase64 = func() (is [256]bool) {
	for _, c := range []byte(base64Alphabet) {
		is[c] = true
	}
	return is
}()

// base64Len counts the bytes of the alphabet at the start of p.
func base64Len(p []byte) int {
	n := base64Blocks(p)
	for n < len(p) && isBase64[p[n]] {
		n++
	}
	return n
}

// payload is a base64 text that is being read. Its characters are checked and not decoded.
type payload struct {
	spool *spool
	from  int64 // where it begins in the spool
	last  byte  // the last character of the alphabet
	pads  int   // '=' after it
	exact bool  // nothing is repaired: a text that is not canonical is refused
}

func (s *splitter) newPayload() *payload {
	return &payload{spool: s.spool, from: s.spool.size, exact: s.opts.Tolerant}
}

// piece takes what the window has of the payload. It moves the characters of the alphabet together, if anything is between them, and
// adds them to the spool at once. quoted says that this is the inside of a JSON string, which its quote ends: then last is true. Where the text
// is wrong, the character at which it ceased to be base64 is still unread.
func (p *payload) piece(in *input, quoted bool) (wrong, last bool, err error) {
	from, to, width := in.pos, in.pos, 1
	for in.pos < in.end && width > 0 && !wrong && !last && err == nil {
		if n := base64Len(in.unread()); n > 0 && p.pads == 0 {
			if to < in.pos {
				copy(in.window[to:], in.unread()[:n])
			}
			to, in.pos = to+n, in.pos+n
			continue
		}
		c := rune(in.window[in.pos])
		width = 1
		switch {
		case quoted && c == '"':
			last = true
			in.pos++
			continue
		case quoted && c == '\\':
			if c, width, err = in.escape(0); width == 0 {
				continue
			}
		case quoted && c < ' ':
			err = in.wrong(SyntaxControl, 0)
			continue
		}
		var isChar bool
		if isChar, wrong = p.accept(c, int(p.size()+int64(to-from))%4); !wrong {
			in.pos += width
		}
		if isChar {
			in.window[to] = byte(c)
			to++
		}
	}
	if to > from {
		p.last = in.window[to-1]
	}
	if failed := p.spool.write(in.window[from:to]); err == nil {
		err = failed
	}
	if width == 0 && err == nil && !in.fill() { // an escape reaches beyond the window
		err = in.failure()
	}
	return wrong, last, err
}

// size is the number of characters of the alphabet in the spool.
func (p *payload) size() int64 { return p.spool.size - p.from }

// accept reports whether c, which comes after the given number of characters of its group, is one of the alphabet or else may be left
// out.
func (p *payload) accept(c rune, group int) (isChar, wrong bool) {
	switch {
	case c == '=' && group >= 2 && group+p.pads < 4:
		p.pads++
		return false, false
	case !p.exact && strings.ContainsRune("\r\n \t", c):
		return false, false
	}
	isChar = p.pads == 0 && strings.ContainsRune(base64Alphabet, c)
	return isChar, !isChar
}

// finish makes the end of the payload canonical as RFC 4648 (section 3.5) asks of an encoder: padded, and with zero in the bits beyond
// the last byte. It returns the size of the content in bytes.
func (p *payload) finish() (size int64, wrong bool, err error) {
	group := int(p.size() % 4)
	switch group {
	case 0:
		return p.size() / 4 * 3, false, nil
	case 1:
		return 0, true, nil
	}
	size = p.size() * 3 / 4
	beyond := 1<<(8-2*group) - 1
	last := base64Alphabet[strings.IndexByte(base64Alphabet, p.last)&^beyond]
	if p.exact && (last != p.last || group+p.pads != 4) {
		return 0, true, nil
	}
	p.spool.size--
	return size, false, p.spool.write(append([]byte{last}, "=="[:4-group]...))
}
