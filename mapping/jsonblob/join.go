package jsonblob

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
)

// A placeholder is the number -0E+N, where N is the place of a blob in its list. It is a number so that it outlives any
// code that handles JSON values as text, and no document can hold one: Split spells such a number -0e+N, which is
// the same value.
const (
	placeholderReserve = "-0E" // how no number of a skeleton begins but a placeholder
	placeholderPrefix  = placeholderReserve + "+"
)

// AppendPlaceholder appends the text that stands for blob i in a copied document.
func AppendPlaceholder(dst []byte, index int) []byte {
	return strconv.AppendInt(append(dst, placeholderPrefix...), int64(index), 10)
}

// placeholder reads a placeholder at the start of p. Its width is 0 where there is none.
func placeholder(p []byte) (index, width int) {
	digits, ok := bytes.CutPrefix(p, []byte(placeholderPrefix))
	n := digitsLen(digits)
	index, err := strconv.Atoi(string(digits[:n]))
	if !ok || err != nil || n > 1 && digits[0] == '0' || n < len(digits) && isNumberByte(digits[n]) {
		return 0, 0
	}
	return index, len(placeholderPrefix) + n
}

// Placeholders takes a JSON text apart at its placeholders. It yields what is before each of them with the index of its blob, and
// what is after the last one with -1.
func Placeholders(text []byte) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		if !bytes.Contains(text, []byte(placeholderPrefix)) {
			yield(text, -1)
			return
		}
		for n := 0; n < len(text); n++ {
			switch text[n] {
			case '"':
				n += insideLen(text[n+1:]) + 1
			case '-':
				index, width := placeholder(text[n:])
				if width == 0 {
					continue
				}
				if !yield(text[:n], index) {
					return
				}
				text, n = text[n+width:], -1
			}
		}
		yield(text, -1)
	}
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

// BlobAt finds the blob for which a value of a skeleton stands. It returns false for any other value, such as null.
func BlobAt(raw []byte, blobs []*Blob) (*Blob, bool) {
	raw = bytes.TrimSpace(raw)
	index, width := placeholder(raw)
	if width == 0 || width < len(raw) || index >= len(blobs) {
		return nil, false
	}
	return blobs[index], true
}

// AppendBlob appends the placeholder of b to a skeleton in the making whose blobs are in the list, and adds b to the list
// if it is new there. Start with the list that Split returned, so that values which the new skeleton takes over as text
// keep their meaning. The nil Blob is null.
func AppendBlob(dst []byte, b *Blob, blobs *[]*Blob) []byte {
	if b == nil {
		return append(dst, "null"...)
	}
	index := slices.Index(*blobs, b)
	if index < 0 {
		index = len(*blobs)
		*blobs = append(*blobs, b)
	}
	return AppendPlaceholder(dst, index)
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
	for before, index := range Placeholders(skeleton) {
		text = append(text, before...)
		var b *Blob
		if index >= 0 {
			if index >= len(blobs) || blobs[index] == nil {
				return nil, fmt.Errorf("join a JSON text: payload %d is not among the %d given", index, len(blobs))
			}
			b, text = blobs[index], append(text, '"')
		}
		j.pieces = append(j.pieces, joinPiece{text, b})
		j.size += int64(len(text)) + b.EncodedLen()
		text = []byte{'"'}
	}
	return j, nil
}

// Len is the exact number of bytes of the document: the Content-Length.
func (j *Joined) Len() int64 { return j.size }

// Open reads the document from its beginning, however often it is called. Closing it does nothing.
func (j *Joined) Open() io.ReadCloser {
	readers := make([]io.Reader, 0, 2*len(j.pieces))
	for _, piece := range j.pieces {
		readers = append(readers, bytes.NewReader(piece.text))
		if piece.blob != nil {
			readers = append(readers, piece.blob.Reader())
		}
	}
	return io.NopCloser(io.MultiReader(readers...))
}

// WriteTo writes the whole document to w.
func (j *Joined) WriteTo(w io.Writer) (int64, error) { return Copy(w, j.Open()) }
