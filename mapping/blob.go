package mapping

// Large payloads, in short (DESIGN.md, section 8):
//
//	skeleton, blobs, err := Split(nil, body, SplitOptions{…}) // strict JSON in, small skeleton and blobs out
//	blob, ok := BlobAt(raw, blobs)                            // the value of a member `data`, while decoding
//	dst = AppendBlob(dst, blob, &blobs)                       // the same while encoding
//	joined, err := Join(skeleton, blobs)                      // the document again: Len, Open, WriteTo
//	CloseBlobs(blobs)                                         // when the exchange is over
//
// Whoever calls Split owns the blobs and closes them; Joined and the readers of a Blob own nothing.

import (
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
)

// Blob is one base64 payload of any size. It stays in memory up to a threshold and lies in a temporary file beyond it,
// so the heap that a request needs does not depend on the size of an attachment.
//
// A Blob never changes once it is made, and may be read by several goroutines at once. The nil Blob is empty and
// may be asked and closed like any other.
type Blob struct {
	spool  *blobSpool
	offset int64 // of the text in the spool
	length int64 // of the text
	size   int64
	digest [32]byte
	text   bool // not base64: see Base64
	index  int  // in the list that Split returned: only a hint for AppendBlob
	closed atomic.Bool
}

// Size is the number of bytes of the decoded content, counted while the text was read. For a text that is not base64
// it is the number of bytes of the text.
func (b *Blob) Size() int64 {
	if b == nil {
		return 0
	}
	return b.size
}

// EncodedLen is the number of bytes that Reader gives.
func (b *Blob) EncodedLen() int64 {
	if b == nil {
		return 0
	}
	return b.length
}

// Digest is the SHA-256 of the decoded content, computed while the text was read, so that two payloads are compared
// without reading either. For a text that is not base64 it is the SHA-256 of the text: compare Base64 too.
// The nil Blob has the zero digest, which no content has.
func (b *Blob) Digest() [32]byte {
	if b == nil {
		return [32]byte{}
	}
	return b.digest
}

// Base64 tells whether the Blob is base64 in canonical form. It is false only for what a tracker sent in a member
// named `data` that was something else and too long to stay in the skeleton (SplitOptions.Tolerant): then Reader gives
// the inside of the JSON string exactly as it was sent, escapes included, and Join puts it back like that.
func (b *Blob) Base64() bool { return b == nil || !b.text }

// Reader reads the encoded text from its beginning, however often it is called. It is an io.WriterTo too.
func (b *Blob) Reader() io.Reader { return &blobReader{blob: b} }

// Close gives memory and file back. Reading a closed Blob fails with fs.ErrClosed; closing it again does nothing.
func (b *Blob) Close() error {
	if b == nil || b.closed.Swap(true) {
		return nil
	}
	return b.spool.release()
}

// String names the Blob without its content, for logs and reports.
func (b *Blob) String() string {
	return fmt.Sprintf("%d bytes, sha256 %x", b.Size(), b.Digest())
}

// CloseBlobs closes all of them and returns the first failure.
func CloseBlobs(blobs []*Blob) error {
	var first error
	for _, b := range blobs {
		if err := b.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// view is the text when it lies in memory, and nil otherwise.
func (b *Blob) view() []byte {
	if b.closed.Load() {
		return nil
	}
	return b.spool.view(b.offset, b.length)
}

// readAt fills p with the text from off on; p must not reach beyond the text.
func (b *Blob) readAt(p []byte, off int64) (int, error) {
	if b.closed.Load() {
		return 0, &BlobError{Op: "read", Err: fs.ErrClosed}
	}
	return b.spool.readAt(p, b.offset+off)
}

// blobReader is one pass over the text of a Blob.
type blobReader struct {
	blob *Blob
	off  int64
}

// Read implements io.Reader.
func (r *blobReader) Read(p []byte) (int, error) {
	left := r.blob.EncodedLen() - r.off
	if left == 0 {
		return 0, io.EOF
	}
	n, err := r.blob.readAt(p[:min(int64(len(p)), left)], r.off)
	r.off += int64(n)
	return n, err
}

// WriteTo implements io.WriterTo: one Write from memory, or a copy through a pooled buffer.
func (r *blobReader) WriteTo(w io.Writer) (int64, error) {
	if r.off == r.blob.EncodedLen() {
		return 0, nil
	}
	if text := r.blob.view(); text != nil {
		n, err := w.Write(text[r.off:])
		r.off += int64(n)
		return int64(n), err
	}
	return copyPooled(w, r)
}
