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
	from := len(s.out)
	for last := false; !last; {
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
		kind, last, err := p.piece(&s.in, true)
		var size int64
		if last && err == nil {
			size, kind, err = p.finish()
		}
		switch {
		case err != nil:
			return err
		case kind != 0 && s.opts.Tolerant:
			return s.keep(p, last)
		case kind != 0:
			return s.refuse(kind, last)
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
func (s *splitter) refuse(kind SyntaxKind, last bool) (err error) {
	distance := 0
	if last {
		distance = -1 // the quote, at which something is missing
	}
	if s.bad == nil {
		s.bad = s.in.wrong(kind, distance)
	}
	for !last && err == nil {
		_, last, err = s.in.stringRun()
	}
	return err
}

// keep takes the whole string as it was sent, because it is not canonical base64.
func (s *splitter) keep(p *payload, last bool) error {
	err := s.spool.write([]byte("==")[:p.pads])
	for !last && err == nil {
		var run []byte
		if run, last, err = s.in.stringRun(); err == nil {
			err = s.spool.write(run)
		}
	}
	if err != nil {
		return err
	}
	length := p.size()
	if length > splitInline {
		s.seal(&Blob{spool: s.spool, offset: p.from, length: length, size: length, text: true})
		return nil
	}
	s.out = append(s.out, '"')
	at := len(s.out)
	s.out = append(s.out, make([]byte, length)...)
	_, err = s.spool.ReadAt(s.out[at:], p.from)
	s.out = append(s.out, '"')
	s.spool.size = p.from
	return err
}
