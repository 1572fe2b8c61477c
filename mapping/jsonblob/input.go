package jsonblob

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// smallWindow is the size of the window that every document begins with. A client that sends slowly keeps it for long.
	smallWindow = 4 << 10
	// largeWindow is its size for a document that comes faster than a small window can take it. Reading and writing in larger pieces
	// costs fewer system calls.
	largeWindow = 256 << 10
)

var (
	smallWindows = sync.Pool{New: func() any { return new([smallWindow]byte) }}
	largeWindows = sync.Pool{New: func() any { return new([largeWindow]byte) }}
)

// input is a text seen through a window.
type input struct {
	src      io.Reader
	max      int64 // bytes that may be read
	spare    func(more int) bool
	base     int64 // offset of window[0] in the text
	pos, end int   // of the part of the window that is unread
	err      error // why no more comes
	window   []byte
	small    *[smallWindow]byte
	large    *[largeWindow]byte // nil while the small one is in use
}

func newInput(src io.Reader, limit int64, spare func(more int) bool) input {
	small := smallWindows.Get().(*[smallWindow]byte)
	return input{src: src, max: limit, spare: spare, small: small, window: small[:]}
}

// recycle gives the windows back. Nothing may use the input afterwards.
func (in *input) recycle() {
	smallWindows.Put(in.small)
	if in.large != nil {
		largeWindows.Put(in.large)
	}
}

func (in *input) offset() int64  { return in.base + int64(in.pos) }
func (in *input) unread() []byte { return in.window[in.pos:in.end] }

// fill adds at least one byte to what is unread, or returns false. It moves what is unread to the start of a window, which is a
// large one if the source has filled the small one and there is memory for it.
func (in *input) fill() bool {
	unread := in.unread()
	if in.end == smallWindow && in.large == nil && (in.spare == nil || in.spare(largeWindow)) {
		in.large = largeWindows.Get().(*[largeWindow]byte)
		in.window = in.large[:]
	}
	in.base += int64(in.pos)
	in.pos, in.end = 0, copy(in.window, unread)
	for range 100 { // as bufio: a source may return nothing now and then
		if in.err != nil {
			return false
		}
		n, err := in.src.Read(in.window[in.end:])
		in.end, in.err = in.end+n, err
		if over := in.base + int64(in.end) - in.max; over > 0 {
			in.end -= int(over)
			in.err = &LimitError{Kind: LimitBody, Max: in.max}
			return false
		}
		if n > 0 {
			return true
		}
	}
	in.err = io.ErrNoProgress
	return false
}

// more makes sure that something is unread, or returns false.
func (in *input) more() bool { return in.pos < in.end || in.fill() }

// ended reports whether the source came to its end, rather than that it failed.
func (in *input) ended() bool { return errors.Is(in.err, io.EOF) }

// skipSpace skips white space and reports whether something follows.
func (in *input) skipSpace() bool {
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
func (in *input) failure() error {
	var limit *LimitError
	switch {
	case errors.As(in.err, &limit):
		return in.err
	case !in.ended():
		return fmt.Errorf("read a JSON text: %w", in.err)
	case in.base == 0 && in.end == 0:
		return &SyntaxError{0, SyntaxEmpty}
	}
	return &SyntaxError{in.base + int64(in.end), SyntaxTruncated}
}

// wrong reports the unread byte at the given distance.
func (in *input) wrong(kind SyntaxKind, distance int) error {
	return &SyntaxError{in.offset() + int64(distance), kind}
}

// stringRun returns the next piece of the inside of a string, as written and known to be valid, and whether it was the
// last one, up to the closing quote. The piece may be empty; it is valid until the next call.
func (in *input) stringRun() (run []byte, last bool, err error) {
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

// measure counts the unread bytes that are whole characters of a string, and reports whether its closing quote follows.
func (in *input) measure() (n int, last bool, err error) {
	text := in.unread()
	for {
		n += plainLen(text[n:])
		switch {
		case n == len(text):
			return n, false, nil
		case text[n] == '"':
			return n, true, nil
		}
		width, err := in.character(text[n:], n)
		if err != nil || width == 0 {
			return n, false, err
		}
		n += width
	}
}

// plainLen counts the bytes at the start of p that mean themselves in a JSON string: ASCII without quote, backslash and controls.
func plainLen(p []byte) int {
	for n, c := range p {
		if c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return n
		}
	}
	return len(p)
}

// character measures the character of a string at the start of rest, which is at distance n and no plain one. Zero means that more
// must be read.
func (in *input) character(rest []byte, n int) (width int, err error) {
	switch {
	case rest[0] == '\\':
		_, width, err = in.escape(n)
		return width, err
	case rest[0] < ' ':
		return 0, in.wrong(SyntaxControl, n)
	}
	r, width := utf8.DecodeRune(rest)
	switch {
	case r != utf8.RuneError || width > 1:
		return width, nil
	case !utf8.FullRune(rest) && !in.ended():
		return 0, nil
	}
	return 0, in.wrong(SyntaxUTF8, n)
}

// escape reads the escape at distance n without taking it. Width zero means that more must be read.
func (in *input) escape(n int) (r rune, width int, err error) {
	const letters, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	rest := in.unread()[n:]
	if len(rest) < 2 {
		return 0, 0, nil
	}
	if rest[1] != 'u' {
		i := strings.IndexByte(letters, rest[1])
		if i < 0 {
			return 0, 0, in.wrong(SyntaxEscape, n)
		}
		return rune(meanings[i]), 2, nil
	}
	if len(rest) < 6 {
		return 0, 0, nil
	}
	unit, err := strconv.ParseUint(string(rest[2:6]), 16, 16)
	r, low := rune(unit), rest[6:]
	switch {
	case err != nil:
		return 0, 0, in.wrong(SyntaxEscape, n)
	case !utf16.IsSurrogate(r):
		return r, 6, nil
	case len(low) < 6 && strings.HasPrefix(`\u`, string(low[:min(len(low), 2)])):
		return 0, 0, nil
	case len(low) >= 6 && string(low[:2]) == `\u`:
		unit, _ = strconv.ParseUint(string(low[2:6]), 16, 16) // what is no number is no low surrogate either
		if r = utf16.DecodeRune(r, rune(unit)); r != utf8.RuneError {
			return r, 12, nil
		}
	}
	return 0, 0, in.wrong(SyntaxSurrogate, n)
}
