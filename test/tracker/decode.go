package tracker

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNesting is the deepest JSON that is read (wire-facts 1: nesting over 512 is a syntax error).
const maxNesting = 512

var errSyntax = errors.New("malformed JSON")

// decodeJSON reads one JSON text with the strictness and the values of the real parser (wire-facts 1, Request bodies):
// the last of duplicate members wins, integers beyond 64 bits become floats, lone surrogates and raw control characters are errors.
func decodeJSON(s string) (any, error) {
	d := &decoder{s: s}
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if d.blank(); d.i < len(d.s) {
		return nil, d.fail("text after the value")
	}
	return v, nil
}

type decoder struct {
	s string
	i int
}

func (d *decoder) fail(what string) error {
	return fmt.Errorf("%w: %s at character offset %d", errSyntax, what, d.i)
}

func (d *decoder) blank() {
	for d.i < len(d.s) && strings.IndexByte(" \t\r\n", d.s[d.i]) >= 0 {
		d.i++
	}
}

func (d *decoder) value(depth int) (any, error) {
	d.blank()
	if d.i >= len(d.s) {
		return nil, d.fail("unexpected end")
	}
	switch c := d.s[d.i]; {
	case c == '{':
		return d.object(depth + 1)
	case c == '[':
		return d.array(depth + 1)
	case c == '"':
		d.i++
		return d.text()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	}
	for word, v := range map[string]any{"true": true, "false": false, "null": nil} {
		if strings.HasPrefix(d.s[d.i:], word) {
			d.i += len(word)
			return v, nil
		}
	}
	return nil, d.fail("unknown token")
}

func (d *decoder) object(depth int) (any, error) {
	if depth > maxNesting {
		return nil, d.fail("nesting too deep")
	}
	d.i++
	out := object{}
	for first := true; ; first = false {
		d.blank()
		if first && d.take('}') {
			return out, nil
		} else if d.i >= len(d.s) || d.s[d.i] != '"' {
			return nil, d.fail("expected a member name")
		}
		d.i++
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		if d.blank(); !d.take(':') {
			return nil, d.fail("expected a colon")
		}
		if out[key], err = d.value(depth); err != nil {
			return nil, err
		}
		if d.blank(); d.take('}') {
			return out, nil
		}
		if !d.take(',') {
			return nil, d.fail("expected , or }")
		}
	}
}

func (d *decoder) array(depth int) (any, error) {
	if depth > maxNesting {
		return nil, d.fail("nesting too deep")
	}
	d.i++
	out := []any{}
	if d.blank(); d.take(']') {
		return out, nil
	}
	for {
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if d.blank(); d.take(']') {
			return out, nil
		}
		if !d.take(',') {
			return nil, d.fail("expected , or ]")
		}
	}
}

func (d *decoder) take(c byte) bool {
	if d.i < len(d.s) && d.s[d.i] == c {
		d.i++
		return true
	}
	return false
}

// text reads a string whose opening quote is read.
func (d *decoder) text() (string, error) {
	start := d.i
	for d.i < len(d.s) && d.s[d.i] != '"' && d.s[d.i] != '\\' && d.s[d.i] >= 0x20 {
		d.i++
	}
	if d.take('"') {
		return d.s[start : d.i-1], nil
	}
	var b strings.Builder
	b.WriteString(d.s[start:d.i])
	for d.i < len(d.s) {
		switch c := d.s[d.i]; {
		case c == '"':
			d.i++
			return b.String(), nil
		case c < 0x20:
			return "", d.fail("raw control character in a string")
		case c == '\\':
			if err := d.escape(&b); err != nil {
				return "", err
			}
		default:
			d.i++
			b.WriteByte(c)
		}
	}
	return "", d.fail("string without end")
}

const escapes = `""\\//b` + "\b" + "f\f" + "n\n" + "r\r" + "t\t"

func (d *decoder) escape(b *strings.Builder) error {
	d.i++
	if d.i >= len(d.s) {
		return d.fail("escape without end")
	}
	c := d.s[d.i]
	d.i++
	for k := 0; k < len(escapes); k += 2 {
		if escapes[k] == c {
			b.WriteByte(escapes[k+1])
			return nil
		}
	}
	if c != 'u' {
		return d.fail("unknown escape")
	}
	return d.unicode(b)
}

func (d *decoder) unicode(b *strings.Builder) error {
	hi, ok := d.hex4()
	if !ok {
		return d.fail("bad \\u escape")
	}
	if !utf16.IsSurrogate(hi) {
		b.WriteRune(hi)
		return nil
	}
	if !strings.HasPrefix(d.s[d.i:], `\u`) {
		return d.fail("lone surrogate")
	}
	d.i += 2
	lo, ok := d.hex4()
	r := utf16.DecodeRune(hi, lo)
	if !ok || r == utf8.RuneError {
		return d.fail("lone surrogate")
	}
	b.WriteRune(r)
	return nil
}

func (d *decoder) hex4() (rune, bool) {
	if d.i+4 > len(d.s) {
		return 0, false
	}
	n, err := strconv.ParseUint(d.s[d.i:d.i+4], 16, 16)
	d.i += 4
	return rune(n), err == nil
}

func (d *decoder) number() (any, error) {
	start, float := d.i, false
	d.take('-')
	lead := d.i
	if d.digits() == 0 || d.i-lead > 1 && d.s[lead] == '0' {
		return nil, d.fail("malformed number")
	}
	if d.take('.') {
		if float = true; d.digits() == 0 {
			return nil, d.fail("no digits after the point")
		}
	}
	if d.take('e') || d.take('E') {
		float = true
		if !d.take('+') {
			d.take('-')
		}
		if d.digits() == 0 {
			return nil, d.fail("no digits in the exponent")
		}
	}
	if n, err := strconv.ParseInt(d.s[start:d.i], 10, 64); err == nil && !float {
		return n, nil
	}
	f, err := strconv.ParseFloat(d.s[start:d.i], 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, d.fail("malformed number")
	}
	return f, nil
}

func (d *decoder) digits() int {
	start := d.i
	for d.i < len(d.s) && d.s[d.i] >= '0' && d.s[d.i] <= '9' {
		d.i++
	}
	return d.i - start
}
