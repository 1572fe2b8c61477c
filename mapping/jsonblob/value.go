package jsonblob

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// value takes a value, or the beginning of an array or object.
func (s *splitter) value(c byte) error {
	if len(s.levels) > 0 {
		if s.members++; s.members > s.limits.Members {
			return &LimitError{LimitMembers, int64(s.limits.Members)}
		}
	}
	payload := s.payload
	s.payload = false
	if c == '{' || c == '[' {
		return s.enter(c)
	}
	s.valueDone()
	switch {
	case c == '"' && payload:
		return s.divert()
	case c == '"':
		return s.text()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.in.wrong(SyntaxUnexpected, 0)
}

// literal takes the given word.
func (s *splitter) literal(word string) error {
	for _, c := range []byte(word) {
		if !s.in.more() {
			return s.in.failure()
		}
		if s.in.window[s.in.pos] != c {
			return s.in.wrong(SyntaxUnexpected, 0)
		}
		s.take(c)
	}
	return nil
}

// text takes a string as it is written.
func (s *splitter) text() error {
	s.take('"')
	return s.rest(len(s.out), false)
}

// rest takes what is left of a string that begins at a place of out, unless its closing quote has been read.
func (s *splitter) rest(from int, last bool) error {
	for !last {
		var run []byte
		var err error
		if run, last, err = s.in.stringRun(); err != nil {
			return err
		}
		if len(s.out)-from+len(run) > s.limits.String {
			return &LimitError{LimitString, int64(s.limits.String)}
		}
		if err := s.hold(len(run)); err != nil {
			return err
		}
		s.out = append(s.out, run...)
	}
	s.out = append(s.out, '"')
	return nil
}

// number takes a number as it is written, except that one which looks like a placeholder gets a small e: the value is
// the same.
func (s *splitter) number() error {
	at, from := s.in.offset(), len(s.out)
	for s.in.more() && isNumberByte(s.in.window[s.in.pos]) {
		if len(s.out)-from == maxNumber {
			return &LimitError{LimitNumber, maxNumber}
		}
		s.take(s.in.window[s.in.pos])
	}
	number := s.out[from:]
	// Ids are digits only, and to ask jsontext takes five times as long.
	if n := digitsLen(number); (n < len(number) || n > 1 && number[0] == '0') && !jsontext.Value(number).IsValid() {
		return &SyntaxError{at, SyntaxNumber}
	}
	if bytes.HasPrefix(number, []byte(placeholderReserve)) {
		number[2] = 'e'
	}
	return nil
}

func isNumberByte(c byte) bool { return strings.IndexByte("+-.0123456789Ee", c) >= 0 }

func digitsLen(p []byte) int {
	n := 0
	for n < len(p) && '0' <= p[n] && p[n] <= '9' {
		n++
	}
	return n
}

// divert takes the string of a member `data` to a blob.
func (s *splitter) divert() error {
	s.in.pos++
	p := s.newPayload()
	for {
		if !s.in.more() {
			return s.in.failure()
		}
		wrong, last, err := p.piece(&s.in, true)
		var size int64
		if last && err == nil {
			size, wrong, err = p.finish()
		}
		switch {
		case err != nil:
			return err
		case wrong && s.opts.Tolerant:
			return s.keep(p, last)
		case wrong:
			return s.refuse(last)
		case last:
			s.seal(&Blob{spool: s.spool, offset: p.from, length: p.size(), size: size})
			return nil
		}
	}
}

// seal puts a blob into the list and its placeholder into the skeleton.
func (s *splitter) seal(b *Blob) {
	s.spool.refs.Add(1)
	s.out = AppendPlaceholder(s.out, len(s.blobs))
	s.blobs = append(s.blobs, b)
}

// refuse remembers that a payload is not base64 and reads over the rest of it, unless its closing quote has been read. Nothing stands for it in the
// skeleton, which is not returned.
func (s *splitter) refuse(last bool) (err error) {
	distance := 0
	if last {
		distance = -1 // the quote, at which something is missing
	}
	if s.bad == nil {
		s.bad = s.in.wrong(SyntaxBase64, distance)
	}
	for !last && err == nil {
		_, last, err = s.in.stringRun()
	}
	return err
}

// keep takes the whole string as it was sent, because it is not canonical base64.
func (s *splitter) keep(p *payload, last bool) error {
	s.out = append(s.out, '"')
	from, length := len(s.out), p.size()
	if length > int64(s.limits.String) {
		return &LimitError{LimitString, int64(s.limits.String)}
	}
	s.out = append(s.out, make([]byte, length)...)
	if _, err := s.spool.ReadAt(s.out[from:], p.from); err != nil {
		return err
	}
	s.spool.size = p.from
	s.out = append(s.out, "=="[:p.pads]...)
	return s.rest(from, last)
}
