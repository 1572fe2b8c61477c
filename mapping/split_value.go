package mapping

import (
	"bytes"
	"crypto/sha256"
	"io"
)

// value takes a value, or the beginning of an array or object.
func (s *splitter) value(c byte) error {
	if s.names.depth() > 0 {
		if s.members++; s.members > s.limits.Members {
			return s.exceeds(LimitMembers, s.limits.Members)
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
	for {
		run, last, err := s.in.stringRun()
		if err != nil {
			return err
		}
		if len(s.out)-from+len(run) > s.limits.String {
			return s.exceeds(LimitString, s.limits.String)
		}
		if err := s.hold(len(run)); err != nil {
			return err
		}
		s.out = append(s.out, run...)
		if last {
			s.out = append(s.out, '"')
			return nil
		}
	}
}

// number takes a number as it is written, except that one which looks like a placeholder gets a small e: the value is
// the same.
func (s *splitter) number() error {
	at, from := s.in.offset(), len(s.out)
	for s.in.more() && isNumberByte(s.in.window[s.in.pos]) {
		if len(s.out)-from == s.limits.Number {
			return s.exceeds(LimitNumber, s.limits.Number)
		}
		s.take(s.in.window[s.in.pos])
	}
	number := s.out[from:]
	if n := numberLen(number); n < len(number) || n == 0 {
		return newSyntaxError(SyntaxNumber, at+int64(n))
	}
	if bytes.HasPrefix(number, []byte(placeholderReserve)) {
		number[2] = 'e'
	}
	return nil
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// numberLen measures the number at the start of p by the grammar of RFC 8259, section 6; zero means that there is none.
func numberLen(p []byte) int {
	n := 0
	if n < len(p) && p[n] == '-' {
		n++
	}
	whole := digitsLen(p[n:])
	if whole == 0 || whole > 1 && p[n] == '0' {
		return 0
	}
	n += whole
	if n < len(p) && p[n] == '.' {
		fraction := digitsLen(p[n+1:])
		if fraction == 0 {
			return n
		}
		n += 1 + fraction
	}
	return n + exponentLen(p[n:])
}

func exponentLen(p []byte) int {
	if len(p) == 0 || p[0]|0x20 != 'e' {
		return 0
	}
	n := 1
	if n < len(p) && (p[n] == '+' || p[n] == '-') {
		n++
	}
	digits := digitsLen(p[n:])
	if digits == 0 {
		return 0
	}
	return n + digits
}

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
	from := s.spool.size
	s.stage.begin(s.spool, s.opts.Tolerant)
	for {
		kind, last, err := s.payloadRun()
		switch {
		case err != nil:
			return err
		case kind == 0 && !last:
			continue
		case kind == 0:
			return s.seal(s.stage.blob(from))
		case s.opts.Tolerant:
			return s.keep(from, last)
		case last:
			return s.refuse(kind, s.in.offset()-1, last)
		}
		return s.refuse(kind, s.in.offset(), last)
	}
}

// payloadRun takes the next piece of a payload and tells whether it was the last one. With a kind other than zero the
// character at which the text ceased to be base64 is still unread, except for the closing quote.
func (s *splitter) payloadRun() (kind SyntaxKind, last bool, err error) {
	if !s.in.more() {
		return 0, false, s.in.failure()
	}
	n, err := s.stage.bulk(s.in.unread())
	s.in.pos += n
	if err != nil || s.in.pos == s.in.end {
		return 0, false, err
	}
	c, width := rune(s.in.window[s.in.pos]), 1
	switch {
	case c == '"':
		s.in.pos++
		kind, err = s.stage.finish()
		return kind, true, err
	case c == '\\':
		if c, width, err = s.in.escape(0); err == nil && width == 0 && !s.in.fill() {
			err = s.in.failure()
		}
	case c < ' ':
		err = s.in.wrong(SyntaxControl, 0)
	}
	if err != nil || width == 0 {
		return 0, false, err
	}
	if kind, err = s.stage.push(c); kind == 0 {
		s.in.pos += width
	}
	return kind, false, err
}

// blob makes what the stage has finished a blob that begins at the given place of the spool.
func (e *base64Stage) blob(from int64) *Blob {
	b := &Blob{spool: e.out, offset: from, length: e.out.size - from, size: e.size}
	e.hash.Sum(b.digest[:0])
	return b
}

// seal puts a blob into the list and its placeholder into the skeleton.
func (s *splitter) seal(b *Blob) error {
	if len(s.blobs) == s.limits.Blobs {
		return s.exceeds(LimitBlobs, s.limits.Blobs)
	}
	s.spool.retain()
	b.index = len(s.blobs)
	s.out = appendPlaceholder(s.out, b.index)
	s.blobs = append(s.blobs, b)
	return nil
}

// refuse remembers that a payload is not base64 and reads over the rest of it.
func (s *splitter) refuse(kind SyntaxKind, at int64, last bool) error {
	if s.bad == nil {
		s.bad = newSyntaxError(kind, at)
	}
	for !last {
		var err error
		if _, last, err = s.in.stringRun(); err != nil {
			return err
		}
	}
	s.out = append(s.out, "null"...) // nobody sees it: Split ends with an error
	return nil
}

// keep takes the whole string as it was sent, because it is not canonical base64.
func (s *splitter) keep(from int64, last bool) error {
	if err := s.stage.giveUp(); err != nil {
		return err
	}
	for !last {
		run, end, err := s.in.stringRun()
		if err != nil {
			return err
		}
		if err := s.spool.write(run); err != nil {
			return err
		}
		last = end
	}
	b := &Blob{spool: s.spool, offset: from, length: s.spool.size - from, size: s.spool.size - from, text: true}
	if b.length > splitInline {
		return s.sealText(b)
	}
	return s.inline(b)
}

// sealText completes a blob of text with its digest. Such blobs are rare, so the text is read once more for that.
func (s *splitter) sealText(b *Blob) error {
	s.stage.hash.Reset()
	if _, err := io.Copy(s.stage.hash, b.Reader()); err != nil {
		return err
	}
	s.stage.hash.Sum(b.digest[:0])
	return s.seal(b)
}

// inline puts a short text back into the skeleton.
func (s *splitter) inline(b *Blob) error {
	s.out = append(s.out, '"')
	at := len(s.out)
	s.out = append(s.out, make([]byte, b.length)...)
	if _, err := s.spool.readAt(s.out[at:], b.offset); err != nil {
		return err
	}
	s.out = append(s.out, '"')
	s.spool.truncate(b.offset)
	return nil
}

// textBlob makes a blob in memory of the inside of a JSON string.
func textBlob(inside []byte) *Blob {
	n := int64(len(inside))
	spool := &blobSpool{mem: inside, size: n, refs: 1}
	return &Blob{spool: spool, length: n, size: n, digest: sha256.Sum256(inside), text: true}
}
