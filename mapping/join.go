package mapping

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"
)

// A placeholder is the number -0E+N, where N is the place of a blob in its list. It is a number so that it outlives any
// code that handles JSON values as text, and no document can hold one: Split spells such a number -0e+N, which is
// the same value.
const (
	placeholderReserve = "-0E" // how no number of a skeleton begins but a placeholder
	placeholderPrefix  = placeholderReserve + "+"
)

func appendPlaceholder(dst []byte, index int) []byte {
	return strconv.AppendInt(append(dst, placeholderPrefix...), int64(index), 10)
}

// placeholderIndex reads a placeholder at the start of p.
func placeholderIndex(p []byte) (index, width int, ok bool) {
	digits, ok := bytes.CutPrefix(p, []byte(placeholderPrefix))
	n := digitsLen(digits)
	if !ok || n == 0 || n > 1 && digits[0] == '0' || n < len(digits) && isNumberByte(digits[n]) {
		return 0, 0, false
	}
	index, err := strconv.Atoi(string(digits[:n]))
	return index, len(placeholderPrefix) + n, err == nil
}

// BlobAt finds the blob for which a value of a skeleton stands. It says false for any other value, such as null.
func BlobAt(raw []byte, blobs []*Blob) (*Blob, bool) {
	index, ok := BlobIndex(raw)
	if !ok || index >= len(blobs) {
		return nil, false
	}
	return blobs[index], true
}

// BlobIndex gives the place in its list of the blob for which a value of a skeleton stands. It says false for any other
// value, such as null.
func BlobIndex(raw []byte) (int, bool) {
	raw = bytes.TrimSpace(raw)
	index, width, ok := placeholderIndex(raw)
	return index, ok && width == len(raw)
}

// AppendBlob appends the placeholder of b to a skeleton in the making whose blobs are in the list, and adds b to the list
// if it is new there. Start with the list that Split returned, so that values which the new skeleton takes over as text
// keep their meaning. The nil Blob is null.
func AppendBlob(dst []byte, b *Blob, blobs *[]*Blob) []byte {
	if b == nil {
		return append(dst, "null"...)
	}
	list := *blobs
	if b.index < len(list) && list[b.index] == b {
		return appendPlaceholder(dst, b.index)
	}
	for i := range list {
		if list[i] == b {
			return appendPlaceholder(dst, i)
		}
	}
	*blobs = append(list, b)
	return appendPlaceholder(dst, len(list))
}

// Joined is a document made of a skeleton and blobs, of known length. It may be read several times, also at once, while the
// blobs are open; it does not close them.
type Joined struct {
	pieces []joinPiece
	size   int64
}

// joinPiece is a piece of text and the blob after it, if any.
type joinPiece struct {
	text []byte
	blob *Blob
}

// Join puts blobs back in the place of their placeholders. Blobs may be used several times, in any order or not at all. It
// fails when a placeholder has no blob. The skeleton must be JSON, as Split returns it, and is not used afterwards.
func Join(skeleton []byte, blobs []*Blob) (*Joined, error) {
	j := &Joined{}
	var text []byte
	for rest := skeleton; ; {
		n := toPlaceholder(rest)
		text = append(text, rest[:n]...)
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
		index, width, _ := placeholderIndex(rest)
		if index >= len(blobs) || blobs[index] == nil {
			return nil, fmt.Errorf("join a JSON text: payload %d is not among the %d given", index, len(blobs))
		}
		j.add(append(text, '"'), blobs[index])
		text, rest = []byte{'"'}, rest[width:]
	}
	j.add(text, nil)
	return j, nil
}

func (j *Joined) add(text []byte, b *Blob) {
	j.pieces = append(j.pieces, joinPiece{text, b})
	j.size += int64(len(text)) + b.EncodedLen()
}

// toPlaceholder measures what lies before the first placeholder of a JSON text.
func toPlaceholder(text []byte) int {
	for n := 0; n < len(text); n++ {
		switch text[n] {
		case '"':
			n += insideLen(text[n+1:]) + 1
		case '-':
			if _, _, ok := placeholderIndex(text[n:]); ok {
				return n
			}
		}
	}
	return len(text)
}

// insideLen measures the inside of a JSON string up to its closing quote.
func insideLen(text []byte) int {
	n := 0
	for n < len(text) && text[n] != '"' {
		if text[n] == '\\' {
			n++
		}
		n++
	}
	return n
}

// Len is the exact number of bytes of the document: the Content-Length.
func (j *Joined) Len() int64 { return j.size }

// Open reads the document from its beginning, however often it is called. What it returns is an io.WriterTo too.
func (j *Joined) Open() io.ReadCloser { return &joinReader{pieces: j.pieces} }

// WriteTo writes the whole document to w.
func (j *Joined) WriteTo(w io.Writer) (int64, error) {
	r := joinReader{pieces: j.pieces}
	return r.WriteTo(w)
}

// joinReader is one pass over a Joined.
type joinReader struct {
	pieces []joinPiece
	part   io.Reader // of the first piece, when begun
	inBlob bool      // part is its blob
	closed atomic.Bool
}

// advance makes part what is to be read next, or says false at the end.
func (r *joinReader) advance() bool {
	switch {
	case len(r.pieces) == 0:
		return false
	case r.part == nil:
		r.part, r.inBlob = bytes.NewReader(r.pieces[0].text), false
	case !r.inBlob && r.pieces[0].blob != nil:
		r.part, r.inBlob = r.pieces[0].blob.Reader(), true
	default:
		r.pieces, r.part = r.pieces[1:], nil
		return r.advance()
	}
	return true
}

// Read implements io.Reader. It fills p across the borders of pieces, so that small ones cost no calls of their own.
func (r *joinReader) Read(p []byte) (n int, err error) {
	if r.closed.Load() {
		return 0, fs.ErrClosed
	}
	for n < len(p) {
		if r.part == nil && !r.advance() {
			break
		}
		m, err := r.part.Read(p[n:])
		n += m
		if err == io.EOF {
			r.advance()
		} else if err != nil {
			return n, err
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo implements io.WriterTo.
func (r *joinReader) WriteTo(w io.Writer) (n int64, err error) {
	if r.closed.Load() {
		return 0, fs.ErrClosed
	}
	for more := r.part != nil || r.advance(); more; more = r.advance() {
		m, err := r.part.(io.WriterTo).WriteTo(w)
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close ends the pass. net/http may call it while another goroutine reads.
func (r *joinReader) Close() error {
	r.closed.Store(true)
	return nil
}

// copyBuffers are for copies out of files.
var copyBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// copyPooled copies all of r to w with a buffer that it borrows.
func copyPooled(w io.Writer, r io.Reader) (n int64, err error) {
	buf := copyBuffers.Get().(*[64 << 10]byte)
	defer copyBuffers.Put(buf)
	for {
		got, err := r.Read(buf[:])
		if got > 0 {
			put, werr := w.Write(buf[:got])
			n += int64(put)
			if werr != nil {
				return n, werr
			}
		}
		if err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}
