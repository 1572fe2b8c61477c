package jsonblob

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"io/fs"
	"math"
	"strings"
	"sync/atomic"
)

// Blob is one base64 payload of any size. It stays in memory up to a threshold and is in a temporary file beyond it,
// so the heap that a request needs does not depend on the size of an attachment.
//
// A Blob never changes once it is made, and may be read by several goroutines at once. The nil Blob is empty.
type Blob struct {
	spool  *spool
	offset int64 // of the text in the spool
	length int64 // of the text
	size   int64
	closed atomic.Bool
}

// BlobFromRaw makes a Blob in memory that stands for content. It is for small ones.
func BlobFromRaw(content []byte) *Blob {
	b, _ := BlobFromEncoded(base64.StdEncoding.EncodeToString(content)) // which is always valid
	return b
}

// BlobFromEncoded makes a Blob in memory of base64 text, repaired as Split repairs it. It is for small ones. A text that is not
// base64 is a *SyntaxError.
func BlobFromEncoded(text string) (*Blob, error) {
	return BlobFromReader(strings.NewReader(text), SplitOptions{Limits: Limits{BlobMemory: math.MaxInt64, Body: -1}})
}

// BlobFromReader makes a Blob of any size of base64 text that comes without JSON around it, such as a form field, under
// the same rules, options and errors as a member `data` in Split.
func BlobFromReader(src io.Reader, opts SplitOptions) (*Blob, error) {
	s := newSplitter(nil, src, opts)
	defer s.in.recycle()
	b, err := s.bare()
	if err != nil {
		_ = s.spool.release() // the first error is the one to tell
		return nil, err
	}
	return b, nil
}

// bare takes a text that is nothing but one payload.
func (s *splitter) bare() (*Blob, error) {
	p := s.newPayload()
	for s.in.more() {
		if wrong, _, err := p.piece(&s.in, false); err != nil {
			return nil, err
		} else if wrong {
			return nil, s.in.wrong(SyntaxBase64, 0)
		}
	}
	if !s.in.ended() {
		return nil, s.in.failure()
	}
	size, wrong, err := p.finish()
	if wrong {
		err = s.in.wrong(SyntaxBase64, 0)
	}
	return &Blob{spool: s.spool, length: s.spool.size, size: size}, err
}

// Size is the number of bytes of the decoded content.
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

// Digest reads the Blob and computes the SHA-256 of the decoded content, so that two payloads can be compared without keeping either.
// The result is not kept. An error is a *BlobError.
func (b *Blob) Digest() (digest [sha256.Size]byte, err error) {
	hash := sha256.New()
	_, err = io.Copy(hash, base64.NewDecoder(base64.StdEncoding, bufio.NewReaderSize(b.Reader(), largeWindow)))
	hash.Sum(digest[:0])
	return digest, err
}

// Reader reads the encoded text from its beginning, however often it is called.
func (b *Blob) Reader() io.Reader { return io.NewSectionReader(b, 0, b.EncodedLen()) }

// ReadAt implements io.ReaderAt over the encoded text. It fills p or fails.
func (b *Blob) ReadAt(p []byte, off int64) (int, error) {
	if b.closed.Load() {
		return 0, &BlobError{Op: "read", Err: fs.ErrClosed}
	}
	return b.spool.ReadAt(p, b.offset+off)
}

// Close gives memory and file back. Reading a closed Blob fails with fs.ErrClosed; closing it again does nothing.
func (b *Blob) Close() error {
	if b == nil || b.closed.Swap(true) {
		return nil
	}
	return b.spool.release()
}

// CloseBlobs closes all of them and returns the first failure.
func CloseBlobs(blobs []*Blob) (first error) {
	for _, b := range blobs {
		first = cmp.Or(first, b.Close())
	}
	return first
}

// Copy copies src to dst as io.Copy does, in large pieces with a pooled buffer. It calls nothing but Read and Write, so that an error
// can be told to be that of src or of dst.
func Copy(dst io.Writer, src io.Reader) (int64, error) {
	buffer := largeWindows.Get().(*[largeWindow]byte)
	defer largeWindows.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, buffer[:])
}
