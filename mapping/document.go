package mapping

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"portico/mapping/jsonblob"

	"github.com/go-json-experiment/json/jsontext"
)

// Document is a tracker's JSON response. Its bytes are kept as they came, because
// a client may depend on any of them; it is loaded only where its members are
// needed. It is either in memory with its large payloads set aside, or a stream
// that is still arriving. The caller that gets it closes it.
type Document struct {
	text  []byte
	blobs []*jsonblob.Blob
	rest  io.ReadCloser
	size  int64
	// joined is set when there are payloads to put back.
	joined *jsonblob.Joined
	// onClose is called once, by the first Close.
	onClose func()

	// Status is the HTTP status that the tracker sent, 0 when that is not known. Clients
	// get that of the operation.
	Status int
	// ContentType is the header of that name, empty when that is not known. Clients get
	// their own.
	ContentType string
	// ETag is the tracker's own tag, empty when there is none.
	ETag string
	// NotModified says that the tracker responded with 304 and there is no body.
	NotModified bool
	// Cookies are Set-Cookie values meant for this one caller, as the tracker wrote them.
	Cookies []string
	// Tracker is the address of the tracker that responded, nil when that is not known.
	// It says what the path and the domain of a cookie mean.
	Tracker *url.URL
	// PathWon says of an attachment create that its ids did not name the path's
	// bug, which alone got the attachment (AttachmentCreate.Conflict).
	PathWon bool
}

// NewDocument makes a document of a complete JSON text.
func NewDocument(text []byte) *Document {
	return &Document{text: text, size: int64(len(text))}
}

// NewStream makes a document that begins with head and goes on with rest. size
// is the length of both in bytes, or -1 when it is unknown.
func NewStream(head []byte, rest io.ReadCloser, size int64) *Document {
	return &Document{text: head, rest: rest, size: size}
}

// Len is the length in bytes, -1 when unknown.
func (d *Document) Len() int64 { return d.size }

// Held is how many bytes of the document are in memory until it is closed, beside payloads and the beginning of a stream.
func (d *Document) Held() int {
	if d.rest != nil {
		return 0
	}
	return len(d.text)
}

// WriteTo copies the document to w. A stream can be written once only; an error
// from reading it is a *StreamError, so that it is not taken for one of w.
func (d *Document) WriteTo(w io.Writer) (int64, error) {
	if d.joined != nil {
		return d.joined.WriteTo(w)
	}
	n, err := w.Write(d.text)
	written := int64(n)
	if err != nil || d.rest == nil {
		return written, err
	}
	more, err := jsonblob.Copy(w, &streamReader{d.rest})
	return written + more, err
}

// Load brings a stream to its end, with large payloads set aside as options
// say, and gives the text of the document without them. Errors are *SyntaxError,
// *LimitError, *BlobError, or those of the stream. A failed document is closed.
func (d *Document) Load(options jsonblob.SplitOptions) (jsontext.Value, error) {
	if d.rest == nil {
		return d.text, nil
	}
	options.Tolerant = true
	source := io.MultiReader(bytes.NewReader(d.text), &streamReader{d.rest})
	text, blobs, err := jsonblob.Split(nil, source, options)
	err = errors.Join(err, d.rest.Close())
	d.rest, d.blobs = nil, blobs
	if err == nil {
		err = d.Replace(text)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d.text, nil
}

// Replace swaps the text of a loaded document, keeping its payloads. It fails
// when the text refers to a payload that the document does not have.
func (d *Document) Replace(text []byte) error {
	d.text, d.joined, d.size = text, nil, int64(len(text))
	if len(d.blobs) == 0 {
		return nil
	}
	joined, err := jsonblob.Join(text, d.blobs)
	if err != nil {
		return err
	}
	d.joined, d.size = joined, joined.Len()
	return nil
}

// Blobs are the payloads that Load set aside, in the order of the text.
func (d *Document) Blobs() []*jsonblob.Blob { return d.blobs }

// Close frees the stream and the payloads.
func (d *Document) Close() error {
	if d == nil {
		return nil
	}
	var failed error
	if d.rest != nil {
		failed = d.rest.Close()
	}
	if onClose := d.onClose; onClose != nil {
		d.onClose = nil
		onClose()
	}
	return errors.Join(failed, jsonblob.CloseBlobs(d.blobs))
}

// Tee copies what the tracker sent to w while the document is read, in whatever
// way, and calls done once when it is closed: whole says that w has all of it. What is in memory already is copied at once. A failure of
// w ends the copying and never the reading. Call it at most once, before the
// document is read.
func (d *Document) Tee(w io.Writer, done func(whole bool)) {
	t := &tee{ReadCloser: d.rest, to: w, ended: d.rest == nil}
	if t.ended {
		_, err := d.WriteTo(w)
		t.failed = err != nil
	} else {
		t.copy(d.text)
		d.rest = t
	}
	d.onClose = func() { done(t.ended && !t.failed) }
}

// tee is a stream that is copied while it is read.
type tee struct {
	io.ReadCloser
	to            io.Writer
	ended, failed bool
}

func (t *tee) copy(p []byte) {
	if !t.failed && len(p) > 0 {
		_, err := t.to.Write(p)
		t.failed = err != nil
	}
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.copy(p[:n])
	t.ended = t.ended || err == io.EOF
	return n, err
}

// StreamError is a failure of the tracker's side while a document was copied.
type StreamError struct{ Err error }

// Error implements error.
func (e *StreamError) Error() string { return "read the tracker's response: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *StreamError) Unwrap() error { return e.Err }

type streamReader struct{ io.Reader }

func (r *streamReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &StreamError{Err: err}
	}
	return n, err
}
