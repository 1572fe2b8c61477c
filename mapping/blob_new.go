package mapping

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"math"
	"strings"
)

// BlobFromRaw makes a Blob in memory that stands for content. It is for small ones.
func BlobFromRaw(content []byte) *Blob {
	text := base64.StdEncoding.AppendEncode(nil, content)
	n := int64(len(text))
	spool := &blobSpool{mem: text, size: n, refs: 1}
	return &Blob{spool: spool, length: n, size: int64(len(content)), digest: sha256.Sum256(content)}
}

// BlobFromEncoded makes a Blob in memory of base64 text, repaired as Split repairs it. It is for small ones. What is not
// base64 is a *SyntaxError.
func BlobFromEncoded[T string | []byte](text T) (*Blob, error) {
	return BlobFromReader(strings.NewReader(string(text)), SplitOptions{Limits: Limits{BlobMemory: math.MaxInt64, Body: -1}})
}

// BlobFromReader makes a Blob of any size of base64 text that comes without JSON around it, such as a form field, under
// the same rules, options and errors as a member `data` in Split. With Tolerant only canonical text is accepted.
func BlobFromReader(src io.Reader, opts SplitOptions) (*Blob, error) {
	s := splitters.Get().(*splitter)
	defer s.recycle()
	s.reset(nil, src, opts)
	s.stage.begin(s.spool, opts.Tolerant)
	for s.in.more() {
		if err := s.bareRun(); err != nil {
			_ = s.spool.release() // the first error is the one to tell
			return nil, err
		}
	}
	kind, err := s.stage.finish()
	if !s.in.done() {
		err = s.in.failure()
	} else if kind != 0 {
		err = s.in.wrong(kind, 0)
	}
	if err != nil {
		_ = s.spool.release()
		return nil, err
	}
	return s.stage.blob(0), nil
}

// bareRun takes the next piece of a text that is nothing but base64.
func (s *splitter) bareRun() error {
	n, err := s.stage.bulk(s.in.unread())
	s.in.pos += n
	if err != nil || s.in.pos == s.in.end {
		return err
	}
	kind, err := s.stage.push(rune(s.in.window[s.in.pos]))
	if kind != 0 {
		return s.in.wrong(kind, 0)
	}
	s.in.pos++
	return err
}

// BlobFromText makes a Blob in memory of a JSON string as it was written, quotes included, that need not be base64: Join puts
// it back unchanged. It lets a decoder treat a `data` that stayed in a tracker's skeleton like one that did not.
func BlobFromText(raw []byte) (*Blob, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, false
	}
	return textBlob(bytes.Clone(raw[1 : len(raw)-1])), true
}
