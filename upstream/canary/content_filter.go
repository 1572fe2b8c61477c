package canary

import (
	"bytes"
	"slices"
)

// shortContent is up to where the content of an attachment is kept as it is.
const shortContent = 4 << 10

// contentFilter lets a JSON text through that comes in pieces, with stamps in the
// place of long content: an answer with attachments of any size then takes no more
// room than one without. What is no JSON stays none.
type contentFilter struct {
	where    contentPlace
	escaped  bool
	name     []byte // the beginning of the string that is read, or was
	isName   bool   // that string was the name data
	isMember bool   // and a colon has followed it
	head     []byte // of content that may be short
	spelling int    // how much longer escapes make it
	sum      *contentSum
	out      []byte
}

// contentPlace is where in the text a piece begins.
type contentPlace int

const (
	outsideStrings contentPlace = iota
	insideString
	insideContent
)

// pass gives what there is to be kept of the next piece, until it is called again.
func (f *contentFilter) pass(p []byte) []byte {
	f.out = f.out[:0]
	for len(p) > 0 {
		switch f.where {
		case outsideStrings:
			p = p[f.outside(p):]
		case insideString:
			p = p[f.inside(p):]
		default:
			p = p[f.content(p):]
		}
	}
	return f.out
}

// outside takes what is between strings, and the quote that begins the next one.
func (f *contentFilter) outside(p []byte) int {
	n := bytes.IndexByte(p, '"')
	between := p
	if n >= 0 {
		between = p[:n]
	}
	for _, c := range between {
		switch c {
		case ' ', '\t', '\r', '\n':
		case ':':
			f.isMember, f.isName = f.isName, false
		default:
			f.isMember, f.isName = false, false
		}
	}
	f.out = append(f.out, between...)
	if n < 0 {
		return len(p)
	}
	f.out = append(f.out, '"')
	f.where, f.name = insideString, f.name[:0]
	if f.isMember {
		f.where, f.head, f.sum, f.spelling = insideContent, f.head[:0], nil, 0
	}
	f.isName, f.isMember = false, false
	return n + 1
}

// inside takes as much of a string as there is.
func (f *contentFilter) inside(p []byte) int {
	n, ended := f.stringLen(p)
	f.out = append(f.out, p[:n]...)
	if short := p[:n]; len(f.name) < 8 {
		f.name = append(f.name, short[:min(n, 8)]...)
	}
	if ended {
		f.where, f.isName = outsideStrings, string(f.name) == `data"`
	}
	return n
}

// stringLen is how much of p belongs to a string, its last quote included.
func (f *contentFilter) stringLen(p []byte) (n int, ended bool) {
	for n < len(p) {
		switch {
		case f.escaped:
			f.escaped = false
			if p[n] == 'u' {
				f.spelling += len("0000")
			}
			n++
		case p[n] == '"':
			return n + 1, true
		case p[n] == '\\':
			f.escaped = true
			f.spelling++
			n++
		default:
			n += plainLen(p[n:])
		}
	}
	return n, false
}

// content takes as much of content as there is. Whether it is short says what is
// written, and not in which spelling, since a digest knows stamps from content.
func (f *contentFilter) content(p []byte) int {
	n, ended := f.stringLen(p)
	text := p[:n]
	if ended {
		text = p[:n-1]
	}
	if f.sum == nil && len(f.head)+len(text)-f.spelling <= shortContent {
		f.head = append(f.head, text...)
	} else {
		f.add(text)
	}
	if ended {
		f.end()
	}
	return n
}

// add takes content that is not kept.
func (f *contentFilter) add(text []byte) {
	if f.sum == nil {
		f.sum = newContentSum()
		f.sum.write(f.head)
	}
	f.sum.write(text)
}

// end writes what is kept of content. Nobody can send a stamp: what looks like one,
// or may do so when it is read, gets one.
func (f *contentFilter) end() {
	f.where = outsideStrings
	if f.sum == nil && likeStamp(f.head) {
		f.add(nil)
	}
	switch {
	case f.sum == nil:
		f.out = append(f.out, f.head...)
	case f.sum.broken != nil:
		f.out = append(f.out, f.sum.broken...)
	default:
		f.out = append(f.out, f.sum.payload().stamp()...)
	}
	f.out, f.sum = append(f.out, '"'), nil
}

func likeStamp(inside []byte) bool {
	if bytes.IndexByte(inside, '\\') >= 0 {
		inside = unquoted(slices.Concat([]byte{'"'}, inside, []byte{'"'}))
	}
	return bytes.HasPrefix(inside, stampStart)
}
